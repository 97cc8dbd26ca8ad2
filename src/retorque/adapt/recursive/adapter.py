"""The recursive Bayesian adapter: learns everything linear about the robot while it moves, and inverts it each tick."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from retorque.adapt.recursive.linear_model import BASIS, PER_JOINT, SIGN_WIDTH, LinearModel
from retorque.adapt.recursive.readout import Readout, read
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.adapt.recursive.window import Window, slope_weights
from retorque.loop.adapter import Adapter
from retorque.loop.health import Health
from retorque.physics.inertia import nearest_feasible
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array

GROUPS = 5
"""Pieces of a window over which the velocity-dependent features are averaged."""
VELOCITY_SCALES = np.array([1.0, *BASIS, 1.0 / SIGN_WIDTH])
"""Of viscous friction (linear), the friction basis and the bias's step (saturating) [s/rad]."""
SANE = 1e6
"""Torques and rows beyond this are no measurement [N·m]."""


@dataclass(frozen=True, kw_only=True)
class RecursiveSettings:
    """Settings of the recursive adapter."""

    window: int = 41
    """Samples in an averaged equation."""
    first_window: int = 15
    """Samples in the very first one."""
    stride: int = 10
    """Ticks between updates."""
    noise: float = 0.3
    """First guess of an equation's noise, times friction_max / 3 of the joint [N·m]."""
    noise_floor: float = 0.04
    """Least noise that is ever believed, on the same scale [N·m]."""
    noise_memory: float = 1.0
    """Time over which the noise level is learnt [s]."""
    forgetting: float = 0.997
    """Share of the information in an excited direction that survives one update."""
    disturbance: float = 0.3
    """First guess of what the model cannot say, times friction_max / 3 of the joint [N·m]."""
    disturbance_time: float = 0.15
    """How long what the model cannot say is taken to last [s]."""
    disturbance_memory: float = 1.0
    """Time over which its size is learnt [s]."""


@dataclass(slots=True)
class Equation:
    """One averaged equation of motion a joint: torque = prior + rows z."""

    torque: Array
    """(trials, n) [N·m]"""
    prior: Array
    """(trials, n) torque of the prior's mean [N·m]."""
    rows: Array
    """(trials, n, size)"""
    ideal: Array
    """(trials, n) torque of the ideal robot [N·m]."""
    noise_factor: float
    """How much noisier than a full, independent window."""
    accepted: Array
    """(trials,) whether it may be learnt from."""


