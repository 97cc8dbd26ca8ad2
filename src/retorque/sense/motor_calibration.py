"""Motor constants from logs, with errors: free sweeps, stalled windings, and loads that are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError

MOVING = 0.05
"""Speed above which friction has a direction [rad/s]."""
LEAST = 20
"""Samples that a fit needs."""


@dataclass(frozen=True)
class Constant:
    """A number and its standard deviation."""

    value: float
    deviation: float

    def __str__(self) -> str:
        return f"{self.value:.5g} ± {self.deviation:.2g}"


@dataclass(frozen=True)
class DriveFit:
    """What loads tell of a motor with its gear (equations 5 to 7)."""

    torque_constant: Constant
    """Kt [N·m/A]"""
    efficiency: Constant
    """η"""
    coulomb: Constant
    """[N·m]"""


def least_squares(matrix: Array, right: Array) -> tuple[Array, Array]:
    """Solution (k,) and covariance (k, k), the noise taken from the residual."""
    if len(right) < max(LEAST, matrix.shape[1] + 1):
        raise RetorqueError(f"a fit needs at least {LEAST} samples, not {len(right)}; record a longer log")
    scale = np.linalg.norm(matrix, axis=0)
    if np.any(scale == 0.0) or np.linalg.cond(matrix / scale) > 1e6:
        raise RetorqueError("the log does not move or load the motor enough to tell its constants apart; vary it more")
    solution, *_ = np.linalg.lstsq(matrix, right, rcond=None)
    left = right - matrix @ solution
    variance = float(left @ left) / (len(right) - matrix.shape[1])
    return solution, variance * np.linalg.inv(matrix.T @ matrix)


def velocity_constant(pwm: Array, voltage: Array, velocity: Array) -> Constant:
    """Kv from a sweep without load: V = q̇ / Kv + what friction costs, by direction (equation 3)."""
    moving = np.abs(velocity) > MOVING
    volts = (pwm * voltage)[moving]
    speed = velocity[moving]
    solution, covariance = least_squares(np.stack([speed, np.sign(speed)], axis=1), volts)
    if solution[0] <= 0.0:
        raise RetorqueError("voltage falls with speed in this log; check the signs of pwm and velocity")
    value = 1.0 / float(solution[0])
    return Constant(value, float(np.sqrt(covariance[0, 0])) * value**2)


def winding_resistance(pwm: Array, voltage: Array, velocity: Array, current: Array, kv: float) -> Constant:
    """Rw from a current sensor under varying voltage (equation 4)."""
    solution, covariance = least_squares(current[:, None], pwm * voltage - velocity / kv)
    if solution[0] <= 0.0:
        raise RetorqueError("current falls with voltage in this log; check the signs of pwm and current")
    return Constant(float(solution[0]), float(np.sqrt(covariance[0, 0])))


def drive(load: Array, current: Array, velocity: Array) -> DriveFit:
    """Kt, η and Coulomb friction from loads that are known, driven and let down (equations 5 to 7).

    Driving, I = (|load| + F) / (η Kt); driven, I = η (|load| - F) / Kt: two slopes and two offsets for three numbers.
    """
    sign = np.sign(load)
    size, drawn = np.abs(load), sign * current
    forward = sign * velocity > MOVING
    backward = (sign * velocity < -MOVING) & (drawn > 0.0)
    if forward.sum() < LEAST or backward.sum() < LEAST:
        raise RetorqueError("the load must be both lifted and let down, slowly; record a motion that does both")
    up, up_error = least_squares(np.stack([size[forward], np.ones(forward.sum())], axis=1), drawn[forward])
    down, down_error = least_squares(np.stack([size[backward], np.ones(backward.sum())], axis=1), drawn[backward])
    if up[0] <= 0.0 or down[0] <= 0.0:
        raise RetorqueError("the current does not grow with the load in this log; check its sign and units")
    kt = 1.0 / np.sqrt(up[0] * down[0])
    eta = np.sqrt(down[0] / up[0])
    relative = up_error[0, 0] / up[0] ** 2 + down_error[0, 0] / down[0] ** 2
    lift, weigh = eta * kt, 1.0 / (up_error[1, 1] * (eta * kt) ** 2)
    drop, weigh_down = kt / eta, 1.0 / (down_error[1, 1] * (kt / eta) ** 2)
    coulomb = (weigh * up[1] * lift - weigh_down * down[1] * drop) / (weigh + weigh_down)
    return DriveFit(
        torque_constant=Constant(float(kt), float(0.5 * kt * np.sqrt(relative))),
        efficiency=Constant(float(eta), float(0.5 * eta * np.sqrt(relative))),
        coulomb=Constant(float(max(coulomb, 0.0)), float(1.0 / np.sqrt(weigh + weigh_down))),
    )


def pendulum_load(position: Array, mass: float, arm: float, gravity: float = 9.81) -> Array:
    """Torque (samples,) of a payload on a level axis, zero hanging down: no bench sensor needed [N·m]."""
    return mass * gravity * arm * np.sin(position)
