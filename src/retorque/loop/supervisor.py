"""What stands between any adapter and the robot: ramps, limits, fallbacks and a code for every tick."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.clock import Clock
from retorque.loop.guard.blind_joints import BlindJoints
from retorque.loop.guard.brake import Brake
from retorque.loop.guard.contact_force import ContactForce, default_force
from retorque.loop.guard.fading import Fading
from retorque.loop.guard.report_check import ABSURD, ReportCheck
from retorque.loop.guard.supervisor_settings import SupervisorSettings
from retorque.loop.health import Health
from retorque.loop.score import Score
from retorque.physics.rigid_body import RigidBody
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

UNKNOWN_LIMIT = 50.0
"""Correction allowed on a joint whose torque limit is not known, before `residual_share` [N·m]."""

__all__ = ["Supervisor", "SupervisorSettings"]


class Supervisor(Adapter):
    """Any adapter, made safe to run: whatever comes in, what goes out is finite and within the torque limits.

    It is an adapter itself. `health` (...) holds this tick's codes, `counts` how often each occurred, `correction`
    (..., n) the last correction that was asked for after limits, `gain` (..., n) how much of it goes out, and `score`
    how well it explains the robot. Reports are checked joint by joint (`ReportCheck`): the adapter sees what can be
    believed, on a clock of its own; a joint that cannot be believed holds its correction for a moment, then fades to
    the nominal torque, while the others stay corrected. Nothing here raises while the robot runs.

    Args:
        adapter: what computes the correction, for one robot or a batch.
        settings: limits and times.
    """

    _silent: int
    _unlearnt: bool
    _last: Array
    _last_nominal: Array

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
        bounds = np.stack([self.residual_limit, self._step_limit, self._limit])
        self._bounds = np.ascontiguousarray(bounds.reshape(3, *(1,) * len(lead), n))
        self._stale_ticks = round(max(s.stale_after / self.timestep, 10.0 * self.learn_every))
        self._body = RigidBody(robot)
        self._clock = Clock(self.timestep)
        self.score = Score(robot, self._shape, self.timestep)
        self._reports = ReportCheck(robot, self._shape, self.timestep, s)
        self._brake = Brake(robot, self._reports.motion.brake / self.timestep, self._reports.motion.inertia)
        self._fading = Fading(self._shape, self.timestep, s)
        most = default_force(robot) if s.max_contact_force is None else s.max_contact_force
        if not most > 0.0:
            raise RetorqueError(f"max_contact_force is {most} N; it must be positive, or infinite for no promise")
        self._force = ContactForce(robot, self._shape, self.score.period, most)
        self._unseen = BlindJoints(robot, self._shape, self.score.period, self._reports.motion.held)
        self._log = np.zeros((s.log_ticks, *self._shape))
        self._log_codes = np.zeros((s.log_ticks, *lead), dtype=np.int64)
        self._log_time = np.zeros(s.log_ticks)
        self.counts = dict.fromkeys((flag for flag in Health if flag), 0)
        self._clean = np.zeros(lead, dtype=np.int64)
        self._everyone = np.ones(lead, dtype=bool)
        # Correction, its change and the torque of a tick; the last correction lies in the other of two arrays.
        self._work, self._turn = np.zeros((2, 3, *self._shape)), 0
        self._works, self._rows = list(self._work), [tuple(work) for work in self._work]
        self._sizes, self._within = np.zeros((3, *self._shape)), np.zeros((3, *self._shape), dtype=bool)
        self._clear()

    @property
    def max_contact_force(self) -> float:
        """How much harder than the nominal command the robot may press [N]."""
        return self._force.most

    @property
    def gain(self) -> Array:
        """(..., n) how much of each joint's correction goes out."""
        return self._fading.gain * self._reports.range_gain

    @property
    def nominal_gain(self) -> Array:
        """(..., n) how much of each joint's nominal torque goes out; the rest is what brakes a joint whose numbers are
        wrong."""
        return self._fading.nominal_gain

    def reset(self) -> None:
        self._clear()
        self._note("reset", self._done(self.adapter.reset))

    def carry(self) -> None:
        self._note("carry", self._done(self.adapter.carry))
        self.score.spoil()

    def resume(self) -> None:
        self._clear()
        self._note("resume", self._done(self.adapter.resume))

    def save(self, path: str | Path) -> None:
        self.adapter.save(path)

    def load(self, path: str | Path, *, mid_run: bool = False) -> None:
        self.adapter.load(path, mid_run=mid_run)

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
        self._time += step * self.timestep
        self._stamp = state.time
        reports = self._reports
        taken = reports.take(state, step)
        self._shown = shown = State(self._time, taken.position, taken.velocity, taken.torque)
        if not reports.calm:
            self._codes = self._codes | reports.codes
        if reports.calm and not self._faults:
            try:
                self.adapter.observe(shown)
            except Exception:
                self._faults.add("observe")
        else:
            self._note("observe", self._done(lambda: self.adapter.observe(shown)))

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
        self._age += 1
        nominal = np.asarray(nominal_torque, dtype=float)
        if nominal.shape == self._shape and self._untroubled():
            sent, asked = self._plain(nominal)
            return self._sent(sent if sent is not None else self._careful(nominal, asked))
        return self._sent(self._careful(nominal, None))

    def _plain(self, nominal: Array) -> tuple[Array | None, Array | None]:
        """The torque to send if everything is within its limits, else none, and what the adapter asked for."""
        correction, change, torque = self._rows[self._turn]
        try:
            asked = self.adapter.correct(self._shown, nominal)
            if asked.shape != self._shape:
                return None, None
            np.subtract(asked, nominal, out=correction)
        except Exception:
            return None, None
        np.subtract(correction, self._last, out=change)
        np.add(nominal, correction, out=torque)
        sizes, within = self._sizes, self._within
        np.abs(self._works[self._turn], out=sizes)
        np.less_equal(sizes, self._bounds, out=within)
        if np.count_nonzero(within) != within.size:  # cheaper than `all`; NaN is not within
            return None, asked
        if self._force.active and not self._force.kept(correction):
            return None, asked
        self._turn = 1 - self._turn
        self._last = self.correction = correction
        self._last_nominal = nominal
        return torque.copy(), asked

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
        self._ticks = self._age = self._silent = 0
        self._fresh = self._unlearnt = False
        self._faults: set[str] = set()
        self._time = -self.timestep
        self._stamp = -np.inf
        self._clock.reset()
        self._reports.reset()
        self._fading.reset()
        self._force.reset()
        self._unseen.reset()
        self._last = np.zeros(self._shape)
        self._last_nominal = self._gravity()
        self._shown = self._at()
        self._held = np.zeros(self._shape[:-1])
        self._codes = self._clean
        self.health = self._clean
        self.correction = np.zeros(self._shape)
        self.score.clear()

    def _flag(self, code: Health, which: Array | np.bool_ | None = None) -> None:
        """Add a code to this tick's, in all trials or in some (...)."""
        added = int(code) if which is None else np.where(which, int(code), 0)
        self._codes = self._codes | added

    def _stale(self) -> bool:
        return bool((self.learn_every and self._age > self._stale_ticks) or self._silent > self._stale_ticks)

    def _untroubled(self) -> bool:
        """Whether nothing needs more than the limits to be looked at."""
        return (
            self._reports.calm
            and self._fading.full
            and not (self._faults or self._unlearnt or self.settings.shadow)
            and not self._stale()
        )

    def _at(self) -> State:
        """The state that the adapter is asked at."""
        position, velocity, torque = self._reports.now
        return State(self._time, position, velocity, torque)

    def _careful(self, nominal: Array, asked: Array | None) -> Array:
        """The torque where something is not as it should be, joint by joint."""
        if self.score.ended and self._reports.dead.any() and not self._faults:
            self._look_for_unseen()
        whole, usable = self._nominal(nominal)
        nominal = self._seen(whole)
        if self._unlearnt:
            self._flag(Health.FAULT)
        if asked is None or usable is not self._everyone or nominal is not whole:
            asked = self._ask(nominal)
        failed = not (isinstance(asked, np.ndarray) and asked.shape == self._shape and asked.dtype.kind == "f")
        residual = np.zeros(self._shape) if failed or asked is None else asked - nominal
        if failed:
            self._flag(Health.FAULT)
        trusted, limited = self._limited(residual, usable, failed)
        stale = self._stale()
        if stale:
            self._flag(Health.STALE)
        out = self._reports.fault | stale | (failed & ~trusted)
        self._fading.advance(trusted, out, limited | self._cut(nominal), self._reports.blind)
        if self._fading.tripped.any():
            self._flag(Health.TRIPPED, self._fading.tripped.any(axis=-1))
        gain = self.gain
        if not self._fading.full:
            self._flag(Health.RAMP, (gain < 1.0).any(axis=-1))
        spoilt = np.asarray(~trusted.all(axis=-1) | self._reports.blind.any(axis=-1))
        if spoilt.any():
            self.score.spoil(spoilt)
        torque = whole if self.settings.shadow else nominal + gain * self._last
        sent = np.minimum(np.maximum(torque, -self._limit), self._limit)
        if not (sent == torque).all():
            self._flag(Health.TORQUE_LIMIT, (sent != torque).any(axis=-1))
        self.correction = self._last
        return np.array(sent)

    def _cut(self, nominal: Array) -> Array:
        """Which joints the correction drives into their torque limit, (..., n)."""
        torque = nominal + self._fading.gain * self._last
        return (np.abs(torque) > self._limit) & (np.abs(nominal) < self._limit)

    def _nominal(self, nominal: Array) -> tuple[Array, Array]:
        """A nominal torque that is finite, and whether it is the controller's own, trial by trial."""
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

    def _seen(self, nominal: Array) -> Array:
        """The nominal torque, but what brakes a joint where it is worked out from numbers that are known to be wrong;
        the same array where there is no such joint."""
        share, blind = self._fading.nominal_gain, self._reports.blind
        replaced = blind | (share < 1.0)
        if not replaced.any():
            return nominal
        self._flag(Health.BAD_NOMINAL, replaced.any(axis=-1))
        braked = self._brake.torque(self._reports.now, nominal, blind, self._gravity())
        return np.where(replaced, braked + share * (nominal - braked), nominal)

    def _look_for_unseen(self) -> None:
        """Where joints are whose encoders are dead, by what the others' torques say."""

        def robot(motion: Array) -> Array:
            """Torque that the adapter believes the robot to need (3, ..., n) -> (..., n)."""
            q, qd, qdd = motion
            state = State(self._time, q, qd, self.score.torque)
            return np.asarray(self.adapter.correct(state, self._body.inverse_dynamics(q, qd, qdd)))

        reports, score = self._reports, self.score
        since = self.timestep * reports.motion.repeats
        try:
            with np.errstate(all="ignore"):
                wrong = self._unseen.window(reports.dead, since, score.motion, score.torque, robot)
        except Exception:  # the adapter's
            return
        reports.move(wrong)
        score.move(wrong)

    def _ask(self, nominal: Array) -> Array | None:
        """The adapter's torque at the last good state, if it gives one."""
        if self._faults:
            return None
        try:
            with np.errstate(all="ignore"):
                return np.asarray(self.adapter.correct(self._at(), nominal))
        except Exception:
            return None

    def _limited(self, residual: Array, usable: Array, failed: bool) -> tuple[Array, Array]:
        """Set the last correction to this one within its size, force and rate.

        Returns:
            Which joints may be trusted, and which are at their limit, (..., n). A joint that may not be trusted keeps
            the correction it had.
        """
        finite = np.isfinite(residual).all(axis=-1)
        if failed:
            finite = np.zeros_like(finite)
        else:
            self._flag(Health.BAD_CORRECTION, ~finite)
        trusted = (finite & usable)[..., None] & ~self._reports.suspect
        wanted = np.where(trusted, residual, self._last)
        cut = np.minimum(np.maximum(wanted, -self.residual_limit), self.residual_limit)
        limited = cut != wanted
        self._flag(Health.RESIDUAL_LIMIT, limited.any(axis=-1))
        if self._force.active:
            kept = self._force.limited(cut)
            if kept is not cut:
                self._flag(Health.FORCE_LIMIT, (np.abs(kept - cut) > 1e-9).any(axis=-1))
                cut = np.minimum(np.maximum(kept, -self.residual_limit), self.residual_limit)
        if self._ticks:
            slow = self._last + np.minimum(np.maximum(cut - self._last, -self._step_limit), self._step_limit)
            self._flag(Health.RATE_LIMIT, (np.abs(slow - cut) > 1e-12).any(axis=-1))
            cut = slow
        self._last = cut
        return trusted, limited

    def _sent(self, torque: Array) -> Array:
        """Score, count and log the tick, and remember what was sent."""
        dead = self._reports.dead
        if not self._reports.calm and dead.any():  # what the ideal robot's would do
            position, velocity, _ = self._reports.now
            answer = self._body.forward_dynamics(position, velocity, torque - self.gain * self.correction)
            self._reports.motion.drive(np.where(dead, self.timestep * answer, 0.0))
        if self.score.tick(self._reports.now, self.correction):
            score = self.score
            self._force.window(score.left, score.mean_correction, self._reports.now, score.good)
            self._unseen.note(dead, score.left, score.good)
        self._reports.sent(torque)
        own = self.adapter.health
        health = self._codes
        if np.count_nonzero(own):
            health = health | own
        self.health = health
        if health is not self._clean:
            for flag in self.counts:
                self.counts[flag] += int(np.count_nonzero(health & int(flag)))
        if len(self._log):
            row = self._ticks % len(self._log)
            self._log_time[row] = self._stamp
            self._log[row], self._log_codes[row] = self.correction, health
        self._ticks += 1
        return torque

    def _gravity(self) -> Array:
        """Torque that holds the ideal robot at its last good position, (..., n) [N·m]."""
        return np.minimum(np.maximum(self._body.gravity(self._reports.now[0]), -self._limit), self._limit)


def _per_joint(given: tuple[float, ...], default: Array, n: int, name: str) -> Array:
    if not given:
        return default
    limit = np.asarray(given, dtype=float)
    if limit.shape != (n,) or not np.all(limit > 0.0):
        raise RetorqueError(f"{name} must be {n} numbers above 0, one a joint")
    return limit
