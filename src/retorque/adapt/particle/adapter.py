"""The paper's Online SysID: a particle filter over explicit physical parameters (TAM, C.2)."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from retorque.adapt.particle.one_step import OneStep, Window
from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.loop.history import History
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import SLOPE_OF_WIDTH, Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

VARIED = (
    "torque_scale",
    "torque_bias",
    "dead_zone",
    "viscous",
    "friction_amplitude",
    "friction_width",
    "friction_shift",
    "armature",
    "payload_mass",
)
"""What a particle holds: friction by its width, as it is sampled, and none of the links."""

SINGLE = float(np.float32(SLOPE_OF_WIDTH)) / SLOPE_OF_WIDTH
"""Particles live in single precision, and so does the number that makes their widths slopes; their mean follows."""


APART = 20260012
"""Mixed into the seed: a plant of the same seed draws its sensor noise from other numbers."""


@dataclass(frozen=True, kw_only=True)
class ParticleSettings:
    """Settings of the particle filter; the defaults are the published ones."""

    particles: int = 512
    """K."""
    window: int = 50
    """Samples in the buffer; it holds one fewer transitions."""
    stride: int = 50
    """New samples between updates."""
    position_weight: float = 0.1
    """w_q of C.3."""
    velocity_weight: float = 1.0
    """w_q̇ of C.3."""
    temperature: float = 1.0
    """The log-likelihood is the loss divided by this."""
    relative: bool = False
    """Measure the temperature in standard deviations of the loss over the particles."""
    process_noise: float = 0.01
    """Standard deviation added before each update, as a share of each parameter's range."""
    jitter: float = 0.02
    """Standard deviation added after resampling, as a share of each parameter's range."""
    resample_below: float = 0.5
    """Resample when the effective sample size falls below this share of K."""
    every: int = 1
    """Score every so many transitions of the window (1: all 49)."""


