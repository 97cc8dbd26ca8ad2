"""Arms that are pushed and commanded at random within Table II, and paid by Table III."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.comply.admittance import Admittance, AdmittanceSettings
from retorque.control.comply.compliance_action import ComplianceAction, critical_damping
from retorque.control.comply.rotation_steps import rotate_by, rotation_between
from retorque.control.comply.site_kinematics import DampedLeastSquares, KinematicsSettings
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.sense.wrench_estimator import own_joints
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.tasks.embodiments import Embodiment
from retorque.tasks.force_policies.force_arm import SITE
from retorque.tasks.force_policies.force_view import COMMANDED, PLACE, PUSHED, STIFFNESS, TURN, ForceView
from retorque.work.array import Array

PHYSICS_STEP = 4e-3
"""Coarser than the benches' 1 ms [s]."""
LENGTH, MOVING = 100, 40
"""Ticks that a command stands, and in which its pose is reached from the one before."""
UNTOUCHED = 0.3
"""Share of commands during which nothing pushes."""
NEAR, NEAR_SPEED, NEAR_TURN = 150.0, 10.0, 10.0
"""Table III's unnamed sigmas: of positions [1/m²], velocities [s²/m²] and rotations [1/rad²]."""


@dataclass(frozen=True, kw_only=True)
class ForceRewards:
    """Weights of Table III; its collision term is not here, since the held arm has nothing to collide with."""

    position: float
    velocity: float
    rotation: float
    motor: float
    energy: float
    action_rate: float


REWARDS = {
    "unifp": ForceRewards(position=10.0, velocity=1.0, rotation=3.0, motor=4.0, energy=0.1, action_rate=0.08),
    "facet": ForceRewards(position=6.0, velocity=0.6, rotation=4.0, motor=0.5, energy=1.0, action_rate=2.0),
}
"""By method."""


