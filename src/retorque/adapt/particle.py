"""The paper's Online SysID: a particle filter over explicit physical parameters (TAM, C.2)."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields

import numpy as np

from retorque.adapt.adapter import Adapter
from retorque.adapt.one_step import Candidates, OneStep, Window, as_parameters
from retorque.physics.parameters import SLOPE_OF_WIDTH, Parameters, bounds
from retorque.physics.profile import profile_of
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.physics.state import State
from retorque.robots.robot import Robot

Array = np.ndarray


@dataclass(frozen=True, kw_only=True)
class ParticleSettings:
    """The published settings."""

    particles: int = 512
    """K."""
    window: int = 50
    """Samples in the buffer; one fewer transitions."""
    stride: int = 50
    """New samples between updates."""
    position_weight: float = 0.1
    """w_q of C.3."""
    velocity_weight: float = 1.0
    """w_q̇ of C.3."""
    temperature: float = 1.0
    """Of the likelihood."""
    process_noise: float = 0.01
    """Standard deviation added before each update, as a share of each parameter's range."""
    jitter: float = 0.02
    """Standard deviation added after resampling, as a share of each parameter's range."""
    resample_below: float = 0.5
    """Resample when the effective sample size falls below this share of K."""
    every: int = 1
    """Score every so many transitions of the window (1: all)."""
    likelihood: str = "published"
    normaliser: float = 1.0
    forget: bool = False
    smooth: int = 0


