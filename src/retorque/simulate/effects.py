"""Effects that no parameter describes: ripple, stick-slip, flexible joints, backlash, extra delay.

They are for tests of what an adapter does when its model is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import unknown


class Effect:
    """One effect on a batch of targets; the base class changes nothing."""

    substeps = 1
    """Physics steps a control period that the effect needs to be stable."""
    transmits = False
    """Whether a motor with a velocity of its own stands between drive and link."""
    motor_velocity: Array

    def reset(self, position: Array, velocity: Array) -> None:
        """Start at a state (trials, n)."""

    def link_armature(self, armature: Array) -> Array:
        """The armature that moves rigidly with the link (trials, n) [kg·m²]."""
        return armature

    def command(self, command: Array) -> Array:
        """The command that reaches the drive, once a control period (trials, n) [N·m]."""
        return command

    def encoders(self, position: Array, velocity: Array) -> tuple[Array, Array]:
        """What the encoders turn with, given the links' position and velocity (trials, n)."""
        return position, velocity

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        """The torque on the link, and how fast it falls with the link's velocity [N·m, N·m·s/rad]."""
        return torque, slope


class Ripple(Effect):
    """Torque ripple of the gears: amplitude x sin(order x position)."""

    def __init__(self, amplitude: float = 0.6, order: float = 20.0):
        self.amplitude, self.order = amplitude, order

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        return torque + self.amplitude * np.sin(self.order * position), slope


class LuGre(Effect):
    """Stick-slip on top of the other losses: bristles of stiffness sigma0 that slip at Coulomb, stick at static level.

    ż = v - sigma0 |v| z / g(v), g = Fc + (Fs - Fc) exp(-(v / vs)²), F = sigma0 z + sigma1 ż. The bristle state is
    integrated implicitly, so it is stable for any stiffness.
    """

    substeps = 4

    def __init__(
        self,
        coulomb: float = 1.0,
        static: float = 1.8,
        stribeck_velocity: float = 0.05,
        stiffness: float = 2000.0,
        damping: float = 1.0,
    ):
        self.coulomb, self.static, self.stribeck_velocity = coulomb, static, stribeck_velocity
        self.stiffness, self.damping = stiffness, damping

    def reset(self, position: Array, velocity: Array) -> None:
        self._bristle = np.zeros_like(position)

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        level = self.coulomb + (self.static - self.coulomb) * np.exp(-((velocity / self.stribeck_velocity) ** 2))
        decay = self.stiffness * np.abs(velocity) / level
        before = self._bristle
        self._bristle = (before + timestep * velocity) / (1.0 + timestep * decay)
        rate = (self._bristle - before) / timestep
        # While sticking, the force grows with velocity as a spring over the step; that is the slope to integrate over.
        stick = (self.stiffness * timestep + self.damping) / (1.0 + timestep * decay) ** 2
        return torque - self.stiffness * self._bristle - self.damping * rate, slope + stick


class FlexibleJoints(Effect):
    """A spring between motor and link, with optional backlash; the sensors see the link.

    The rotor (the joint's armature) takes the drive's torque and the motor-side losses, and passes on
    stiffness x (twist beyond the gap) + damping x twist rate.
    """

    substeps = 8
    transmits = True
    lightest_rotor = 1e-4
    """A motor that turns freely in the gap must weigh something, also where the model has no armature [kg·m²]."""

    def __init__(self, stiffness: float = 8000.0, damping: float = 8.0, gap: float = 0.0):
        self.stiffness, self.damping, self.gap = stiffness, damping, gap

    def reset(self, position: Array, velocity: Array) -> None:
        self._motor = position.copy()
        self.motor_velocity = velocity.copy()

    def link_armature(self, armature: Array) -> Array:
        self._rotor = np.maximum(0.9 * armature, self.lightest_rotor)
        return np.maximum(armature - self._rotor, 0.0)

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        twist = self._motor - position
        beyond = np.sign(twist) * np.maximum(np.abs(twist) - 0.5 * self.gap, 0.0)
        engaged = np.abs(twist) >= 0.5 * self.gap
        damping = np.where(engaged, self.damping, 0.0)
        stiffness = np.where(engaged, self.stiffness, 0.0)
        passed = self.stiffness * beyond + damping * (self.motor_velocity - velocity)
        # The rotor is stepped implicitly in its own velocity, so that light rotors stay stable.
        effective = self._rotor + timestep * (slope + damping) + timestep**2 * stiffness
        change = timestep * (torque - passed - timestep * stiffness * (self.motor_velocity - velocity)) / effective
        self.motor_velocity = self.motor_velocity + change
        self._motor = self._motor + timestep * self.motor_velocity
        return passed, damping + timestep * stiffness


class Delay(Effect):
    """The command reaches the drive a few ticks late."""

    def __init__(self, ticks: int = 3):
        self.ticks = ticks

    def reset(self, position: Array, velocity: Array) -> None:
        self._queue: list[Array] = []

    def command(self, command: Array) -> Array:
        if not self._queue:  # the robot was held by this torque before the first tick
            self._queue = [command.copy() for _ in range(self.ticks)]
        self._queue.append(command.copy())
        return self._queue.pop(0)


EFFECTS: dict[str, Callable[[], Effect]] = {
    "lugre": LuGre,
    "ripple": Ripple,
    "flexibility": FlexibleJoints,
    "backlash": lambda: FlexibleJoints(gap=np.deg2rad(0.1)),
    "delay": Delay,
}
"""The effects of the `--unmodelled` suite by name."""


def effect(name: str) -> Effect:
    """A new effect of that name."""
    if name not in EFFECTS:
        raise unknown("effect", name, EFFECTS)
    return EFFECTS[name]()
