"""What stands between any adapter and the robot: ramps, limits, fallbacks and a code for every tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.loop.health import Health
from retorque.loop.score import Score
from retorque.physics.rigid_body import RigidBody
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

UNKNOWN_LIMIT = 50.0
"""Correction allowed on a joint whose torque limit is not known, before `residual_share` [N·m]."""
CLOCK_SET = 20
"""Reports from the past in a row after which the robot's clock is taken to have been set anew."""


@dataclass(frozen=True, kw_only=True)
class SupervisorSettings:
    """Settings of the supervisor."""

    enable_ramp: float = 1.0
    """Time over which the correction fades in after a start or a reset [s]."""
    recovery: float = 0.1
    """The same after a rejected tick [s]."""
    residual_share: float = 0.8
    """Largest correction of a joint, as a share of its torque limit."""
    residual_limit: tuple[float, ...] = ()
    """Largest correction of each joint instead [N·m]."""
    rate_time: float = 0.005
    """A correction may grow from nothing to its limit in this time, no faster [s]."""
    rate_limit: tuple[float, ...] = ()
    """Fastest change of each joint's correction instead [N·m/s]."""
    stale_after: float = 0.5
    """An estimate that has not been renewed for so long fades out; never less than ten of the adapter's periods [s]."""
    fade: float = 0.5
    """Time over which a stale estimate's correction fades [s]."""
    position_margin: float = 0.3
    """How far beyond its position limits a joint may be reported [rad]."""
    velocity_margin: float = 1.5
    """How many times its velocity limit a joint may be reported at."""
    hold: float = 0.05
    """How long the last good nominal torque stands in for one that is not finite, before gravity alone does [s]."""
    shadow: bool = False
    """Compute, score and log the correction, but send the nominal torque."""
    log_ticks: int = 0
    """Keep the corrections and codes of so many last ticks."""


