"""What touches robots in training: joint torques, and forces at hand and arm, short and lasting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame, Robot
from retorque.work.array import Array

COUNT = 4
"""Touches a trial."""
LENGTH = (0.08, 5.0)
"""How long they last, each octave as often [s]."""
ROUND = 0.5
"""Share of them that rise and fall all along, as raised cosines; the others hold their height in between."""
FLANK = (0.02, 0.4)
"""Share of its length that another one's rise takes."""
JOINTS, HAND = 0.5, 0.25
"""Share of the trials that are pushed at the joints, and at the hand; the rest is pushed at a link of the arm."""


@dataclass(frozen=True, kw_only=True)
class TrainingTouches:
    """Touches of a batch of robots, (trials, touches) of them."""

    body: RigidBody
    frames: tuple[Frame, Frame]
    """Of hand and arm."""
    start: Array
    """(trials, touches) [s]"""
    length: Array
    """(trials, touches) [s]"""
    rise: Array
    """(trials, touches) share of the length."""
    torque: Array
    """(trials, touches, n) height at the joints, zero where a force is meant [N·m]."""
    force: Array
    """(2, trials, touches, 3) height at hand and arm in world axes [N]."""

    @classmethod
    def sample(
        cls,
        robot: Robot,
        trials: int,
        duration: float,
        pushed: float,
        share: tuple[float, float],
        rng: np.random.Generator,
    ) -> TrainingTouches:
        """Touches over a run, for a share `pushed` of the trials; joint torques are `share` of the torque limits."""
        shape = (trials, COUNT)
        shortest, longest = LENGTH
        length = shortest * (longest / shortest) ** rng.uniform(size=shape)
        rise = np.where(rng.uniform(size=shape) < ROUND, 0.5, rng.uniform(*FLANK, shape))
        start = rng.uniform(-0.1, 1.0, shape) * np.maximum(duration - length, 0.3 * duration)
        limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0)
        low, high = share
        height = low * (high / low) ** rng.uniform(size=(trials, 1, 1)) * limit
        torque = rng.choice([-1.0, 1.0], (*shape, robot.n)) * rng.uniform(0.5, 1.5, (*shape, robot.n)) * height
        force = rng.standard_normal((*shape, 3))
        force *= rng.uniform(*profile_of(robot).external_force, (*shape, 1)) / np.linalg.norm(force, axis=-1)[..., None]
        touched = rng.uniform(size=(trials, 1, 1)) < pushed
        kind = rng.uniform(size=(trials, 1, 1))
        hand = (kind >= JOINTS) & (kind < JOINTS + HAND)
        link = robot.moving_links[int(rng.integers(robot.n // 2, robot.n - 1))]
        return cls(
            body=RigidBody(robot),
            frames=(robot.end_effector, Frame(link=link.name, position=link.centre)),
            start=start,
            length=length,
            rise=rise,
            torque=torque * (touched & (kind < JOINTS)),
            force=np.stack([force * (touched & hand), force * (touched & (kind >= JOINTS + HAND))]),
        )

    def at(self, time: float, q: Array) -> Array:
        """The joint torques at a time and positions (trials, n), (trials, n) [N·m]."""
        since = (time - self.start) / self.length
        near = np.clip(np.minimum(since, 1.0 - since) / self.rise, 0.0, 1.0)
        weight = np.sin(0.5 * np.pi * near) ** 2
        total = np.einsum("tp,tpn->tn", weight, self.torque)
        forces = np.einsum("tp,ftpx->ftx", weight, self.force)
        for frame, force in zip(self.frames, forces, strict=True):
            at = np.flatnonzero(force.any(axis=-1))
            if len(at):
                jacobian = self.body.jacobian(frame, q[at])[..., :3, :]
                total[at] += np.einsum("txn,tx->tn", jacobian, force[at])
        return total
