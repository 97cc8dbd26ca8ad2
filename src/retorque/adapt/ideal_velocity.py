"""The velocity that the ideal robot would have gained under the nominal torques, beside the one reported."""

from __future__ import annotations

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


class IdealVelocity:
    """Integrates the ideal robot's acceleration at the reported states, v' = F₀(q, q̇, τ⁰) + (q̇ - v) / memory.

    Adapters never see the policy, so this is the only reference there is: what each nominal torque would have done to
    the ideal robot from where the real one was.

    Args:
        robot: the ideal robot.
        trials: robots served at once.
        timestep: control period [s].
        memory: time over which old differences are forgotten [s]; infinite: never.
    """

    remembered = ("velocity", "acceleration", "_known")

    def __init__(self, robot: Robot, trials: int, timestep: float, memory: float):
        self._body, self._dt = RigidBody(robot), timestep
        self._leak = timestep / memory
        self.velocity = np.zeros((trials, robot.n))
        """(trials, n) [rad/s]"""
        self.acceleration = np.zeros((trials, robot.n))
        """(trials, n) of the ideal robot at the last nominal torque [rad/s²]."""
        self._known = np.zeros(trials, dtype=bool)

    def reset(self) -> None:
        """Start again from the next report."""
        self.acceleration[:] = 0.0
        self._known[:] = False

    def observe(self, state: State, follows: Array | bool = True) -> Array:
        """How much of its velocity the robot lacks (trials, n) [rad/s]; nothing where its report is not finite.

        Joints that do not follow, `follows` (trials, n), begin anew at what is reported.
        """
        reported = np.isfinite(state.velocity).all(axis=-1) & np.isfinite(state.position).all(axis=-1)
        velocity = np.where(reported[:, None], state.velocity, self.velocity)
        self.velocity += self._dt * self.acceleration
        self.velocity = np.where(self._known[:, None] & follows, self.velocity, velocity)
        missing = np.where(reported[:, None], self.velocity - velocity, 0.0)
        self.velocity -= self._leak * missing
        self._known |= reported
        return missing

    def command(self, state: State, nominal_torque: Array) -> Array:
        """The ideal robot's acceleration under this torque (trials, n) [rad/s²]."""
        acceleration = self._body.forward_dynamics(state.position, state.velocity, nominal_torque)
        self.expect(acceleration)
        return acceleration

    def expect(self, acceleration: Array) -> None:
        """So the ideal robot accelerates until the next report (trials, n) [rad/s²]."""
        known = np.isfinite(acceleration).all(axis=-1)[:, None]
        self.acceleration = np.where(known, acceleration, 0.0)  # or one bad report would stay in the integral for good

    def hold(self, missing: Array, most: Array) -> Array:
        """Keep what is missing within bounds (trials, n) [rad/s]: what is beyond is forgotten, not stored up."""
        kept = np.clip(missing, -most, most)
        self.velocity += kept - missing
        return kept


def joint_inertia(robot: Robot) -> Array:
    """Inertia of each joint at home with the middle of what its rotor may have, (n,) [kg·m²]: what gains go by."""
    profile = profile_of(robot)
    links = np.diagonal(RigidBody(robot).mass_matrix(robot.home)) - robot.armature
    return np.asarray(links + 0.5 * (profile.armature_min + profile.armature_max))
