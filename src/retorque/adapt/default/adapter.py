"""The adapter to trust: what it cannot explain is weighed between contact, payload, drive and joint before it acts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.adapt.default.explanations import Explanations
from retorque.adapt.default.felt_torque import FeltTorque
from retorque.adapt.default.ideal_mismatch import IdealMismatch
from retorque.adapt.default.onset import Onset
from retorque.adapt.default.reopening import Reopening
from retorque.adapt.default.snapshots import Snapshots
from retorque.adapt.default.stillness import Stillness
from retorque.adapt.default.velocity_feedback import ACTS, ANEW, COUNTS, VelocityFeedback
from retorque.adapt.recursive.equation import SHARED, Equation, averaged_equation
from retorque.adapt.tam.context import torque_unit
from retorque.adapt.tam_recursive.adapter import MOST_OWN, TamRecursive
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.physics.default_profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array

WEIGHTS = Path(__file__).with_name("default.safetensors")
"""Of the network that reads residuals, trained in this adapter's own loop."""
SUSPECT, PUSHED, CLEAR = 45.0, 15.0, 14.0
"""Squared Mahalanobis distances of an innovation: above the first something has changed, above the second if the
network sees a push as well and the robot is slow, while a quick one just learns nothing from it; below the last it is
over."""
CREEPING = 45.0
"""The same of the innovation of the oldest estimate kept: what grows slowly enough never surprises the newest one.
On a robot that is quick it counts only where the network sees a push, too: estimates grow old where friction depends
on position."""
SURPRISED = 22.5
"""... of that estimate, below which a surprise of the newest one is the newest one's fault, where nothing else speaks
for a touch."""
SUDDEN = 1
"""Which of the kept estimates, oldest first, is gone back to where a surprise turns out to last."""
LASTING, TOUCHED = 0.4, 1.2
"""When it is taken to last, and when the estimate learns on under it: short pushes change too quickly for that [s]."""
AGAIN = 0.6
"""Where that led astray, it waits for so long before it learns on again [s]."""
CALM = 0.06
"""A mismatch that has vanished for so long is over [s]."""
UNSEEN = 0.25
"""... as is one that would not begin a dispute, where the network has seen no push for so long [s]; on a robot that is
not quick it must be below `SURPRISED`: it may still be pressing on something."""
LATELY, LATELY_MEMORY = 40.0, 0.2
"""... and it must have been below the first over the second [s], where larger ones count as twice `SUSPECT`."""
STRADDLE = 0.04
"""Equations so soon after a change, or after the correction's own jump where it is acted on, average over it: they are
neither weighed nor learnt from [s]."""
BRIEF, BRIEF_FROM = 0.014, 0.005
"""... but in windows as short as the first, from the second on, which begin after the change [s]."""
CERTAIN, SURE, PATIENCE = 3.8, 10.0, 0.25
"""Log odds at which an explanation is acted on, and on a robot that looks ideal, where blows that nothing describes
count for much; as much more is asked for with each such time [s] that passes: what is picked up is there at once."""
CARRIED = (1.35, 0.2)
"""What can be put down: so many times what the estimate says is carried, and so many kilograms."""
OWN_ODDS = 8.0
"""Log odds that anything is hidden once something has been explained as the robot's own."""
GAIN = 16.0
"""Most that the correction multiplies the controller's gains on a joint by."""
PROBATION = 0.5
"""An explanation that is disputed again so soon was wrong, and is taken back [s]."""
SETTLED = 8
"""Estimates kept until a robot that only trembles stands still: at its start it may stick."""
YOUNG = (0.8, 1.2)
"""Until when network and residuals say together how hard something pushes, and from when on the residuals alone do
[s]: each errs in its own way."""
FELT = 0.5
"""What the residuals' word is worth until then."""
MOST_FELT = 0.8
"""Largest torque from outside that is yielded to, as a share of the torque limit."""
TOUCH = 0.15
"""Standard deviation of a lasting touch's torques, as a share of the torque limits."""
COUNTED, MADE_GOOD = 0.5, 0.3
"""How long velocity that is lacking is counted in a dispute, in case that it turns out to be the robot's own, and how
long it is fed back then, whatever the network still sees [s]."""
PAUSE = 0.02
"""If it does not, the count begins anew, which takes so long [s]."""
WALK, WALK_EVERY = 0.6, 5
"""How far a touch may wander in a second [prior standard deviations], and updates between two such steps."""
BUDGET = 0.3
"""Own torque beyond the estimate that is cancelled while something is disputed [units]."""


