"""What stands between any adapter and the robot: ramps, limits, fallbacks and a code for every tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.clock import Clock
from retorque.loop.health import Health
from retorque.loop.score import Score
from retorque.physics.rigid_body import RigidBody
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

UNKNOWN_LIMIT = 50.0
"""Correction allowed on a joint whose torque limit is not known, before `residual_share` [N·m]."""
ABSURD = 1e9
"""No report is larger than this, whatever its unit."""
FROZEN = 5
"""Reports in a row that repeat a joint in motion before it counts as frozen."""
MOVING = 1e-3
"""A joint slower than this may well report the same again [rad/s]."""


@dataclass(frozen=True, kw_only=True)
class SupervisorSettings:
    """Settings of the supervisor."""

    enable_ramp: float = 1.0
    """Time over which the correction fades in after a start or a reset [s]."""
    recovery: float = 0.1
    """The same after it had to fade [s]."""
    bridge: float = 0.02
    """How long the last correction is held over reports that cannot be used [s]."""
    fade: float = 0.1
    """Time over which the correction then fades; also a stale estimate's, or a failing adapter's [s]."""
    residual_share: float = 0.8
    """Largest correction of a joint, as a share of its torque limit."""
    residual_limit: tuple[float, ...] = ()
    """Largest correction of each joint instead [N·m]."""
    rate_time: float = 0.005
    """A correction may grow from nothing to its limit in this time, no faster [s]."""
    rate_limit: tuple[float, ...] = ()
    """Fastest change of each joint's correction instead [N·m/s]."""
    stale_after: float = 0.5
    """A belief that has not been renewed for so long fades out; never less than ten of the adapter's periods [s]."""
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

    It is an adapter itself. `health` (...) holds this tick's codes, `counts` how often each occurred, `correction`
    (..., n) the last correction that was asked for after limits, and `score` how well it explains the robot. Reports
    that cannot be used reach the adapter as rows of NaN; meanwhile the last correction is held, then fades. Nothing
    here raises while the robot runs.

    Args:
        adapter: what computes the correction, for one robot or a batch.
        settings: limits and times.
    """

    _silent: int
    _unlearnt: bool
    _full: bool
    _good: Array
    _last: Array
    _gain: Array

    def __init__(self, adapter: Adapter, settings: SupervisorSettings | None = None):
        self.adapter = adapter
        self.robot, self.trials = adapter.robot, adapter.trials
        self.timestep, self.seed = adapter.timestep, adapter.seed
        self.settings = s = settings or SupervisorSettings()
        self.learn_every = adapter.learn_every
        robot, n = adapter.robot, adapter.robot.n
        lead = np.shape(adapter.health)
        self._shape = (*lead, n)
        self._limit = np.minimum(robot.torque_limit, ABSURD)
        known = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, UNKNOWN_LIMIT)
        self.residual_limit = _per_joint(s.residual_limit, s.residual_share * known, n, "residual_limit")
        rate = self.residual_limit / max(s.rate_time, self.timestep)
        self._step_limit = _per_joint(s.rate_limit, rate, n, "rate_limit") * self.timestep
        speed = s.velocity_margin * robot.velocity_limit
        high = np.stack([robot.upper + s.position_margin, speed, 1.001 * robot.torque_limit])
        low = np.stack([robot.lower - s.position_margin, -speed, -1.001 * robot.torque_limit])
        axes = (3, *(1,) * len(lead), n)
        self._low, self._high = (np.clip(b, -ABSURD, ABSURD).reshape(axes) for b in (low, high))
        self._stale_ticks = round(max(s.stale_after / self.timestep, 10.0 * self.learn_every))
        self._body = RigidBody(robot)
        self._clock = Clock(self.timestep)
        self.score = Score(robot, self._shape, self.timestep)
        self._log = np.zeros((s.log_ticks, *self._shape))
        self._log_codes = np.zeros((s.log_ticks, *lead), dtype=np.int64)
        self._log_time = np.zeros(s.log_ticks)
        self.counts = dict.fromkeys((flag for flag in Health if flag), 0)
        self._clean = np.zeros(lead, dtype=np.int64)
        self._everyone = np.ones(lead, dtype=bool)
        self._fresh_report = np.zeros((3, *self._shape))
        self._report = np.zeros((3, *self._shape))
        self._clear()

    def reset(self) -> None:
        self._clear()
        self._note("reset", self._done(self.adapter.reset))

    def carry(self) -> None:
        self._note("carry", self._done(self.adapter.carry))
        self.score.spoil()

    def save(self, path: str | Path) -> None:
        self.adapter.save(path)

    def load(self, path: str | Path) -> None:
        self.adapter.load(path)

    def observe(self, state: State) -> None:
        self._codes = self._clean
        step = self._clock.ticks_since(state.time)
        if step != 1:
            self._flag(Health.BAD_CLOCK if step == 0 else Health.GAP)
            self.score.spoil()
            if step == 0:
                self._silent += 1
                return
        self._silent = 0
        self._fresh = True
        self._time = state.time
        report = self._checked(state)
        self._note("observe", self._done(lambda: self.adapter.observe(report)))

    def due(self) -> bool:
        return self.adapter.due()

    def learn(self) -> Belief | None:
        if not self._fresh:
            return None  # the same samples twice would count twice
        self._fresh = False
        try:
            with np.errstate(all="ignore"):
                belief = self.adapter.learn()
        except Exception:
            self._unlearnt = True  # what was learnt before still holds, until it is stale
            return None
        self._unlearnt = False
        return belief

    def adopt(self, belief: Belief) -> None:
        done = self._done(lambda: self.adapter.adopt(belief))
        self._note("adopt", done)
        if done:
            self._age = 0

    def correct(self, state: State, nominal_torque: Array) -> Array:
        nominal, usable = self._nominal(nominal_torque)
        if self._unlearnt:
            self._flag(Health.FAULT)
        asked, failed = self._ask(nominal)
        residual = asked - nominal
        self._age += 1
        if (
            not failed
            and usable is self._everyone
            and self._good is self._everyone
            and (np.abs(residual) <= self.residual_limit).all()
            and (np.abs(residual - self._last) <= self._step_limit).all()
        ):
            trusted, self._last = self._everyone, residual
        else:
            trusted = self._limited(residual, usable, failed)
            residual = self._last
        self._advance_gain(trusted, failed)
        self.correction = residual
        torque = nominal if self.settings.shadow else nominal + (residual if self._full else self._gain * residual)
        sent = np.minimum(np.maximum(torque, -self._limit), self._limit)
        if not (sent == torque).all():
            self._flag(Health.TORQUE_LIMIT, (sent != torque).any(axis=-1))
        self._finish()
        return sent

    def log(self) -> tuple[Array, Array, Array]:
        """Time (ticks,), correction (ticks, ..., n) [N·m] and codes (ticks, ...) of the last ticks, in order."""
        kept = min(self._ticks, len(self._log))
        order = (self._ticks - kept + np.arange(kept)) % max(1, len(self._log))
        return self._log_time[order], self._log[order], self._log_codes[order]

    @staticmethod
    def _done(action: Callable[[], None]) -> bool:
        """Whether something of the adapter's went through."""
        try:
            with np.errstate(all="ignore"):
                action()
        except Exception:
            return False
        return True

    def _note(self, call: str, done: bool) -> None:
        """Remember which of the adapter's methods failed last time; while any has, the nominal torque goes out."""
        if not done:
            self._faults.add(call)
        elif self._faults:
            self._faults.discard(call)

    def _clear(self) -> None:
        lead = self._shape[:-1]
        self._ticks = self._age = self._silent = 0
        self._fresh = self._unlearnt = False
        self._faults: set[str] = set()
        self._time = -np.inf
        self._clock.reset()
        self._gain, self._full = np.zeros((*lead, 1)), False
        self._ramp = np.full((*lead, 1), self.timestep / max(self.settings.enable_ramp, self.timestep))
        self._last = np.zeros(self._shape)
        self._report[:] = 0.0
        self._report[0] = self.robot.home
        self._last_nominal = self._gravity()
        self._held = np.zeros(lead)
        self._bad_for = np.zeros(lead)
        self._good = self._everyone
        self._still = np.zeros(self._shape, dtype=np.int64)
        self._codes = self._clean
        self.health = self._clean
        self.correction = np.zeros(self._shape)
        self.score.clear()

    def _flag(self, code: Health, which: Array | np.bool_ | None = None) -> None:
        """Add a code to this tick's, in all trials or in some (...)."""
        added = int(code) if which is None else np.where(which, int(code), 0)
        self._codes = self._codes | added

    def _checked(self, state: State) -> State:
        """The report with every row that cannot be used replaced by NaN; remembers the good rows."""
        try:
            new = self._fresh_report
            new[0], new[1], new[2] = state.position, state.velocity, state.torque
        except (ValueError, TypeError):  # another shape, or no numbers at all
            new[:] = np.nan
        inside = (new >= self._low) & (new <= self._high)
        repeated = new[0] == self._report[0]
        if inside.all() and not repeated.any():
            self._still[...] = 0
            self._good = self._everyone
            self._fresh_report, self._report = self._report, new
            return state
        return self._sorted_out(state.time, new, inside, repeated)

    def _sorted_out(self, time: float, new: Array, inside: Array, repeated: Array) -> State:
        """The same where something is wrong, or stands still."""
        stuck = repeated & (new[1] == self._report[1]) & (np.abs(new[1]) > MOVING)
        self._still = np.where(stuck, self._still + 1, 0)
        frozen = (self._still >= FROZEN).any(axis=-1)
        finite = np.isfinite(new).all(axis=(0, -1))
        moves = inside[:2].all(axis=(0, -1))
        saturated = finite & ~inside[2].all(axis=-1)
        good = moves & finite & ~frozen
        clean = good & ~saturated
        self._good = self._everyone if good.all() else good
        self._flag(Health.BAD_STATE, ~finite)
        self._flag(Health.OUT_OF_RANGE, finite & ~moves)
        self._flag(Health.FROZEN, frozen)
        self._flag(Health.SATURATED, saturated)
        self._report[:2] = np.where(good[..., None], new[:2], self._report[:2])
        self._report[2] = np.where(clean[..., None], new[2], self._report[2])
        shown = np.where(clean[..., None], new, np.nan)
        return State(time, shown[0], shown[1], shown[2])

    def _nominal(self, nominal_torque: Array) -> tuple[Array, Array]:
        """A nominal torque that is finite, and whether it is the controller's own, trial by trial."""
        nominal = np.asarray(nominal_torque, dtype=float)
        if nominal.shape == self._shape and np.isfinite(nominal).all():
            if self._held.any():
                self._held = np.zeros_like(self._held)
            self._last_nominal = nominal
            return nominal, self._everyone
        if nominal.shape != self._shape:
            nominal = np.full(self._shape, np.nan)
        usable = np.isfinite(nominal).all(axis=-1)
        self._flag(Health.BAD_NOMINAL, ~usable)
        self._held = np.where(usable, 0.0, self._held + self.timestep)
        expired = self._held > self.settings.hold
        stand_in = np.where(expired[..., None], self._gravity(), self._last_nominal)
        self._last_nominal = np.where(usable[..., None], nominal, stand_in)
        return self._last_nominal, usable

    def _ask(self, nominal: Array) -> tuple[Array, bool]:
        """The adapter's torque at the last good state, and whether it failed to give one."""
        if self._faults:
            self._flag(Health.FAULT)
            return nominal, True
        position, velocity, torque = self._report
        try:
            with np.errstate(all="ignore"):
                asked = np.asarray(self.adapter.correct(State(self._time, position, velocity, torque), nominal))
        except Exception:
            asked = None
        if asked is None or asked.shape != self._shape or asked.dtype.kind != "f":
            self._flag(Health.FAULT)
            return nominal, True
        return asked, False

    def _limited(self, residual: Array, usable: Array, failed: bool) -> Array:
        """Set the last correction to this one within its size and its rate; which trials may be trusted (...).

        A trial that may not be trusted keeps the correction it had.
        """
        finite = np.isfinite(residual).all(axis=-1)
        if failed:
            finite = np.zeros_like(finite)
        else:
            self._flag(Health.BAD_CORRECTION, ~finite)
        trusted = finite & usable & self._good
        wanted = np.where(trusted[..., None], residual, self._last)
        cut = np.minimum(np.maximum(wanted, -self.residual_limit), self.residual_limit)
        self._flag(Health.RESIDUAL_LIMIT, (cut != wanted).any(axis=-1))
        if self._ticks:
            slow = self._last + np.minimum(np.maximum(cut - self._last, -self._step_limit), self._step_limit)
            self._flag(Health.RATE_LIMIT, (np.abs(slow - cut) > 1e-12).any(axis=-1))
            cut = slow
        self._last = cut
        return trusted

    def _advance_gain(self, trusted: Array, failed: bool) -> None:
        """Fade the correction in, hold it over a short spell of bad ticks, or fade it out."""
        stale = (self.learn_every and self._age > self._stale_ticks) or self._silent > self._stale_ticks
        if trusted is self._everyone and self._full and not stale:
            return
        s = self.settings
        if stale:
            self._flag(Health.STALE)
        self._bad_for = np.where(trusted, 0.0, self._bad_for + self.timestep)
        out = (self._bad_for > s.bridge) | bool(stale) | (failed & ~trusted)
        down = self._gain - self.timestep / max(s.fade, self.timestep)
        up = np.where(trusted[..., None], self._gain + self._ramp, self._gain)
        recovery = self.timestep / max(s.recovery, self.timestep)
        self._ramp = np.where(out[..., None] & (self._gain > 0.0), recovery, self._ramp)
        self._gain = np.minimum(np.maximum(np.where(out[..., None], down, up), 0.0), 1.0)
        self._full = bool((self._gain == 1.0).all())
        self._flag(Health.RAMP, self._gain[..., 0] < 1.0)
        if not trusted.all():
            self.score.spoil(~trusted)

    def _finish(self) -> None:
        """Score, count and log the tick."""
        self.score.tick(self._report, self.correction)
        own = self.adapter.health
        health = self._codes | own if own.any() else self._codes
        self.health = health
        if health is not self._clean:
            for flag in self.counts:
                self.counts[flag] += int(np.count_nonzero(health & int(flag)))
        if len(self._log):
            row = self._ticks % len(self._log)
            self._log_time[row] = self._time
            self._log[row], self._log_codes[row] = self.correction, health
        self._ticks += 1

    def _gravity(self) -> Array:
        """Torque that holds the ideal robot at its last good position, (..., n) [N·m]."""
        return np.minimum(np.maximum(self._body.gravity(self._report[0]), -self._limit), self._limit)


def _per_joint(given: tuple[float, ...], default: Array, n: int, name: str) -> Array:
    if not given:
        return default
    limit = np.asarray(given, dtype=float)
    if limit.shape != (n,) or not np.all(limit > 0.0):
        raise RetorqueError(f"{name} must be {n} numbers above 0, one a joint")
    return limit
