"""What a gear's friction is now, as far as its card and the path of its joint tell, with what is left unknown."""

from __future__ import annotations

import numpy as np

from retorque.physics.kernels.compiled import kernel
from retorque.physics.motor_torque import JointMotors
from retorque.work.array import Array

PRESLIDING = 0.001
"""Way over which friction follows a reversal [rad]."""
SLIDING = 1.5
"""A reported speed of more than so many of its steps says which way a joint slides."""
STATIC = 1.6
"""Friction at rest over the card's level, at most: static friction, and a card that is wrong."""
SETTLED = 0.2
"""Time after which a joint that has not moved rests [s]."""
SETTLING = 0.2
"""Share of a new sight of friction in free space that is believed at once."""
FORGETTING = 0.5
"""Time at rest after which friction may be anywhere between its bounds [s]."""


@kernel
def _friction(
    drive: Array,
    q: Array,
    qd: Array,
    card: Array,
    timestep: float,
    error: float,
    memory: Array,
    out: Array,
) -> None:
    """Fill torque behind the gear, friction, its variance and the share of rest; see `GearFriction`."""
    coulomb, efficiency, viscous, step, speed, noise = card[0], card[1], card[2], card[3], card[4], card[5]
    held, phase, rest, before = memory[0], memory[1], memory[2], memory[3]
    passed, lost, variance, resting, hidden = out[0], out[1], out[2], out[3], out[4]
    for t in range(drive.shape[0]):
        for j in range(drive.shape[1]):
            move = q[t, j] - held[t, j]
            if abs(move) > 1.01 * step[j]:  # the encoder's last step says nothing
                move -= step[j] * np.sign(move)
                held[t, j] += move
                phase[t, j] = min(1.0, max(-1.0, phase[t, j] + move / PRESLIDING))
                rest[t, j] = 0.0
            elif abs(qd[t, j]) > speed[j]:
                phase[t, j] = np.sign(qd[t, j])
                rest[t, j] = 0.0
            else:
                rest[t, j] += timestep
                # A joint that sticks takes what the drive adds into its friction.
                side = 1.0 - efficiency[j] if phase[t, j] * drive[t, j] > 0.0 else 1.0 / efficiency[j] - 1.0
                room = coulomb[j] + side * abs(drive[t, j])
                if room > 0.0:
                    taken = (drive[t, j] - before[t, j]) / room
                    most = max(1.0, abs(phase[t, j]))
                    phase[t, j] = min(most, max(-most, phase[t, j] + taken))
            before[t, j] = drive[t, j]
            z, torque = phase[t, j], drive[t, j]
            share = 1.0 - efficiency[j] if z * torque > 0.0 else 1.0 / efficiency[j] - 1.0
            level = coulomb[j] + share * abs(torque)
            gone = 1.0 - np.exp(-max(0.0, rest[t, j] - SETTLED) / FORGETTING)
            lost[t, j] = z * level * (1.0 - gone) + viscous[j] * qd[t, j]  # it can only have fallen back meanwhile
            passed[t, j] = torque - lost[t, j]
            known = error * error / 3.0 * (level * z) ** 2
            between = level * level / 3.0 * (1.0 - min(1.0, z * z))
            if rest[t, j] > 0.0:  # at rest, friction answers to whatever changes, in the end up to its static level
                stays = np.exp(-rest[t, j] / FORGETTING)
                between = max(between, level * level / 3.0 * (0.5 * stays + STATIC**2 * (1.0 - stays)))
            hidden[t, j] = between
            variance[t, j] = known + between + (error * viscous[j] * qd[t, j]) ** 2 / 3.0 + noise[j]
            resting[t, j] = max(1.0 - min(1.0, abs(z)), gone)


@kernel
def _settle(
    external: Array,
    drive: Array,
    free: Array,
    card: Array,
    memory: Array,
    out: Array,
) -> None:
    """Fill the phase of resting joints in free trials; see `GearFriction.settle`."""
    phase, rest, lost = memory[1], memory[2], out[1]
    for t in range(drive.shape[0]):
        for j in range(drive.shape[1]):
            if free[t, j] and rest[t, j] >= SETTLED:
                hidden = lost[t, j] - external[t, j]  # what the drive gives beyond what the links need
                driving = hidden * drive[t, j] > 0.0
                share = 1.0 - card[1, j] if driving else 1.0 / card[1, j] - 1.0
                level = card[0, j] + share * abs(drive[t, j])
                if level > 0.0:
                    z = min(STATIC, max(-STATIC, hidden / level))
                    phase[t, j] += SETTLING * (z - phase[t, j])
                    rest[t, j] = SETTLED


class GearFriction:
    """Friction of every joint from its motor's card: direction by the joint's path, size by the load.

    Sliding, it opposes the motion, wrong by at most `error`. After a reversal it follows over a short way, and the
    longer a joint rests, the less is known of it: the variance grows to that of anything between the bounds.

    Args:
        joints: the motors.
        trials: robots served at once.
        timestep: control period [s].
        error: largest relative error of the cards' friction.
        noise: (n,) variance of the motors' torque reports [(N·m)²].
    """

    def __init__(self, joints: JointMotors, trials: int, timestep: float, error: float, noise: Array | float = 0.0):
        n = len(joints.motors)
        step = np.array([motor.position_step for motor in joints.motors])
        speed = np.array([motor.velocity_step for motor in joints.motors])
        self._card = np.array(
            [
                joints.coulomb,
                joints.efficiency,
                joints.viscous,
                np.nan_to_num(step, nan=1e-4),
                SLIDING * np.nan_to_num(speed, nan=0.01),
                np.broadcast_to(noise, n),
            ]
        )
        self._timestep, self._error = timestep, error
        self._memory = np.zeros((4, trials, n))
        self._out = np.zeros((5, trials, n))

    def reset(self, position: Array) -> None:
        """Begin at rest at a position (trials, n)."""
        self._memory[:] = 0.0
        self._memory[0] = position
        self._memory[2] = 10.0 * FORGETTING

    def update(self, drive: Array, position: Array, velocity: Array) -> tuple[Array, Array, Array, Array]:
        """Torque behind the gear (trials, n) [N·m], its variance, how far each joint rests (0 to 1), and what of the
        variance that rest hides."""
        _friction(drive, position, velocity, self._card, self._timestep, self._error, self._memory, self._out)
        return self._out[0], self._out[2], self._out[3], self._out[4]

    def settle(self, external: Array, drive: Array, free: Array) -> None:
        """In free space the friction of a resting joint is seen: what looks external then.

        Args:
            external: (trials, n) torque that the last update left unexplained [N·m].
            drive: (trials, n) motor torque [N·m].
            free: (trials, n) joints of sites that nothing touches.
        """
        _settle(external, drive, free, self._card, self._memory, self._out)
