"""Many carts with poles at once, in groups of one set of parameters each, for learning by trying."""

from __future__ import annotations

import numpy as np

from retorque.physics.dynamics import make_dynamics
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.work.array import Array

FAR = 10.0
"""A cart farther from its target than this has run away [m]."""
FAST = 60.0
"""... and so has one that moves this fast [rad/s, m/s]."""
UPRIGHT, ANYWHERE = 0.3, 0.4
"""Shares of episodes that begin near the target, so that balancing is seen early, and in any pose and motion."""
NEAR = 0.3
"""Distance from the target at which the reward for arriving has fallen to 0.6."""
CENTRED, CALM = 1.5, 4.0
"""Distance of the cart [m] and speed of the poles [rad/s] at which half of their part of the reward has gone."""


class SwingEnv:
    """Episodes of `length` steps; all groups begin together, each with parameters drawn from the task's bounds.

    Args:
        task: robot, target, bounds, noise.
        groups: sets of parameters.
        each: robots of a group.
        length: steps of an episode.
        seed: of everything random.
    """

    def __init__(self, task: MpcTask, groups: int, each: int, length: int, seed: int):
        self.task, self.groups, self.each, self.length = task, groups, each, length
        self.dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
        self.trials = groups * each
        self._rng = np.random.default_rng(seed)
        self.restart()

    def restart(self) -> None:
        """Other parameters, and every robot at a start of its own."""
        free, rng, n = self.task.free, self._rng, self.task.robot.n
        self.p = rng.uniform(free.lower, free.upper, (self.groups, free.size))
        self.states = np.tile(self.task.start, (self.trials, 1))
        self.states += 0.1 * rng.standard_normal(self.states.shape)
        kind = rng.random(self.trials)
        spread = np.concatenate([[0.5], np.full(n - 1, 0.3), np.full(n, 1.0)])
        near = self.task.cost.target + spread * rng.standard_normal(self.states.shape)
        wide = np.concatenate([[2.0], np.full(n - 1, np.pi), [2.0], np.full(n - 1, 5.0)])
        anywhere = self.task.cost.target + wide * rng.uniform(-1.0, 1.0, self.states.shape)
        self.states = np.where((kind < UPRIGHT)[:, None], near, self.states)
        self.states = np.where((kind > 1.0 - ANYWHERE)[:, None], anywhere, self.states)
        self.step_number = 0

    @property
    def parameters(self) -> Array:
        """(trials, size) of each robot."""
        return np.repeat(self.p, self.each, axis=0)

    @property
    def measured(self) -> Array:
        """(trials, 2 n) states with the task's noise."""
        return self.states + self.task.noise * self._rng.standard_normal(self.states.shape)

    def step(self, shares: Array) -> tuple[Array, Array, bool]:
        """Rewards (trials,), who ran away (trials,), and whether the episode is over, after inputs (trials, motors)."""
        sent = np.clip(shares, -1.0, 1.0)
        inputs = sent * self.dynamics.input_limit
        inputs = inputs + self.task.noise * self._rng.standard_normal(inputs.shape)
        for k in range(self.groups):
            mine = slice(k * self.each, (k + 1) * self.each)
            self.states[mine] = self.dynamics.step(self.states[mine], inputs[mine], self.task.free.whole(self.p[k]))
        self.step_number += 1
        gone = ~np.isfinite(self.states).all(axis=-1)
        gone |= np.abs(self.states[:, 0] - self.task.cost.target[0]) > FAR
        gone |= np.abs(self.states[:, self.task.robot.n :]).max(axis=-1) > FAST
        reward = self._reward(sent)
        reward[gone] = 0.0  # no reward is below it: whoever runs away loses what would have come
        self.states[gone] = self.task.start
        return reward, gone, self.step_number >= self.length

    def _reward(self, shares: Array) -> Array:
        """Poles up, as long as the cart is near and they are calm; most where the distance of success is small.

        Nothing is charged for trying: with a price on effort and distance, a robot that cannot swing up yet learns to
        hang still first, and never tries again.
        """
        n = self.task.robot.n
        x = self.states[:, 0] - self.task.cost.target[0]
        up = 0.5 * (1.0 + np.cos(np.cumsum(self.states[:, 1:n], axis=-1)).mean(axis=-1))
        near = 0.5 * (1.0 + 1.0 / (1.0 + np.square(x / CENTRED)))
        calm = 0.5 * (1.0 + 1.0 / (1.0 + np.square(self.states[:, n + 1 :] / CALM).sum(axis=-1)))
        arrived = np.exp(-0.5 * np.square(self.task.cost.error(self.states) / NEAR).sum(axis=-1))
        return up * near * calm * (1.0 - 0.1 * np.square(shares).mean(axis=-1)) + 2.0 * arrived
