"""What may be unknown about a robot: the ranges that hidden parameters are drawn from (TAM, Table B.1)."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Ranges of one robot's hidden parameters, and the gains and motions that go with them.

    A pair `(low, high)` is a uniform range. Per-joint arrays are `(n,)`.
    """

    armature_min: Array
    """(n,) smallest rotor inertia seen at the joint [kg·m²]."""
    armature_max: Array
    """(n,) largest rotor inertia seen at the joint [kg·m²]."""
    stiffness: Array
    """(n,) base joint-impedance stiffness Kp of random motions [N·m/rad]."""
    tracking_stiffness: Array
    """(n,) Kp of the tracking bench [N·m/rad]."""
    tracking_damping: Array | None
    """(n,) Kd of the tracking bench [N·m·s/rad]; None: critical at the home pose."""
    tracking_amplitude: Array
    """(n,) base amplitude of the tracking bench's sines [rad]."""
    waypoint_delta: Array
    """(n,) largest step between random waypoints [rad]."""
    command_noise_white: Array
    """(n,) base white command noise of random motions [N·m]."""
    command_noise_walk: Array
    """(n,) base random-walk command noise of random motions [N·m]."""
    friction_max: Array
    """(n,) largest amplitude of the sigmoidal friction [N·m]."""
    viscous_max: Array
    """(n,) largest viscous damping [N·m·s/rad]."""
    bias_max: Array
    """(n,) largest torque bias [N·m]."""
    dead_zone_max: Array
    """(n,) widest dead zone [N·m]."""
    payload_mass: tuple[float, float] = (0.0, 1.5)
    """Mass of a hidden end-effector payload [kg]."""
    payload_centre: float = 0.075
    """Largest payload offset per axis from the mount [m]."""
    mass_scale: tuple[float, float] = (0.9, 1.1)
    """Multiplier of each link's mass and inertia."""
    centre_offset: float = 0.01
    """Largest offset per axis of each link's centre of mass [m]."""
    torque_scale: tuple[float, float] = (0.99, 1.01)
    """Gain of the drive, per command direction."""
    bias_difference: float = 0.2
    """Largest difference between the biases of the two directions, as a fraction of `bias_max`."""
    friction_width: tuple[float, float] = (0.02, 0.2)
    """Velocity width of the sigmoidal friction [rad/s]; slope = 4.4 / width."""
    friction_asymmetry: float = 0.3
    """u in U[-a, a]: one direction's slope is scaled by 10^u, the other's by 10^-u."""
    friction_shift: float = 0.02
    """Largest velocity shift of the friction [rad/s]."""
    external_force: tuple[float, float] = (5.0, 80.0)
    """Magnitude of external force pulses at the hand [N]."""
    position_noise: tuple[float, float] = (1e-4, 1e-3)
    """Standard deviation of measured positions [rad]."""
    velocity_noise: tuple[float, float] = (1e-3, 1e-2)
    """Standard deviation of measured velocities [rad/s]."""
    velocity_delay: int = 2
    """Longest delay of measured velocities [ticks of 1 ms]."""
    torque_delay: int = 4
    """Longest delay of reported torques [ticks of 1 ms]."""
    kp_small: tuple[float, float] = (0.02, 0.1)
    """Stiffness multiplier of soft random motions."""
    kp_large: tuple[float, float] = (0.5, 3.0)
    """Stiffness multiplier of stiff random motions."""
    kp_small_probability: float = 0.4
    """How often a random motion is soft."""