class Particle(Adapter):
    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        settings: ParticleSettings | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        self.settings = settings or ParticleSettings()
        self.learn_every = self.settings.stride
        self._body = RigidBody(robot)
        self._one_step = OneStep(robot, timestep)
        self._low, self._span = _ranges(robot)
        n, s = robot.n, self.settings
        self._ring = np.full((4, s.window, trials, n), np.nan)
        self._time = np.full(s.window, np.nan)
        self.reset()

    def reset(self) -> None:
        s = self.settings
        self._rng = np.random.default_rng(self.seed)
        shape = (self.trials, len(self._low), s.particles)
        self._unit = self._rng.random(shape, dtype=np.float32)
        self._log_weight = np.zeros((self.trials, s.particles))
        self.effective_sample_size = np.full(self.trials, float(s.particles))
        self.resamplings = np.zeros(self.trials, dtype=int)
        self.updates = 0
        self.update_seconds = 0.0
        self._count = 0
        self._time[:] = np.nan
        self._estimate()

    def observe(self, state: State) -> None:
        row = self._count % self.settings.window
        self._time[row] = state.time
        self._ring[0, row], self._ring[1, row], self._ring[2, row] = state.position, state.velocity, state.torque
        self._count += 1

    def learn(self) -> None:
        s = self.settings
        if self._count < s.window:
            return
        began = time.perf_counter()
        order = (self._count + np.arange(s.window)) % s.window
        clock = self._time[order]
        q, qd, torque = self._ring[0, order], self._ring[1, order], self._ring[2, order]
        period = np.diff(clock)
        steady = np.abs(period - self.timestep) < 0.5 * self.timestep
        good = np.isfinite(q).all(-1) & np.isfinite(qd).all(-1) & np.isfinite(torque).all(-1)  # (window, trials)
        usable = steady[:, None] & good[1:] & good[:-1]
        if s.smooth:
            x = np.linspace(-1.0, 1.0, s.window)
            base = np.linalg.qr(np.vander(x, s.smooth + 1))[0]
            project = base @ base.T
            qd = np.einsum("ij,jtn->itn", project, qd)
            q = np.einsum("ij,jtn->itn", project, q)
        for trial in range(self.trials):
            rows = np.flatnonzero(usable[:, trial])[:: s.every]
            if len(rows) == 0:
                continue
            window = Window(
                q[rows, trial], qd[rows, trial], torque[rows + 1, trial], qd[rows + 1, trial] - qd[rows, trial]
            )
            self._update(trial, window)
        self.updates += 1
        self.update_seconds += time.perf_counter() - began
        self._estimate()

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd = state.position, state.velocity
        ideal = self._body.forward_dynamics(q, qd, nominal_torque)
        return inverse_torque_command(self._body, self.estimate, q, qd, ideal)

    def _update(self, trial: int, window: Window) -> None:
        s = self.settings
        unit = self._unit[trial]
        unit += np.float32(s.process_noise) * self._rng.standard_normal(unit.shape, dtype=np.float32)
        np.clip(unit, 0.0, 1.0, out=unit)
        error = self._one_step.error(window, self._candidates(unit))
        # Positions follow velocities in the Euler step, so their errors are dt times the same.
        weight = s.velocity_weight + s.position_weight * self.timestep**2
        loss = weight * np.einsum("ntk,ntk->k", error, error).astype(float) * s.every
        if s.likelihood == "std":
            loss = loss / (np.std(loss) * s.normaliser)
        elif s.likelihood == "min":
            loss = loss / (np.min(loss) * s.normaliser)
        elif s.likelihood == "median":
            loss = loss / (np.median(loss) * s.normaliser)
        elif s.likelihood == "scale":
            loss = loss / s.normaliser
        log_weight = self._log_weight[trial]
        if s.forget:
            log_weight[:] = 0
        log_weight -= loss / s.temperature
        log_weight -= np.max(log_weight)
        weights = np.exp(log_weight)
        weights /= weights.sum()
        size = 1.0 / np.sum(weights**2)
        self.effective_sample_size[trial] = size
        if size < s.resample_below * s.particles:
            point = (self._rng.random() + np.arange(s.particles)) / s.particles
            chosen = np.minimum(np.searchsorted(np.cumsum(weights), point), s.particles - 1)
            unit[:] = unit[:, chosen]
            unit += np.float32(s.jitter) * self._rng.standard_normal(unit.shape, dtype=np.float32)
            np.clip(unit, 0.0, 1.0, out=unit)
            log_weight[:] = 0.0
            self.resamplings[trial] += 1

    def _candidates(self, unit: Array) -> Candidates:
        """Physical parameters of particles in [0, 1], (D, K)."""
        n = self.robot.n
        value = self._low[:, None] + unit * self._span[:, None]
        pair = value[: 14 * n].reshape(7, n, 2, -1)
        return Candidates(
            torque_scale=pair[0],
            torque_bias=pair[1],
            dead_zone=pair[2],
            viscous=pair[3],
            friction_amplitude=pair[4],
            friction_slope=np.float32(SLOPE_OF_WIDTH) / pair[5],
            friction_shift=pair[6],
            armature=value[14 * n : 15 * n],
            payload_mass=value[15 * n],
        )

    def _estimate(self) -> None:
        """The weighted mean of the particles, within the ranges."""
        weights = np.exp(self._log_weight - self._log_weight.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        mean = np.einsum("tdk,tk->dt", self._unit, weights)
        self.estimate: Parameters = as_parameters(self.robot, self._candidates(mean))


def _ranges(robot: Robot) -> tuple[Array, Array]:
    """Lowest value and span of each coordinate of a particle, (15 n + 1,) each; friction's width, not its slope."""
    low, high = bounds(robot, profile_of(robot))

    def stack(p: Parameters, slope: Array) -> Array:
        pairs = (
            p.torque_scale,
            p.torque_bias,
            p.dead_zone,
            p.viscous,
            p.friction_amplitude,
            SLOPE_OF_WIDTH / slope,
            p.friction_shift,
        )
        return np.concatenate([*(x.ravel() for x in pairs), p.armature, [float(p.payload_mass)]])

    first, last = stack(low, high.friction_slope), stack(high, low.friction_slope)
    return first.astype(np.float32), (last - first).astype(np.float32)