class Supervisor(Adapter):
    """Any adapter, made safe to run: whatever comes in, what goes out is finite and within the torque limits.

    It is an adapter itself. `health` (trials,) holds this tick's codes, `counts` how often each occurred, `correction`
    (trials, n) the last correction that was asked for after limits, and `score` how well it explains the robot.
    Reports that cannot be used reach the adapter as rows of NaN. Nothing here raises while the robot runs.

    Args:
        adapter: what computes the correction.
        settings: limits and times.
    """

    def __init__(self, adapter: Adapter, settings: SupervisorSettings | None = None):
        super().__init__(adapter.robot, adapter.trials, adapter.timestep, adapter.seed)
        self.adapter = adapter
        self.settings = s = settings or SupervisorSettings()
        self.learn_every = adapter.learn_every
        robot, trials, n = adapter.robot, adapter.trials, adapter.robot.n
        self._limit = robot.torque_limit
        known = np.where(np.isfinite(self._limit), self._limit, UNKNOWN_LIMIT)
        self.residual_limit = _per_joint(s.residual_limit, s.residual_share * known, n, "residual_limit")
        rate = self.residual_limit / max(s.rate_time, self.timestep)
        self._step_limit = _per_joint(s.rate_limit, rate, n, "rate_limit") * self.timestep
        self._low, self._high = robot.lower - s.position_margin, robot.upper + s.position_margin
        self._fastest = s.velocity_margin * robot.velocity_limit
        self._stale_ticks = round(max(s.stale_after / self.timestep, 10.0 * self.learn_every))
        self._body = RigidBody(robot)
        self.score = Score(robot, trials, self.timestep)
        self._log = np.zeros((s.log_ticks, trials, n + 1))
        self._log_time = np.zeros(s.log_ticks)
        self.counts = dict.fromkeys((flag for flag in Health if flag), 0)
        self.correction = np.zeros((trials, n))
        self._position = np.broadcast_to(robot.home, (trials, n)).copy()
        self._velocity = np.zeros((trials, n))
        self._torque = np.zeros((trials, n))
        self._good = self._everyone = np.ones(trials, dtype=bool)
        self._clean = True
        self._clock: float = -np.inf
        self._gain = np.zeros(trials)
        self._ticks = self._age = self._fresh = self._silent = 0
        self._fault = self._full = False
        self._clear()

    def reset(self) -> None:
        self._clear()
        self._fault = not self._done(self.adapter.reset)

    def carry(self) -> None:
        self._fault |= not self._done(self.adapter.carry)
        self.score.restart()

    @np.errstate(all="ignore")
    def observe(self, state: State) -> None:
        self._seen = np.zeros(self.trials, dtype=np.int64)
        step = state.time - self._clock
        # A clock that stays behind for a while was set anew; a single report from the past is a late one.
        if not np.isfinite(state.time) or (step < 0.5 * self.timestep and (step > -1e-9 or self._silent < CLOCK_SET)):
            self._seen |= int(Health.BAD_CLOCK)
            self._silent += 1
            self.score.restart()
            return
        if abs(step - self.timestep) > 0.5 * self.timestep and self._ticks:
            self._seen |= int(Health.GAP)
            self.score.restart()
        self._silent = 0
        self._fresh += 1
        self._clock = state.time
        report = self._checked(state)
        if not self._done(lambda: self.adapter.observe(report)):
            self._seen |= int(Health.FAULT)

    @np.errstate(all="ignore")
    def learn(self) -> None:
        if self._fresh == 0:
            return  # the same samples twice would count twice
        self._fresh = 0
        self._fault = not self._done(self.adapter.learn)
        if not self._fault:
            self._age = 0

    @np.errstate(all="ignore")
    def correct(self, state: State, nominal_torque: Array) -> Array:
        s, health = self.settings, self._seen
        nominal, usable = self._nominal(nominal_torque, health)
        asked, failed = self._ask(nominal)
        if self._fault or failed:
            health |= int(Health.FAULT)
        residual = asked - nominal
        if not failed and self._clean and usable.all() and self._is_small(residual):
            trusted, self._last = self._everyone, residual
        else:
            finite = np.isfinite(residual).all(axis=-1)
            health[~finite] |= int(Health.BAD_CORRECTION)
            trusted = finite & usable & self._good & (not failed)
            residual = self._limited(np.where(trusted[:, None], residual, 0.0), trusted, health)
        self._advance_gain(trusted, health)
        self.correction = residual
        health |= self.adapter.health
        torque = nominal if s.shadow else nominal + (residual if self._full else self._gain[:, None] * residual)
        sent = np.clip(torque, -self._limit, self._limit)
        if not np.array_equal(sent, torque):
            health[np.any(sent != torque, axis=-1)] |= int(Health.TORQUE_LIMIT)
        self._finish(health, trusted)
        return sent

    def log(self) -> tuple[Array, Array, Array]:
        """Time (ticks,), correction (ticks, trials, n) [N·m] and codes (ticks, trials) of the last ticks, in order."""
        kept = min(self._ticks, len(self._log))
        order = (self._ticks - kept + np.arange(kept)) % max(1, len(self._log))
        rows = self._log[order]
        return self._log_time[order], rows[..., :-1], rows[..., -1].astype(np.int64)

    @staticmethod
    def _done(action: Callable[[], None]) -> bool:
        """Whether something of the adapter's went through."""
        try:
            action()
        except Exception:
            return False
        return True

    def _clear(self) -> None:
        trials, n = self.trials, self.robot.n
        self._ticks, self._age, self._fresh = 0, 0, 0
        self._clock, self._silent, self._fault = -np.inf, 0, False
        self._gain, self._full = np.zeros(trials), False
        self._ramp = np.full(trials, self.timestep / max(self.settings.enable_ramp, self.timestep))
        self._last = np.zeros((trials, n))
        self._last_nominal = self._gravity()
        self._held = np.zeros(trials)
        self._good = self._everyone
        self._clean = True
        self._still = np.zeros((trials, n), dtype=np.int64)
        self._seen = np.zeros(trials, dtype=np.int64)
        self.health[:] = 0
        self.correction[:] = 0.0
        self.score.clear()

    def _checked(self, state: State) -> State:
        """The report with every row that cannot be used replaced by NaN; remembers the good rows."""
        q, qd, torque = state.position, state.velocity, state.torque
        finite = np.isfinite(q + qd + torque).all(axis=-1)
        inside = ((q >= self._low) & (q <= self._high) & (np.abs(qd) <= self._fastest)).all(axis=-1)
        saturated = (np.abs(torque) > 1.001 * self._limit).any(axis=-1)
        stuck = (q == self._position) & (qd == self._velocity) & (np.abs(qd) > 1e-3)
        self._still = np.where(stuck, self._still + 1, 0)
        frozen = (self._still >= 5).any(axis=-1)
        self._good = finite & inside & ~frozen
        clean = self._good & ~saturated
        self._clean = bool(clean.all())
        if self._clean:
            self._position[:], self._velocity[:], self._torque[:] = q, qd, torque
            return state
        self._seen[~finite] |= int(Health.BAD_STATE)
        self._seen[finite & ~inside] |= int(Health.OUT_OF_RANGE)
        self._seen[frozen] |= int(Health.FROZEN)
        self._seen[saturated] |= int(Health.SATURATED)
        good = self._good[:, None]
        self._position[:] = np.where(good, q, self._position)
        self._velocity[:] = np.where(good, qd, self._velocity)
        self._torque[:] = np.where(clean[:, None], torque, self._torque)
        nothing = np.where(clean[:, None], 0.0, np.nan)
        return State(state.time, q + nothing, qd + nothing, torque + nothing)

    def _nominal(self, nominal_torque: Array, health: Array) -> tuple[Array, Array]:
        """A nominal torque that is finite and within the limits, and whether it is the controller's own."""
        usable = np.isfinite(nominal_torque).all(axis=-1)
        if usable.all():
            self._held[:] = 0.0
            self._last_nominal[:] = nominal_torque
            return np.asarray(nominal_torque, dtype=float), usable
        health[~usable] |= int(Health.BAD_NOMINAL)
        self._held = np.where(usable, 0.0, self._held + self.timestep)
        expired = self._held > self.settings.hold
        stand_in = np.where(expired[:, None], self._gravity(), self._last_nominal)
        nominal = np.where(usable[:, None], nominal_torque, stand_in)
        self._last_nominal[:] = nominal
        return nominal, usable

    def _ask(self, nominal: Array) -> tuple[Array, bool]:
        """The adapter's torque at the last good state, and whether it failed to give one."""
        state = State(self._clock, self._position, self._velocity, self._torque)
        try:
            asked = np.asarray(self.adapter.correct(state, nominal), dtype=float)
        except Exception:
            return nominal, True
        return (asked, False) if asked.shape == nominal.shape else (nominal, True)

    def _is_small(self, residual: Array) -> bool:
        """Whether a correction is within its size and its rate; one that is not finite is not."""
        within = np.abs(residual) <= self.residual_limit
        return bool(within.all() and (np.abs(residual - self._last) <= self._step_limit).all())

    def _limited(self, residual: Array, trusted: Array, health: Array) -> Array:
        """The correction within its size and its rate; a rejected row is zero at once."""
        cut = np.clip(residual, -self.residual_limit, self.residual_limit)
        health[np.any(cut != residual, axis=-1)] |= int(Health.RESIDUAL_LIMIT)
        if self._ticks == 0:
            self._last = cut
            return cut
        slow = self._last + np.clip(cut - self._last, -self._step_limit, self._step_limit)
        slow = np.where(trusted[:, None], slow, 0.0)
        late = np.any(np.abs(slow - cut) > 1e-12, axis=-1)
        health[late] |= int(Health.RATE_LIMIT)
        self._last = slow
        return slow

    def _advance_gain(self, trusted: Array, health: Array) -> None:
        s = self.settings
        self._age += 1
        stale = (self.learn_every and self._age > self._stale_ticks) or self._silent > self._stale_ticks
        if self._full and not stale and trusted is self._everyone:
            return
        if stale:
            health |= int(Health.STALE)
            self._gain = np.maximum(self._gain - self.timestep / max(s.fade, self.timestep), 0.0)
        else:
            self._gain = np.minimum(self._gain + self._ramp, 1.0)
        if not trusted.all():
            self._gain = np.where(trusted, self._gain, 0.0)
            self._ramp = np.where(trusted, self._ramp, self.timestep / max(s.recovery, self.timestep))
        self._full = bool((self._gain == 1.0).all())
        health[trusted & (self._gain < 1.0)] |= int(Health.RAMP)

    def _finish(self, health: Array, trusted: Array) -> None:
        """Score, count and log the tick."""
        if trusted.all():
            self.score.tick(State(self._clock, self._position, self._velocity, self._torque), self.correction)
        else:
            self.score.restart()
        self.health = health
        if health.any():
            for flag in Health:
                if flag:
                    self.counts[flag] += int(np.count_nonzero(health & int(flag)))
        if len(self._log):
            row = self._ticks % len(self._log)
            self._log_time[row] = self._clock
            self._log[row, :, :-1], self._log[row, :, -1] = self.correction, health
        self._ticks += 1

    def _gravity(self) -> Array:
        """Torque that holds the ideal robot at its last good position, (trials, n) [N·m]."""
        return np.clip(self._body.gravity(self._position), -self._limit, self._limit)


def _per_joint(given: tuple[float, ...], default: Array, n: int, name: str) -> Array:
    if not given:
        return default
    limit = np.asarray(given, dtype=float)
    if limit.shape != (n,) or not np.all(limit > 0.0):
        raise RetorqueError(f"{name} must be {n} numbers above 0, one a joint")
    return limit