class Recursive(Adapter):
    """Linear-Gaussian regression of the inverse dynamics, with learnt noise and a fast disturbance on top.

    Every `stride` ticks the last `window` samples give one averaged equation a joint, and a square-root Kalman filter
    updates the unknowns. What persists for a moment without being explained is a disturbance, filtered joint by joint;
    its size is learnt from the correlation of residuals that share no sample. Each tick the torque is the inverse
    dynamics of the estimate at the acceleration that the ideal robot would have.
    """

    acceptance_delay = 0
    """Updates that an equation waits before it is learnt from."""

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        settings: RecursiveSettings | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        self.settings = s = settings or RecursiveSettings()
        self.model = LinearModel(robot)
        self.learn_every = s.stride
        self._window = Window(s.window, trials, robot.n, timestep)
        self._filter = SquareRootFilter(trials, self.model.size, s.forgetting)
        self._scale = np.maximum(self.model.profile.friction_max, 1e-6) / 3.0
        self.reset()

    def reset(self) -> None:
        s, shape = self.settings, (self.trials, self.robot.n)
        self._window.clear()
        self._filter.reset()
        self._noise = np.broadcast_to((s.noise * self._scale) ** 2, shape).copy()
        self._persistent = np.broadcast_to((s.disturbance * self._scale) ** 2, shape).copy()
        self._total = self._persistent + (0.1 * self._scale) ** 2
        self._residuals: list[tuple[Array, Array]] = []
        self._pending: list[Equation] = []
        self._clock = -np.inf
        self.health[:] = 0
        self._disturbance = np.zeros(shape)
        self._doubt = np.zeros(shape)
        self._evidence = np.full(self.trials, -8.0)
        self._refresh()

    def observe(self, state: State) -> None:
        step = state.time - self._clock
        if step < 0.5 * self.timestep:  # a report that repeats or comes late says nothing new
            return
        if step > 1.5 * self.timestep:
            self._window.clear()
        self._clock = state.time
        self._window.push(state)

    def learn(self) -> None:
        equation = self._equation()
        if equation is None:
            return
        expected, spread = self._filter.predict(equation.rows)
        innovation = equation.torque - equation.prior - expected
        self._screen(equation, innovation, spread)
        self._pending.append(equation)
        if len(self._pending) <= self.acceptance_delay:
            return
        self._absorb(self._pending.pop(0))
        expected, spread = self._filter.predict(equation.rows)
        residual = equation.torque - equation.prior - expected
        self._learn_disturbance(np.where(equation.accepted[:, None], residual, 0.0), equation.accepted)
        self._refresh()

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd = state.position, state.velocity
        ideal = self.model.body.forward_dynamics(q, qd, nominal_torque)
        return nominal_torque + self._trust * (self._inverse(q, qd, ideal) - nominal_torque)

    def readout(self, trial: int = 0) -> Readout:
        """What has been learnt of one robot, with errors, and what its motion has not shown."""
        return read(self.model, self._filter, trial)

    def _screen(self, equation: Equation, innovation: Array, spread: Array) -> None:
        """Mark which trials' equations may be learnt from."""
        self.health[:] = np.where(equation.accepted, 0, int(Health.SKIPPED))

    def _absorb(self, equation: Equation) -> None:
        """Update the unknowns and the noise level with an equation of the trials that accept it."""
        use = equation.accepted
        rows = np.where(use[:, None, None], equation.rows, 0.0)
        measured = np.where(use[:, None], equation.torque - equation.prior, 0.0)
        expected, spread = self._filter.predict(rows)
        innovation = measured - expected
        noise = self._noise * equation.noise_factor
        self._weigh(np.where(use[:, None], equation.torque - equation.ideal, 0.0), innovation, spread, noise)
        self._filter.update(innovation, rows, spread, noise)
        self._constrain(use)
        expected, spread = self._filter.predict(rows)
        self._learn_noise(measured - expected, np.sum(spread * spread, axis=1), use)

    def _equation(self) -> Equation | None:
        """The averaged equation of motion of the last samples, if there are enough."""
        s, w, model = self.settings, self._window, self.model
        count = w.count
        if count < s.first_window:
            return None
        at = w.last(count)
        slope, mean = slope_weights(count, self.timestep)
        velocity = w.velocity[at]
        acceleration = np.tensordot(slope, velocity, 1)
        position = np.tensordot(0.5 * (np.append(0.0, mean) + np.append(mean, 0.0)), w.position[at], 1)
        middle = np.mean(velocity, axis=0)
        torques = w.torque[at][1:]
        torque = np.tensordot(mean, torques, 1)
        sign = np.tensordot(mean, model.sign(torques), 1)
        features = np.zeros((*middle.shape, PER_JOINT))
        edges = np.linspace(0, count - 1, GROUPS + 1).astype(int)
        for low, high in pairwise(edges):
            weight = float(mean[low:high].sum())
            offset = (0.5 * (low + high) - 0.5 * (count - 1)) * self.timestep
            features += weight * model.joint_features(middle + offset * acceleration, acceleration, sign, torque)
        regressor = model.body.regressor(position, middle, acceleration)
        rate = np.tensordot(slope_weights(count - 1, self.timestep)[0], torques, 1)
        prior, rows = model.rows(regressor, features, rate)
        ideal = regressor @ model.ideal_inertial + self.robot.armature * acceleration
        # Windows share samples, and short ones are noisier.
        factor = 0.7 * s.window / s.stride * (s.window / count) ** 3
        sane = np.abs(rows).max(axis=(1, 2)) + np.abs(torque).max(axis=1) < SANE
        return Equation(torque, prior, rows, ideal, factor, w.valid[at].all(axis=0) & sane)

    def _weigh(self, mismatch: Array, innovation: Array, spread: Array, noise: Array) -> None:
        """Evidence that anything is hidden at all: the prior family's likelihood against the ideal robot's.

        Without it, a robot with nothing hidden would be corrected for the average hidden payload before the first
        equations say otherwise.
        """
        covariance = np.matmul(np.swapaxes(spread, -1, -2), spread)
        index = np.arange(noise.shape[-1])
        covariance[:, index, index] += noise
        root = np.linalg.cholesky(covariance)
        white = np.linalg.solve(root, innovation[..., None])[..., 0]
        hidden = -0.5 * np.sum(white * white, axis=-1) - np.sum(np.log(root[:, index, index]), axis=-1)
        nothing = -0.5 * np.sum(mismatch * mismatch / noise + np.log(noise), axis=-1)
        self._evidence = np.clip(0.995 * self._evidence + hidden - nothing, -8.0, 8.0)

    def _constrain(self, use: Array) -> None:
        """Move the joint unknown that is farthest out of its bounds back onto them, in each used trial that has one."""
        model = self.model
        joint, _ = model.unknowns(self._filter.mean)
        beyond = np.maximum(model.low - joint, 0.0) - np.maximum(joint - model.high, 0.0)
        size = np.linalg.norm(model.joint_root, axis=-1)  # (n, F) prior standard deviation
        relative = (np.abs(beyond) / np.maximum(size, 1e-12)).reshape(self.trials, -1)
        worst = np.argmax(relative, axis=1)
        trials = np.flatnonzero(use & (relative[np.arange(self.trials), worst] > 1e-3))
        if len(trials) == 0:
            return
        j, f = np.divmod(worst[trials], PER_JOINT)
        rows = np.zeros((len(trials), model.size))
        columns = j[:, None] * PER_JOINT + np.arange(PER_JOINT)
        np.put_along_axis(rows, columns, model.joint_root[j, f], axis=1)
        self._filter.project(trials, rows, beyond[trials, j, f])

    def _learn_noise(self, residual: Array, variance: Array, use: Array) -> None:
        s = self.settings
        rate = s.stride * self.timestep / s.noise_memory * use[:, None]
        self._noise += rate * (residual * residual + variance - self._noise)
        np.maximum(self._noise, (s.noise_floor * self._scale) ** 2, out=self._noise)

    @property
    def _lasting(self) -> Array:
        """Variance of the disturbance, as far as residuals that share no sample agree on it, (trials, n) [(N·m)²]."""
        return np.clip(self._persistent, 0.0, self._total)

    def _learn_disturbance(self, residual: Array, use: Array) -> None:
        """Filter what the unknowns do not explain; a trial whose equation is not used keeps a fading disturbance."""
        s = self.settings
        step = s.stride * self.timestep
        apart = -(-(s.window - 1) // s.stride)  # updates between windows that share no sample
        keep = np.exp(-step / s.disturbance_time)
        rate = step / s.disturbance_memory * use[:, None]
        if len(self._residuals) == apart:
            earlier, used = self._residuals.pop(0)
            both = rate * used[:, None]
            self._persistent += both * (residual * earlier / keep**apart - self._persistent)
        self._residuals.append((residual, use))
        self._total += rate * (residual * residual - self._total)
        variance = self._lasting
        white = np.maximum(self._total - variance, (0.3 * s.noise_floor * self._scale) ** 2)
        predicted = keep * keep * self._doubt + (1.0 - keep * keep) * variance
        gain = predicted / (predicted + white) * use[:, None]
        self._disturbance = keep * self._disturbance
        self._disturbance += gain * (residual - self._disturbance)
        self._doubt = (1.0 - gain) * predicted

    def _refresh(self) -> None:
        """What `correct` needs of the estimate, laid out for one selection by direction a tick."""
        joint, inertial = self.model.unknowns(self._filter.mean)
        links = inertial.reshape(self.trials, -1, 10)
        self._inertial = nearest_feasible(links).reshape(self.trials, -1, 1)
        self._armature = joint[..., 0]
        bias = joint[..., 9:11]
        self._offset = self._disturbance - 0.5 * (bias[..., 0] + bias[..., 1])
        step = -0.5 * (bias[..., 0] - bias[..., 1])
        # Viscous, friction basis, and the bias's step, for each direction of motion.
        self._forward = np.concatenate([joint[..., 1:2], joint[..., 3:6], step[..., None]], axis=-1)
        self._backward = np.concatenate([joint[..., 2:3], joint[..., 6:9], step[..., None]], axis=-1)
        # Dead zone and drive gain, for each direction of the command.
        self._push = np.stack([joint[..., 11], 1.0 + joint[..., 13]])
        self._pull = np.stack([joint[..., 12], 1.0 + joint[..., 14]])
        self._trust = (1.0 / (1.0 + np.exp(-self._evidence)))[:, None]

    def _inverse(self, q: Array, qd: Array, qdd: Array, external: Array | float = 0.0) -> Array:
        """The command that gives the estimated robot an acceleration under an external torque, (trials, n) [N·m]."""
        end = qd + self.timestep * qdd  # friction is paid for at the end of the tick
        shape = np.multiply.outer(end, VELOCITY_SCALES)
        np.tanh(shape[..., 1:], out=shape[..., 1:])
        shape *= np.where(end[..., None] >= 0.0, self._forward, self._backward)
        torque = np.matmul(self.model.body.regressor(q, qd, qdd), self._inertial)[..., 0]
        torque += shape.sum(axis=-1)
        torque += self._armature * qdd
        torque += self._offset
        torque -= external
        dead, gain = np.where(torque > 0.0, self._push, self._pull)
        return (torque + dead * self.model.sign(torque)) / gain
