"""One-step velocity predictions of many candidate targets at once, for the particle filter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.actuator import DEAD_ZONE_SLOPE
from retorque.physics.parameters import PAIRS, Parameters
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
        loaded = Parameters.ideal(robot).with_payload(1.0).total_inertial(robot)
        self._loaded = RigidBody(robot, inertial=loaded)

    def error(self, window: Window, candidates: Parameters) -> Array:
        """Predicted minus measured change of velocity of candidates (K, ...), (n, T, K) [rad/s].

        The candidates' links are taken to be the ideal robot's, and their payloads points at the mount.
        """
        n, dt = self.robot.n, np.float32(self.timestep)
        mass = self._body.mass_matrix(window.position)
        bias = self._body.bias(window.position, window.velocity)
        extra_mass = (self._loaded.mass_matrix(window.position) - mass).astype(np.float32)
        extra_bias = (self._loaded.bias(window.position, window.velocity) - bias).astype(np.float32)
        mass = (mass - np.diag(self.robot.armature)).astype(np.float32)
        bias = bias.astype(np.float32)
        force, slope = self._forces(window, candidates)
        payload = candidates.payload_mass.astype(np.float32)[None, :]
        armature = candidates.armature.T
        for j in range(n):
            force[j] -= bias[:, j, None] + payload * extra_bias[:, j, None]
        matrix: list[list[Array]] = [
            [mass[:, i, j, None] + payload * extra_mass[:, i, j, None] for j in range(i + 1)] for i in range(n)
        ]
        for j in range(n):
            matrix[j][j] += armature[j] + dt * slope[j]
        _solve_in_place(matrix, force)
        force *= dt
        force -= window.change.T[:, :, None].astype(np.float32)
        return force

    def _forces(self, window: Window, candidates: Parameters) -> tuple[Array, Array]:
        """Driven torque minus losses, and the slope of the losses, (n, T, K) each."""
        shape = (self.robot.n, len(window.velocity), *candidates.trials)
        force, slope = np.empty(shape, np.float32), np.empty(shape, np.float32)
        gain, bias, dead, damping, height, steepness, shift = (
            np.moveaxis(getattr(candidates, name), 0, -1) for name in PAIRS
        )  # (n, 2, K) each
        still = _expit(steepness * shift)
        for j in range(self.robot.n):
            command = window.command[:, j].astype(np.float32)
            velocity = window.velocity[:, j, None].astype(np.float32)
            side = (command < 0.0).astype(int)
            scaled = gain[j][side] * command[:, None]
            width = dead[j][side]
            outside = scaled - np.sign(command)[:, None] * (np.float32(1.0 - DEAD_ZONE_SLOPE) * width)
            driven = np.where(np.abs(scaled) <= width, np.float32(DEAD_ZONE_SLOPE) * scaled, outside)
            side = (window.velocity[:, j] < 0.0).astype(int)
            steep, amplitude, viscous = steepness[j][side], height[j][side], damping[j][side]
            value = _expit(steep * (velocity + shift[j][side]))
            force[j] = driven + bias[j][side] - viscous * velocity - amplitude * (value - still[j][side])
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