class Particle(Adapter):
    """512 candidate targets, weighted by how well they predict the last 50 samples one step ahead.

    As published: the settings, the parameters that vary (torque scale, bias, dead zone, damping, friction, armature and
    payload mass, within the robot's profile; not the links' masses and centres), weights that multiply from window to
    window until the effective sample size calls for resampling, the weighted mean as the estimate, and the torque by
    inverting it (C.4, C.5). The first estimate is the mean of the ranges.

    Not as published: the 512 x 49 predictions are the integrator's step written out in single precision (`one_step`)
    instead of simulated worlds; they agree to 1e-6 rad/s. Friction varies by its velocity width, as it is sampled, not
    by its slope. The measured traces are not smoothed.

    `effective_sample_size` (trials,), `resamplings` (trials,) and `update_milliseconds` say how it fares.
    """

    settings_type = ParticleSettings
    remembered = (
        "history",
        "_rng",
        "_unit",
        "_log_weight",
        "effective_sample_size",
        "resamplings",
        "belief",
        "health",
    )

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
        self.settings = s = settings or ParticleSettings()
        if s.particles < 2 or s.window < 2 or s.stride < 1 or s.every < 1 or not s.temperature > 0.0:
            raise RetorqueError("a particle filter needs at least 2 particles and samples, and a positive temperature")
        self.learn_every = s.stride
        self._body = RigidBody(robot)
        self._one_step = OneStep(robot, timestep)
        self.selection = Selection(robot, VARIED, profile=profile_of(robot))
        self._low = self.selection.lower.astype(np.float32)
        self._span = (self.selection.upper - self.selection.lower).astype(np.float32)
        self.history = History(s.window, trials, robot.n, timestep)
        self.reset()

    def reset(self) -> None:
        s = self.settings
        self._rng = np.random.default_rng([self.seed, APART])
        self._unit = self._rng.random((self.trials, len(self._low), s.particles), dtype=np.float32)
        self._log_weight = np.zeros((self.trials, s.particles))
        self.history.reset()
        self._seconds, self._updates = 0.0, 0
        self.health[:] = 0
        self.effective_sample_size = np.full(self.trials, float(s.particles))
        self.resamplings = np.zeros(self.trials, dtype=int)
        self.adopt(self._believe())

    def resume(self) -> None:
        self.history.reset()

    @property
    def update_milliseconds(self) -> float:
        """Mean time of one trial's update [ms]."""
        return 1e3 * self._seconds / max(1, self._updates * self.trials)

    def _restored(self) -> None:
        self.adopt(self.belief)

    def observe(self, state: State) -> None:
        self.history.add(state)

    def learn(self) -> Belief | None:
        s = self.settings
        if self.history.count < s.window:
            return None
        began = time.perf_counter()
        position, velocity, torque = self.history.last(s.window)
        valid = self.history.valid(s.window)
        usable = valid[1:] & valid[:-1]
        self.health[:] = np.where(usable.all(axis=0), 0, int(Health.SKIPPED))
        for trial in range(self.trials):
            rows = np.flatnonzero(usable[:, trial])[:: s.every]
            if len(rows) == 0:
                continue
            before = velocity[rows, trial]
            # The torque that is reported with a state is the one that led to it.
            sent, change = torque[rows + 1, trial], velocity[rows + 1, trial] - before
            self._update(trial, Window(position[rows, trial], before, sent, change))
        self._updates += 1
        self._seconds += time.perf_counter() - began
        return self._believe()

    def adopt(self, belief: Belief) -> None:
        self.belief = belief
        mean = self._candidates(belief.arrays["mean"])
        self.estimate: Parameters = replace(mean, friction_slope=SINGLE * mean.friction_slope)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd = state.position, state.velocity
        ideal = self._body.forward_dynamics(q, qd, nominal_torque)
        return inverse_torque_command(self._body, self.estimate, q, qd, ideal, timestep=self.timestep)

    def _update(self, trial: int, window: Window) -> None:
        s, unit, log_weight = self.settings, self._unit[trial], self._log_weight[trial]
        self._spread(unit, s.process_noise)
        error = self._one_step.error(window, self._candidates(unit))
        # The Euler step moves positions by the new velocities, so their errors are the same times the period.
        weight = s.velocity_weight + s.position_weight * self.timestep**2
        loss = s.every * weight * np.einsum("ntk,ntk->k", error, error).astype(float)  # C.3
        if not np.all(np.isfinite(loss)):
            self.health[trial] |= int(Health.SKIPPED)
            return
        scale = max(float(np.std(loss)), 1e-12) if s.relative else 1.0
        log_weight -= loss / (s.temperature * scale)
        log_weight -= np.max(log_weight)
        weights = np.exp(log_weight)
        weights /= np.sum(weights)
        self.effective_sample_size[trial] = 1.0 / np.sum(weights * weights)
        if self.effective_sample_size[trial] < s.resample_below * s.particles:
            at = (self._rng.random() + np.arange(s.particles)) / s.particles
            chosen = np.minimum(np.searchsorted(np.cumsum(weights), at), s.particles - 1)
            unit[:] = unit[:, chosen]
            self._spread(unit, s.jitter)
            log_weight[:] = 0.0
            self.resamplings[trial] += 1

    def _spread(self, unit: Array, share: float) -> None:
        unit += np.float32(share) * self._rng.standard_normal(unit.shape, dtype=np.float32)
        np.clip(unit, 0.0, 1.0, out=unit)

    def _candidates(self, unit: Array) -> Parameters:
        """Physical parameters (K, ...) of particles in shares of their ranges, (D, K)."""
        return self.selection.apply((self._low[:, None] + unit * self._span[:, None]).T)

    def _believe(self) -> Belief:
        """The weighted mean of the particles; a mean of points in a box stays in it."""
        weights = np.exp(self._log_weight)
        weights /= np.sum(weights, axis=1, keepdims=True)
        mean = np.einsum("tdk,tk->dt", self._unit, weights)
        return Belief.of(type(self).__name__, self.history.time, mean=mean)


class SharpParticle(Particle):
    """The same filter with a likelihood as sharp as the data allow.

    One-step errors are tiny numbers, so the published likelihood at temperature 1 is almost flat: the filter resamples
    about once in 16 s. Here the temperature is a tenth of the standard deviation of the loss over the particles.
    """

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        settings: ParticleSettings | None = None,
    ):
        sharp = replace(settings or ParticleSettings(), temperature=0.1, relative=True)
        super().__init__(robot, trials, timestep, seed, settings=sharp)