class ForceEnv:
    """`trials` arms with hidden friction of their own; a new command every two seconds.

    UniFP's reference is where a spring rests under the forces of now; FACET's is the mass on that spring and a damper.

    Args:
        method: unifp or facet.
        arm: as `force_arm` makes it.
        body: servo gains.
        trials: how many.
        seed: of everything random.
    """

    def __init__(self, method: str, arm: Robot, body: Embodiment, trials: int, seed: int):
        self.method, self.arm, self.trials, self.rewards = method, arm, trials, REWARDS[method]
        self._rng = np.random.default_rng([seed, 45])
        truth = MotorTruth.sample(arm, trials, seed)
        self.target = MotorTarget(arm, truth, *body.gains(arm), physics_step=PHYSICS_STEP, seed=seed)
        self.view = ForceView(arm, trials)
        tree = self.view.tree
        settings = KinematicsSettings(rotation=body.turn_weight)
        self._inverse = DampedLeastSquares(arm, tree.frames, own_joints(tree), trials, settings=settings)
        tank = AdmittanceSettings(speed=0.5, tank=1e6)  # what is taught has no tank
        self._mass = Admittance(1, trials, settings=tank)
        self.restart()

    def restart(self) -> Array:
        """Every arm at home; the first observation (trials, size)."""
        n, home = self.trials, np.tile(self.arm.home, (self.trials, 1))
        self._state = self.target.reset(home)
        self.target.push_frame(SITE, np.zeros((n, 3)))
        self.view.reset()
        self._inverse.reset(home)
        place, rotation = np.tile(self.view.place, (n, 1)), np.tile(self.view.rotation, (n, 1, 1))
        self._mass.reset(place[:, None], rotation[:, None])
        self._pen = place.copy()
        self._from, self._to = np.zeros((n, 6)), np.zeros((n, 6))
        self._tick = 0
        self._sample()
        return self._observe()

    def _sample(self) -> None:
        rng, n = self._rng, self.trials

        def within(ranges: Array) -> Array:
            return rng.uniform(ranges[:, 0], ranges[:, 1], (n, len(ranges)))

        self._from, self._to = self._to, np.concatenate([within(PLACE), within(TURN)], axis=1)
        self._force, self._stiffness = within(COMMANDED), within(STIFFNESS)
        self._pushes = within(PUSHED) * (rng.random((n, 1)) > UNTOUCHED)
        self._begin, self._end = rng.integers(0, LENGTH // 2, n), rng.integers(LENGTH // 2, LENGTH, n)
        matrix = np.zeros((n, 1, 6, 6))
        matrix[:, 0, range(6), range(6)] = self._stiffness[:, [0, 1, 2, 3, 3, 3]]
        self._matrix, self._damping = matrix, critical_damping(matrix)

    @property
    def pushed(self) -> Array:
        """(trials, 3) force on the hands now: comes and goes over a fifth of a second [N]."""
        on = np.clip((self._tick - self._begin) / 10.0, 0.0, 1.0) * np.clip((self._end - self._tick) / 10.0, 0.0, 1.0)
        return np.asarray(on[:, None] * self._pushes)

    def _desired(self) -> tuple[Array, Array]:
        share = min(1.0, self._tick / MOVING)
        numbers = self._from + share * (self._to - self._from)
        rotation = np.empty((self.trials, 3, 3))
        for new, turn in zip(rotation, numbers[:, 3:], strict=True):
            rotate_by(turn, self.view.rotation, new)
        return self.view.place + numbers[:, :3], rotation

    def _observe(self) -> Array:
        place, rotation = self._desired()
        state = self._state
        return self.view.observe(state.position, state.velocity, place, rotation, self._force, self._stiffness)

    def privileged(self) -> Array:
        """(trials, 6) what only the value is told: the force on the hand, and the pen from its reference."""
        return np.concatenate([0.2 * self.pushed, 10.0 * (self._pen - self._reference()[0])], axis=-1)

    def _reference(self) -> tuple[Array, Array]:
        """Position (trials, 3) and velocity (trials, 3) that are paid for."""
        if self.method == "facet":
            return self._mass.position[:, 0], self._mass.velocity[:, 0, :3]
        return self._desired()[0] + (self._force + self.pushed) / self._stiffness[:, :3], np.zeros((self.trials, 3))

    def step(self, share: Array) -> tuple[Array, Array]:
        """Observation (trials, size) and rewards (trials,) after an action (trials, n)."""
        before = self.view.share
        told = self.view.targets(share)
        pushed, (place, rotation) = self.pushed, self._desired()
        wrench = np.zeros((self.trials, 1, 6))
        wrench[:, 0, :3] = pushed
        command = np.zeros_like(wrench)
        command[:, 0, :3] = self._force
        asked = ComplianceAction(place[:, None], rotation[:, None], self._matrix, None, self._damping, command)
        self._mass.step(asked, wrench, self._tick * self.target.timestep)
        self.target.push_frame(SITE, pushed)
        self.target.write(Command(position=told))
        self._state = self.target.read()
        reward = self._reward(rotation, self.view.share - before)
        self._tick += 1
        if self._tick >= LENGTH:
            self._tick = 0
            self._sample()
        return self._observe(), reward

    def _reward(self, rotation: Array, change: Array) -> Array:
        w, tree, target = self.rewards, self.view.tree, self.target
        place, velocity = self._reference()
        tree.update(target.position)
        pen = tree.position[:, 0]
        speed, self._pen = (pen - self._pen) / target.timestep, pen.copy()
        turn = np.zeros((self.trials, 3))
        for out, a, b in zip(turn, tree.rotation[:, 0], rotation, strict=True):
            rotation_between(a, b, np.zeros(3), out)
        wanted = self._inverse.step(place[:, None].copy(), rotation[:, None].copy())
        power = target.command * target.velocity
        return np.asarray(
            w.position * np.exp(-NEAR * np.square(pen - place).sum(-1))
            + w.velocity * np.exp(-NEAR_SPEED * np.square(speed - velocity).sum(-1))
            + w.rotation * np.exp(-NEAR_TURN * np.square(turn).sum(-1))
            + w.motor * np.exp(-np.square(target.position - wanted).sum(-1))
            - w.energy * np.square(power).mean(-1)
            - w.action_rate * np.square(change).mean(-1)
        )

    def error(self) -> float:
        """Mean distance of the pens from their references now [m]."""
        return float(np.linalg.norm(self._pen - self._reference()[0], axis=-1).mean())
