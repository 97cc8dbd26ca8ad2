"""One-step velocity predictions of many candidate targets at once, for the particle filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.physics.actuator import DEAD_ZONE_SLOPE
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True)
class Window:
    """Consecutive samples of one robot: the states, the commands that followed them, and where those led."""

    position: Array
    """(T, n) [rad]"""
    velocity: Array
    """(T, n) [rad/s]"""
    command: Array
    """(T, n) torque sent at that state [N·m]."""
    change: Array
    """(T, n) velocity gained in the period that followed [rad/s]."""


@dataclass(frozen=True)
class Candidates:
    """What the filter may vary, one column a candidate: per-direction arrays are (n, 2, K)."""

    torque_scale: Array
    torque_bias: Array
    dead_zone: Array
    viscous: Array
    friction_amplitude: Array
    friction_slope: Array
    friction_shift: Array
    armature: Array
    """(n, K) [kg·m²]"""
    payload_mass: Array
    """(K,) at the payload mount [kg]."""


class OneStep:
    """The step that MuJoCo's Euler integrator takes, written out:

        v' - v = dt (M_ξ + dt D_ξ)⁻¹ (drive_ξ(τ) - losses_ξ(v) - h_ξ)

    with D_ξ the slope of viscous and sigmoidal friction (implicit, as in `physics.target`), M_ξ = M₀ + m M_p + armature
    and h_ξ = h₀ + m h_p. What depends on the state comes from Pinocchio once a sample; what depends on the candidate is
    arithmetic on arrays (samples, candidates), with the factorisation of M written out joint by joint. The numbers are
    those of 512 x 49 simulated worlds, at a fraction of their cost.

    Args:
        robot: the ideal robot.
        timestep: control period [s].
    """

    def __init__(self, robot: Robot, timestep: float):
        self.robot, self.timestep = robot, timestep
        self._body = RigidBody(robot)
        loaded = replace(Parameters.ideal(robot), payload_mass=np.array(1.0)).inertial(robot)
        self._loaded = RigidBody(robot, inertial=loaded)

    def error(self, window: Window, c: Candidates) -> Array:
        """Predicted minus measured change of velocity, (n, T, K) [rad/s]."""
        n, dt = self.robot.n, np.float32(self.timestep)
        mass = self._body.mass_matrix(window.position)
        bias = self._body.bias(window.position, window.velocity)
        extra_mass = (self._loaded.mass_matrix(window.position) - mass).astype(np.float32)
        extra_bias = (self._loaded.bias(window.position, window.velocity) - bias).astype(np.float32)
        mass = (mass - np.diag(self.robot.armature)).astype(np.float32)
        bias = bias.astype(np.float32)
        force, slope = self._forces(window, c)
        payload = c.payload_mass[None, :]
        for j in range(n):
            force[j] -= bias[:, j, None] + payload * extra_bias[:, j, None]
        matrix: list[list[Array]] = [
            [mass[:, i, j, None] + payload * extra_mass[:, i, j, None] for j in range(i + 1)] for i in range(n)
        ]
        for j in range(n):
            matrix[j][j] += c.armature[j] + dt * slope[j]
        _solve_in_place(matrix, force)
        force *= dt
        force -= window.change.T[:, :, None].astype(np.float32)
        return force

    def _forces(self, window: Window, c: Candidates) -> tuple[Array, Array]:
        """Driven torque minus losses, and the slope of the losses, (n, T, K) each."""
        shape = (self.robot.n, len(window.velocity), c.payload_mass.shape[0])
        force, slope = np.empty(shape, np.float32), np.empty(shape, np.float32)
        still = _expit(c.friction_slope * c.friction_shift)  # (n, 2, K)
        for j in range(self.robot.n):
            command = window.command[:, j].astype(np.float32)
            velocity = window.velocity[:, j, None].astype(np.float32)
            side = (command < 0.0).astype(int)
            scaled = c.torque_scale[j][side] * command[:, None]
            width = c.dead_zone[j][side]
            outside = scaled - np.sign(command)[:, None] * (np.float32(1.0 - DEAD_ZONE_SLOPE) * width)
            driven = np.where(np.abs(scaled) <= width, np.float32(DEAD_ZONE_SLOPE) * scaled, outside)
            side = (window.velocity[:, j] < 0.0).astype(int)
            steep, amplitude, viscous = c.friction_slope[j][side], c.friction_amplitude[j][side], c.viscous[j][side]
            value = _expit(steep * (velocity + c.friction_shift[j][side]))
            force[j] = driven + c.torque_bias[j][side] - viscous * velocity - amplitude * (value - still[j][side])
            slope[j] = viscous + amplitude * steep * value * (1.0 - value)
        return force, slope


def _expit(x: Array) -> Array:
    return np.float32(0.5) + np.float32(0.5) * np.tanh(np.float32(0.5) * x)


def _solve_in_place(matrix: list[list[Array]], right: Array) -> None:
    """Solve M x = b for every (T, K) at once by L D Lᵀ; `matrix[i][j]`, j <= i, and `right[i]` are (T, K)."""
    n = len(matrix)
    for j in range(n):
        inverse = 1.0 / matrix[j][j]
        for i in range(j + 1, n):
            factor = matrix[i][j] * inverse
            for k in range(j + 1, i + 1):
                matrix[i][k] -= factor * matrix[k][j]
            right[i] -= factor * right[j]
        for i in range(j + 1, n):
            matrix[i][j] *= inverse
        matrix[j][j] = inverse
    for j in range(n - 1, -1, -1):
        right[j] *= matrix[j][j]
        for i in range(j + 1, n):
            right[j] -= matrix[i][j] * right[i]


def as_parameters(robot: Robot, c: Candidates) -> Parameters:
    """The candidates as full parameters, (K, ...): what is not varied is as in the ideal robot."""
    count = c.payload_mass.shape[0]
    ideal = Parameters.ideal(robot, count)
    pairs = (
        "torque_scale",
        "torque_bias",
        "dead_zone",
        "viscous",
        "friction_amplitude",
        "friction_slope",
        "friction_shift",
    )
    return Parameters(
        mass_scale=ideal.mass_scale,
        centre_offset=ideal.centre_offset,
        payload_centre=ideal.payload_centre,
        payload_mass=c.payload_mass.astype(float),
        armature=c.armature.T.astype(float),
        **{name: np.moveaxis(getattr(c, name), -1, 0).astype(float) for name in pairs},
    )