class Default(TamRecursive):
    """`tam-recursive`, but nothing is cancelled or learnt that may be a touch.

    Where the estimate stops explaining the robot, it is held as it was. Likelihoods of a wrench at the hand, a force at
    the arm, a payload, the drives and each single joint compete, with undecided as an answer. A payload, a drive or a
    joint that wins is learnt at once; to everything else the robot yields as the ideal one would. Where nothing is
    disputed, the velocity that the robot lacks is fed back as well.
    """

    remembered: tuple[str, ...] = (
        *TamRecursive.remembered,
        "disputed",
        "_disputed_for",
        "_calm_for",
        "_held",
        "_stillness",
        "_snapshots",
        "_explanations",
        "_own_since",
        "_refuted",
        "_undo_mean",
        "_undo_root",
        "_undo_evidence",
        "_felt",
        "_under_touch",
        "_walked",
        "_unseen_for",
        "_onset",
        "_counted",
        "_pause",
        "_lately",
        "_mismatch",
        "_feedback",
    )
    periods = (1e-3, 5e-3)
    on_board = WEIGHTS
    gain_doubt = 0.15

    def __init__(
        self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0, *, weights: Path | None = None
    ):
        # An ideal joint that weighs next to nothing would have the real one's rotor follow its every twitch.
        lightest = profile_of(robot).armature_max / GAIN
        weight = np.diagonal(RigidBody(robot).mass_matrix(robot.home))
        self._ideal = RigidBody(robot, armature=robot.armature + np.maximum(lightest - weight, 0.0))
        self.touch = robot.n
        self._feedback = VelocityFeedback(robot, trials, timestep, torque_unit(robot))
        super().__init__(robot, trials, timestep, seed, weights=weights)

    def reset(self) -> None:
        size = self.model.size
        self.disputed = np.zeros(self.trials, dtype=bool)
        """(trials,) whether there is a mismatch that is not the robot's own, or not yet known to be."""
        self._disputed_for = np.zeros(self.trials)
        self._calm_for = np.zeros(self.trials)
        self._held = np.zeros(self.trials, dtype=bool)
        self._stillness = Stillness(self.trials, self.robot.n, self._step)
        evidence = -8.0 if self.card is None else 8.0
        self._snapshots = Snapshots(self.trials, size, self.robot.n, self._step, evidence)
        self._brief_samples = max(3, round(BRIEF / self.timestep) + 1)
        # Equations that share samples are worth less.
        self._weight, self._brief_weight = (
            min(1.0, self._stride / (samples - 1)) for samples in (self._samples, self._brief_samples)
        )
        full = SHARED * self._samples / self._stride  # noise factor of a full window
        self._mismatch = IdealMismatch(self._scale, self.trials, self._step, full)
        self._own_since = np.full(self.trials, np.inf)
        self._refuted = np.zeros(self.trials)
        self._undo_mean = np.zeros((self.trials, size))
        self._undo_root = np.zeros((self.trials, size, size))
        self._undo_evidence = np.zeros(self.trials)
        self._explanations = Explanations(self.robot, self.trials, self._step)
        self._reopening = Reopening(self.model, self._explanations.columns)
        self._under_touch = np.zeros(self.trials, dtype=bool)
        self._walked = np.zeros(self.trials, dtype=int)
        self._unseen_for = np.zeros(self.trials)
        self._onset = Onset(self.trials, self._step)
        self._counted = np.zeros(self.trials, dtype=bool)
        self._pause = np.zeros(self.trials)
        self._lately = np.zeros(self.trials)
        self._lately_share = float(1.0 - np.exp(-self._step / LATELY_MEMORY))
        self._feedback.reset()
        super().reset()
        self._felt = FeltTorque((self.trials, self.robot.n), self.residuals.block * self.timestep)
        # Gains are believed near one at first.
        closed = self._reopening.closed_root(self.model.gain_std.max(axis=-1) / self.gain_doubt)
        self._filter.root[:], self._snapshots.roots[:] = closed, closed

    def _screen(self, equation: Equation, innovation: Array, spread: Array) -> None:
        self._uncertain = np.linalg.norm(spread, axis=1)
        usable = equation.accepted.copy()
        distance = at_first = self._distance(innovation, spread, equation.noise_factor)
        old, old_spread = self._old(equation)
        before = self._distance(old, old_spread, equation.noise_factor)
        ripe = self._snapshots.ripe
        moving = self._stillness.quick & (self._stillness.still_for == 0.0)
        creeping = ripe & (before > CREEPING) & (self._touching | ~moving)
        seen = self._touching & (distance > PUSHED)
        self._held = seen & moving  # it may be friction outside the model: not learnt, but no reason for a dispute
        shared = self._touching | (before > SURPRISED) | (ripe & ~moving)
        sudden = ((distance > SUSPECT) & shared) | (seen & ~self._held)
        turned = self._onset.turns(self._evidence, self._stillness.shows) & (self._own_since > PROBATION)
        begins = usable & ~self.disputed & (sudden | creeping | turned) & (self._own_since > STRADDLE)
        wrong = begins & (self._own_since < PROBATION)
        if wrong.any():  # the last explanation is taken back
            self._filter.mean[wrong], self._filter.root[wrong] = self._undo_mean[wrong], self._undo_root[wrong]
            self._evidence[wrong] = self._undo_evidence[wrong]
            self._snapshots.overwrite(wrong, self._undo_mean, self._undo_root, self._undo_evidence)
            self._refuted[wrong] += 1.0
            self._own_since[wrong] = np.inf
        lasts = self.disputed & (np.abs(self._disputed_for - LASTING) < 0.5 * self._step)
        astray = self.disputed & self._under_touch & (distance > before + SUSPECT)
        self._under_touch &= ~astray
        self._disputed_for[astray] = TOUCHED - AGAIN
        for back, age in (((begins & ~sudden & ~wrong) | astray, 0), (lasts & ripe, SUDDEN)):
            # What was learnt while it began, or may have, is taken back.
            self._filter.mean[back] = self._snapshots.means[age, back]
            self._filter.root[back] = self._snapshots.roots[age, back]
        self._forget_noise(begins, begins & ~sudden)
        rash = self._onset.rash & begins & ~self._snapshots.tell  # no estimate to go back to yet
        self._evidence = np.where(rash, np.minimum(self._evidence, self._snapshots.evidence[0]), self._evidence)
        if begins.any() or lasts.any() or astray.any():
            expected, spread = self._filter.predict(equation.rows)
            innovation = equation.torque - equation.prior - expected
            distance = self._distance(innovation, spread, equation.noise_factor)
        if begins.any():
            self._disputed_for[begins] = 0.0
            self._onset.begin(begins & ~wrong, at_first > SUSPECT)
            self._explanations.restart(begins)
            self._under_touch[begins] = False
            self._calm_for[begins] = self._unseen_for[begins] = 0.0
            self._lately[begins] = 2.0 * SUSPECT
            self.disputed |= begins
        if self.disputed.any():
            self._weigh_dispute(equation, innovation, spread, distance, usable)
        self._onset.end_of_step(at_first)
        self._own_since += self._step
        self._refuted[~self.disputed & (self._own_since > PROBATION)] = 0.0  # it stood
        self._stillness.look(self.history.last(self._samples)[1], self._snapshots.kept >= SETTLED)
        counted, self._counted = self._counted, self._counts
        dropped = counted & ~self._counted & ~self._makes_good
        self._pause = np.where(dropped, PAUSE, np.maximum(self._pause - self._step, 0.0))
        self.contact = self.disputed
        equation.accepted &= ~self.disputed & ~self._held & ~self._stillness.rests & (self._own_since > STRADDLE)
        usual = equation.accepted & self._looks_ideal & (self._evidence < 0.0)
        self._mismatch.learn(equation.mismatch, equation.noise_factor, usual)
        self._snapshots.keep(~self.disputed, self._filter.mean, self._filter.root, self._evidence, self._sizes)
        self.health[:] = np.where(self.disputed, int(Health.SURPRISED), 0)

    def _refresh(self) -> None:
        super()._refresh()
        self._estimate["trust"] = (1.0 / (1.0 + np.exp(-self._snapshots.lasting(self._evidence))))[:, None]

    def observe(self, state: State) -> None:
        before = self.history.total
        super().observe(state)
        fresh = self.history.total - before
        if fresh > 1:  # reports are missing
            self._feedback.reset()
        if fresh > 0:
            self._feedback.observe(state, self.belief.arrays["follow"])

    def correct(self, state: State, nominal_torque: Array) -> Array:
        a, inverse = self.belief.arrays, self._tick_inverse
        q, qd, external = state.position, state.velocity, a["share"] * a["external"]
        ideal = self._ideal.forward_dynamics(q, qd, nominal_torque + external)
        found = inverse(a, q, qd, ideal, external) + a["own"]
        torque = nominal_torque + a["trust"] * (found - nominal_torque) + a["backing"] * self._feedback.torque
        counts = a["follow"] == COUNTS
        if counts.any():  # what it lacks if nothing pushes
            ideal = np.where(counts, self._ideal.forward_dynamics(q, qd, nominal_torque), ideal)
        self._feedback.expect(ideal, nominal_torque, torque)
        return torque

    def _believe(self) -> Belief:
        yields = self.disputed | self._held | self._stillness.rests | (self._pause > 0.0)
        follow = np.where(self._counts, COUNTS, np.where(yields, ANEW, ACTS))
        self._estimate["follow"] = np.where(self._makes_good, ACTS, follow)[:, None]
        # Before there is any evidence that something is hidden, feedback is all that there is.
        self._estimate["backing"] = np.where(self._snapshots.tell[:, None], self._estimate["trust"], 1.0)
        return super()._believe()

    @property
    def _counts(self) -> Array:
        """(trials,) where velocity that is lacking may be the robot's own, or a push: what came at once, or may."""
        at_once = (self._onset.watched == 0.0) & (self._disputed_for < COUNTED)
        maybe: Array = np.where(self.disputed, at_once, self._held) & ~self._stillness.rests
        return maybe

    @property
    def _makes_good(self) -> Array:
        """(trials,) where it has just turned out to be the robot's own."""
        found: Array = (self._own_since <= MADE_GOOD) & ~self.disputed & ~self._stillness.rests
        return found

    @property
    def _looks_ideal(self) -> Array:
        """(trials,) where the robot has shown that nothing is hidden."""
        shown: Array = self._snapshots.tell & (self._snapshots.lasting(self._evidence) < 0.0)
        return shown

    def _explained(self, q: Array, qd: Array, qdd: Array, given: Array) -> Array:
        return self._inverse(self._estimate, q, qd, qdd, given=given)

    def _old(self, equation: Equation) -> tuple[Array, Array]:
        """Innovation and spread of the oldest estimate that is kept."""
        root, mean = self._snapshots.roots[0], self._snapshots.means[0]
        expected = np.matmul(equation.rows, mean[..., None])[..., 0]
        spread = np.matmul(np.swapaxes(root, -1, -2), np.swapaxes(equation.rows, -1, -2))
        return equation.torque - equation.prior - expected, spread

    def _weigh_dispute(
        self, equation: Equation, innovation: Array, spread: Array, distance: Array, usable: Array
    ) -> None:
        """Let the explanations compete where something is disputed, and act on what is certain."""
        self._disputed_for += self._step * self.disputed
        young = self._disputed_for <= STRADDLE
        weighed = np.flatnonzero(self.disputed & usable & ~young)
        begun = self.disputed & young & (self._disputed_for > BRIEF_FROM)
        if len(weighed):
            self._decide(equation, innovation, spread, weighed, self._weight)
            self._learn_touched(equation, weighed)
        if begun.any():
            brief = averaged_equation(self.history, self.model, self._brief_samples, self._samples, self._stride)
            expected, spread = self._filter.predict(brief.rows)
            left = brief.torque - brief.prior - expected
            self._decide(brief, left, spread, np.flatnonzero(begun & brief.accepted), self._brief_weight)
        self._unseen_for = np.where(self._touching, 0.0, self._unseen_for + self._step)
        self._lately += self._lately_share * (np.minimum(distance, 2.0 * SUSPECT) - self._lately)
        small = (distance < np.where(self._stillness.quick, SUSPECT, SURPRISED)) & (self._lately < LATELY)
        unseen = small & (self._unseen_for > UNSEEN)
        over = self.disputed & ~self._touching & (((distance < CLEAR) & self._explanations.over) | unseen)
        self._calm_for = np.where(over, self._calm_for + self._step, 0.0)
        ended = self.disputed & (self._calm_for >= CALM)
        self._refuted[ended] = 0.0
        self.disputed &= ~ended

    def _decide(self, equation: Equation, innovation: Array, spread: Array, weighed: Array, weight: float) -> None:
        """Weigh an equation of some trials (m,), worth so much of an independent one, and act on what is certain."""
        left, part = innovation[weighed], spread[weighed]
        own = self._noise[weighed] * max(1.0, equation.noise_factor) + self._disturbance.total[weighed]
        # A robot that hides nothing is known better than any estimate of it.
        looks_ideal = self._looks_ideal
        ideal = looks_ideal[weighed, None]
        left = np.where(ideal, equation.mismatch[weighed], left)
        own = np.where(ideal, self._mismatch.variance(equation.noise_factor)[weighed], own)
        part = np.where(ideal[..., None], 0.0, part)
        noise = np.matmul(np.swapaxes(part, -1, -2), part)
        index = np.arange(self.robot.n)
        noise[:, index, index] += own
        self._explanations.take(
            weighed,
            left,
            noise,
            equation.position[weighed],
            equation.velocity[weighed],
            equation.acceleration[weighed],
            equation.torque[weighed],
            weight,
        )
        asked = np.where(looks_ideal, SURE, CERTAIN)
        least = asked * (1.0 + self._disputed_for / PATIENCE) * 3.0**self._refuted
        carried = CARRIED[0] * np.maximum(self.model.carried(self._filter.mean), 0.0) + CARRIED[1]
        verdict = self._explanations.verdict(least, carried, self._onset.watched > 0.0)
        sure = np.zeros(self.trials, dtype=bool)
        sure[weighed] = ~self._stillness.rests[weighed]  # who stands still may be leaning on something
        sure &= self.disputed & (self._disputed_for > self._onset.watched)
        self._open(equation, sure & verdict.payload, sure & (verdict.joint >= 0), verdict.joint)
        self._refuted[self._explanations.renew(weighed)] += 1.0

    def _learn_touched(self, equation: Equation, weighed: Array) -> None:
        """Learn on under a touch that lasts, any torques at the joints among the unknowns: what they cannot follow,
        as friction that turns with the motion, is the robot's own."""
        ready = np.zeros(self.trials, dtype=bool)
        ready[weighed] = True
        ready &= self.disputed & (self._disputed_for > TOUCHED) & ~self._stillness.rests
        part, trials = self.model.touch_part, np.flatnonzero(ready)
        self._filter.renew(np.flatnonzero(ready & ~self._under_touch), part)
        self._under_touch = ready | (self._under_touch & self.disputed)
        if len(trials) == 0:
            return
        self._walked[trials] += 1
        walking = trials[self._walked[trials] % WALK_EVERY == 0]
        if len(walking):
            self._filter.walk(walking, part, WALK * np.sqrt(WALK_EVERY * self._step))
        rows = np.where(ready[:, None, None], equation.rows, 0.0)
        rows[trials, :, part] = -np.diag(TOUCH * self._strength)
        expected, spread = self._filter.predict(rows)
        innovation = np.where(ready[:, None], equation.torque - equation.prior - expected, 0.0)
        noise = self._noise * equation.noise_factor + self._disturbance.total
        self._filter.update(innovation, rows, spread, noise, forget=False)
        self._constrain(ready)

    def changed(self, within: float) -> Array:
        """(trials,) where a payload, drive or joint has changed within so many seconds, as far as that stands."""
        return self._own_since <= within

    def _open(self, equation: Equation, payload: Array, joint: Array, which: Array) -> None:
        """What has changed is the robot's own: move the estimate there, give it doubt about it, and go on learning,
        unless even the equation of now is not explained by it."""
        opened = payload | joint
        if not opened.any():
            return
        for trial in np.flatnonzero(opened):
            found = self._explanations.payload if payload[trial] else self._explanations.joints[which[trial]]
            mean, covariance = found.mean[trial], found.covariance[trial]
            if payload[trial]:
                opening = self._reopening.payload(mean, covariance)
            else:
                opening = self._reopening.joint(int(which[trial]), mean, covariance)
            self._undo_mean[trial], self._undo_root[trial] = self._filter.mean[trial], self._filter.root[trial]
            self._filter.mean[trial] += opening.shift
            self._filter.widen(int(trial), opening.doubt)
        expected, spread = self._filter.predict(equation.rows)
        left = equation.torque - equation.prior - expected
        wrong = opened & (self._distance(left, spread, equation.noise_factor) > CLEAR)
        self._filter.mean[wrong], self._filter.root[wrong] = self._undo_mean[wrong], self._undo_root[wrong]
        self._refuted[wrong] += 1.0
        opened &= ~wrong
        self._own_since[opened] = 0.0
        self._undo_evidence[opened] = self._snapshots.lasting(self._evidence)[opened]
        self._evidence[opened] = OWN_ODDS
        self._snapshots.overwrite(opened, self._filter.mean, self._filter.root, self._evidence)
        self.disputed &= ~opened

    @property
    def _sizes(self) -> Array:
        """Variances of noise, and of what is never explained, (2, trials, n)."""
        return np.stack([self._noise, self._disturbance.total])

    def _forget_noise(self, which: Array, crept: Array) -> None:
        """What a touch adds to the residuals is neither noise nor, where it crept in, evidence: back to before."""
        self._evidence = np.where(crept, self._snapshots.evidence[0], self._evidence)
        noise, total = np.minimum(self._snapshots.sizes[0], self._sizes)
        self._noise = np.where(which[:, None], noise, self._noise)
        self._disturbance.total = np.where(which[:, None], total, self._disturbance.total)

    def _distance(self, innovation: Array, spread: Array, factor: float) -> Array:
        covariance = np.matmul(np.swapaxes(spread, -1, -2), spread)
        index = np.arange(innovation.shape[-1])
        noise, total = np.minimum(self._snapshots.sizes[0], self._sizes)
        covariance[:, index, index] += noise * max(1.0, factor) + total
        return np.sum(innovation * np.linalg.solve(covariance, innovation[..., None])[..., 0], axis=-1)

    def _answer(self, external: Array, own: Array) -> None:
        """The network's word counts while a mismatch is young; what lasts from outside is what the estimate misses."""
        felt = self._felt.take(self.residuals.newest, self.residuals.sound, self.residuals.lost)
        old = np.clip((self._disputed_for - YOUNG[0]) / (YOUNG[1] - YOUNG[0]), 0.0, 1.0) * self.disputed
        share = np.where(self.disputed, FELT + (1.0 - FELT) * old, 0.0)
        super()._answer(external, own)
        # The estimate has the last word: where it misses nothing, what the network takes for a push is own torque.
        self._pushed *= (self.disputed | self._held)[:, None]
        self._pushed += share[:, None] * (
            np.clip(felt, -MOST_FELT * self._strength, MOST_FELT * self._strength) - self._pushed
        )
        self._limit_share(self._pushed)
        most = np.where(self.disputed | self._held | self._stillness.rests, BUDGET, MOST_OWN) * (1.0 - old)
        self._own = np.clip(self._own, -most[:, None] * self.unit, most[:, None] * self.unit)
