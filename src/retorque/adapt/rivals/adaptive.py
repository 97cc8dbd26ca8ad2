"""Composite adaptive control after Slotine and Li: gradient steps on the robot's parameters, with projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt.ideal_velocity import IdealVelocity, joint_inertia
from retorque.adapt.recursive.equation import averaged_equation
from retorque.adapt.recursive.inverse import Inverse, estimate_arrays
from retorque.adapt.recursive.linear_model import LinearModel
from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.history import History
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class AdaptiveSettings:
    """Settings of the adaptive controller."""

    window: float = 0.040
    """Time over which the prediction error is averaged [s]."""
    stride: float = 0.010
    """Time between steps of the parameters [s]."""
    composite: float = 0.6
    """Size of a step on the prediction error; 1: the error of this window vanishes."""
    tracking: float = 0.05
    """Size of a step on the velocity that is lacking."""
    damping: float = 40.0
    """Torque for each rad/s that is lacking, times the joint's inertia at home [1/s]."""
    noise: float = 0.6
    """Prediction errors are taken to be this uncertain, times friction_max / 3 of the joint [N·m]."""
    memory: float = 0.5
    """Time over which a lacking velocity is forgotten [s]."""
    bound: float = 3.0
    """Parameters stay within so many prior deviations: the projection."""


class Adaptive(Adapter):
    """τ = Y(q, q̇, q̈⁰) θ + K_D s, with θ' from s and from the prediction error (Slotine and Li, 1989), projected.

    The reference acceleration is the ideal robot's own under the nominal torque, s the velocity that is lacking behind
    it. θ are the same unknowns, scaled by the same prior, as those of `recursive`; steps are normalised gradients and
    keep no covariance. Friction, payload and touch are all parameters to it.
    """

    periods = (5e-4, 0.01)
    settings_type = AdaptiveSettings
    remembered: tuple[str, ...] = ("history", "_ideal", "_missing", "_mean", "belief")

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        settings: AdaptiveSettings | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        self.settings = s = settings or AdaptiveSettings()
        self.model = LinearModel(robot)
        self.learn_every = max(1, round(s.stride / timestep))
        self._samples = round(s.window / timestep) + 1
        self.history = History(self._samples, trials, robot.n, timestep)
        self._ideal = IdealVelocity(robot, trials, timestep, s.memory)
        self._inverse = Inverse(self.model, timestep)
        inertia = joint_inertia(robot)
        self._damping = s.damping * inertia
        self._noise = (s.noise * np.maximum(self.model.profile.friction_max, 1e-6) / 3.0) ** 2
        self._most = 0.3 * np.minimum(robot.torque_limit, 1e3) / self._damping  # [rad/s]
        self._missing = np.zeros((trials, robot.n))
        self._start = self._ideal_parameters()
        self._mean = np.zeros((trials, self.model.size))
        self.reset()

    def reset(self) -> None:
        self.history.reset()
        self._ideal.reset()
        self._missing[:] = 0.0
        self._mean[:] = self._start
        self.belief = self._believe()

    def carry(self) -> None:
        self._ideal.reset()
        self._missing[:] = 0.0

    def resume(self) -> None:
        self.history.reset()
        self.carry()

    def observe(self, state: State) -> None:
        self.history.add(state)
        self._missing = self._ideal.hold(self._ideal.observe(state), self._most)

    def learn(self) -> Belief | None:
        if self.history.count < self._samples:
            return None
        s, model = self.settings, self.model
        equation = averaged_equation(self.history, model, self._samples, self._samples, self.learn_every)
        rows = np.where(equation.accepted[:, None, None], equation.rows, 0.0)
        error = equation.torque - equation.prior - np.matmul(rows, self._mean[..., None])[..., 0]
        error = s.composite * np.where(equation.accepted[:, None], error, 0.0)
        error += s.tracking * self._damping * self._missing
        gram = np.matmul(rows, rows.mT)
        index = np.arange(self.robot.n)
        gram[:, index, index] += self._noise
        step = np.matmul(rows.mT, np.linalg.solve(gram, error[..., None]))[..., 0]
        self._mean = self._projected(self._mean + step)
        self.belief = self._believe()
        return self.belief

    def adopt(self, belief: Belief) -> None:
        self.belief = belief

    def correct(self, state: State, nominal_torque: Array) -> Array:
        acceleration = self._ideal.command(state, nominal_torque)
        torque = self._inverse(self.belief.arrays, state.position, state.velocity, acceleration)
        return torque + self._damping * self._missing

    def _projected(self, mean: Array) -> Array:
        """Parameters within so many deviations of the prior, and joint unknowns within what they can be."""
        model, split = self.model, self.robot.n * self.model.joint_mean.shape[-1]
        mean = np.clip(mean, -self.settings.bound, self.settings.bound)
        joint, _ = model.unknowns(mean)
        inside = np.clip(joint, model.low, model.high)
        own = np.linalg.solve(model.joint_root, (inside - model.joint_mean)[..., None])[..., 0]
        changed = (inside != joint).any(axis=-1)[..., None]
        before = mean[:, :split].reshape(own.shape)
        mean[:, :split] = np.where(changed, own, before).reshape(len(mean), -1)
        return mean

    def _ideal_parameters(self) -> Array:
        """Whitened coordinates of the robot without losses: nothing is corrected before something is learnt."""
        model, n = self.model, self.robot.n
        joint = np.zeros_like(model.joint_mean)
        joint[:, 0] = self.robot.armature
        own = np.linalg.lstsq(_blocks(model.joint_root), (joint - model.joint_mean).reshape(-1), rcond=None)[0]
        inertial = np.linalg.lstsq(model.inertial_root, model.ideal_inertial - model.inertial_mean, rcond=None)[0]
        return np.concatenate([own.reshape(n, -1).reshape(-1), inertial, [0.0]])

    def _believe(self) -> Belief:
        arrays = estimate_arrays(self.model, self._mean, np.zeros((self.trials, self.robot.n)))
        return Belief.of(type(self).__name__, self.history.time, **arrays)


def _blocks(roots: Array) -> Array:
    """A block-diagonal matrix of roots (n, F, F)."""
    n, size, _ = roots.shape
    out = np.zeros((n * size, n * size))
    for j in range(n):
        out[j * size : (j + 1) * size, j * size : (j + 1) * size] = roots[j]
    return out
