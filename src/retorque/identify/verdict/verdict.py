"""Whether an identified model may be trusted, and if not, what is wrong with its log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from retorque.identify.verdict.doubts import Shifts, TorqueScales, meaningful, scales, shifts
from retorque.identify.verdict.reading import Fit, Reading, longest_part
from retorque.identify.verdict.sample import thinned
from retorque.identify.verdict.search import Guess, guesses, hidden_offset, likely
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.robots.robot import Robot
from retorque.work.array import Array

Word = Literal["trust", "doubt", "refuse"]
CODES: dict[Word, int] = {"trust": 0, "doubt": 3, "refuse": 2}
"""Exit codes."""

MUCH, MOST = 0.35, 0.6
"""Share of a moving joint's torque left unexplained on data held back that is doubted, and refused."""
LARGE, HUGE = 2.0, 3.0
"""Factor between measured and foreseen torques that is doubted, and refused."""
ODD = 4.0
"""The same of one joint against the others'."""
BENT = 30.0
"""Distance of a link from its card that is doubted: half a square of standard deviations, for each link [nat]."""
BETTER, CLEAR = 25.0, 150.0
"""How much better another reading must explain the log before it is doubted, and refused [nat]."""
TURNED = np.deg2rad(3.5)
"""Joint offset that is doubted [rad]."""
SURE = 5.0
"""Standard deviations that an offset or a delay must be away from zero."""
DELAYED = 0.03
"""Delay of the torques that is doubted [s]."""
DRIVING = 0.1
"""Friction that drives, as a part of the torque, that is doubted."""
SLIGHT = 8.0
"""How much better another zero of a joint must explain the log: an offset hides in the links' centres of mass [nat]."""
NEARER = 2.0
"""By how much nearer to the card another zero must bring the links, where only they give it away [nat]."""
TURNED_A_LITTLE, VAGUE = np.deg2rad(2.0), 0.1
"""Joint offset from which on one hidden in the links is looked for, and the error at which it says nothing [rad]."""
ODDLY, STRANGE = 0.1, 12.5
"""Unexplained share, and distance of all links from their card [nat], from which on causes are looked for."""
STILL = 0.02
"""Range of positions below which a joint did not move [rad or m]."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What to make of a model."""

    verdict: Word
    causes: tuple[str, ...] = ()
    """Words: permutation, sign, scale, gravity, load, time shift, joint offset, time unit, dead channel,
    frozen channel, zeros, wrong robot, two robots, no motion."""
    reasons: tuple[str, ...] = ()
    """Sentences: what speaks against it, and what to try."""
    evidence: dict[str, Any] = field(default_factory=dict)
    """The figures behind it."""

    @property
    def code(self) -> int:
        """Exit code."""
        return CODES[self.verdict]

    def as_json(self) -> dict[str, Any]:
        """As a result file holds it."""
        return {
            "verdict": self.verdict,
            "causes": list(self.causes),
            "reasons": list(self.reasons),
            "evidence": self.evidence,
        }


@dataclass
class Case:
    """What has been found so far."""

    level: int = 0
    """0 trust, 1 doubt, 2 refuse."""
    causes: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def add(self, level: int, reason: str, cause: str = "") -> None:
        """One more sentence, with its cause where it is known."""
        self.level = max(self.level, level)
        self.reasons.append(reason)
        if cause and cause not in self.causes:
            self.causes.append(cause)

    def end(self, evidence: dict[str, Any]) -> Verdict:
        """The verdict."""
        word: Word = ("trust", "doubt", "refuse")[self.level]
        return Verdict(verdict=word, causes=tuple(self.causes), reasons=tuple(self.reasons), evidence=evidence)


def judge(motion: Motion, robot: Robot, friction: Friction, channels: tuple[tuple[str, str], ...] = ()) -> Verdict:
    """The verdict on a log, and so on whatever was learnt from it.

    Args:
        motion: the log, or whole pieces of it.
        robot: the card.
        friction: the friction model.
        channels: causes and sentences that the raw channels gave away.
    """
    case = Case()
    for cause, sentence in channels:
        case.add(2, sentence, cause)
    moving = np.ptp(motion.q, axis=0) > STILL
    if not np.any(moving):
        case.add(2, "no joint moved, so that the log says nothing about inertia or friction", "no motion")
        return case.end({})
    at = thinned(motion)
    reading = Reading(robot, friction, motion[at])
    fit, held = reading.fit(), reading.held_back()
    scale, shift = scales(reading), shifts(reading, fit)
    evidence = _evidence(reading, fit, held, scale, shift)
    noisy = np.zeros(motion.n, dtype=bool)
    if np.any(held[moving] > ODDLY):
        left = held * meaningful(reading, fit, motion)
        noisy, held = moving & (held > MUCH) & (left < MUCH), left
        evidence["unexplained_beyond_noise"] = held.tolist()
    if "dead channel" in case.causes or "frozen channel" in case.causes or "zeros" in case.causes:
        return case.end(evidence)  # whatever else looks odd follows from that
    suspicious = _suspicions(case, reading, fit, held, moving, shift)
    best, gain = _best(likely(reading), fit, (None, 0.0))
    if suspicious or gain > BETTER:
        best, gain = _best(guesses(reading, motion, at), fit, (best, gain))
    if best is not None and gain > (SLIGHT if best.cause == "joint offset" else BETTER):
        told = moving & ~noisy
        _blame(case, reading, best, _beside(best, motion, at, told), gain, told)
    slightly = (np.abs(shift.offset) > TURNED_A_LITTLE) & (shift.offset_std < VAGUE)
    if not case.level and np.any(slightly):
        _hidden(case, reading)
    if not case.level:  # only where the motion is understood does a scale mean anything
        _scale(case, robot, scale, moving)
    if case.level and not case.causes:
        _unexplained(case, reading, case.level, moving & ~noisy)
    if np.any(noisy):
        names = ", ".join(robot.joint_names[j] for j in np.flatnonzero(noisy))
        case.add(0, f"the torque of {names} is hardly above its noise: this motion says little about it")
    return case.end(evidence)


def _hidden(case: Case, reading: Reading) -> None:
    """An offset that the links' centres of mass have taken in."""
    found = hidden_offset(reading, TURNED, NEARER, SLIGHT)
    if found is not None:
        words = "is its zero the card's, or are its links another make's?"
        case.add(1, f"the links are far nearer to their card {found[0].words}: {words}", found[0].cause)


def _unexplained(case: Case, reading: Reading, level: int, moving: Array) -> None:
    """No other reading helps: the whole log is another robot's, or a part of it is."""
    part = longest_part(reading, MUCH, moving)
    if part is None:
        case.add(level, "no other reading of the log explains it: is it another robot?", "wrong robot")
        return
    begun = float(reading.motion.time[0])
    words = f"only what lies between {part[0] - begun:.0f} and {part[1] - begun:.0f} s is explained by this robot"
    case.add(level, f"{words}: are these logs of two robots in one file? read them apart (--rows)", "two robots")


def _blame(case: Case, reading: Reading, best: Guess, beside: Guess | None, gain: float, moving: Array) -> None:
    """Say what the best other reading means; one that leaves most unexplained is no explanation."""
    last = beside or best
    if last.cause != "wrong robot" and float(np.max(last.fit().share[moving])) > MUCH:
        _unexplained(case, reading, 2, moving)
        return
    words = best.words if beside is None else f"{best.words}, and {beside.words}"
    case.add(2 if gain > CLEAR else 1, f"the log fits far better {words}", best.cause)
    if beside is not None:
        case.add(0, "two things at once: make good the first and look again", beside.cause)


def _beside(best: Guess, motion: Motion, at: Array, moving: Array) -> Guess | None:
    """A second thing that is wrong, where the first leaves much unexplained."""
    fit = best.fit()
    much = np.max(fit.share[moving]) > MUCH or np.max(fit.backwards[moving]) > DRIVING
    if best.change is None or not much:
        return None
    changed = best.change(motion)
    again = best.reading.other(changed[at])
    found, gain = _best(guesses(again, changed, at), again.fit(), (None, 0.0))
    return found if found is not None and gain > BETTER and found.change is not None else None


def _suspicions(case: Case, reading: Reading, fit: Fit, held: Array, moving: Array, shift: Shifts) -> bool:
    """Whether to look for a cause; what is bad enough by itself is added to the case."""
    joint = reading.robot.joint_names
    bad = [joint[j] for j in np.flatnonzero(moving & (held > MUCH))]
    if bad:
        level = 2 if np.any(held[moving] > MOST) else 1
        shares = ", ".join(f"{100 * held[j]:.0f} %" for j in np.flatnonzero(moving & (held > MUCH)))
        case.add(level, f"{shares} of the torque of {', '.join(bad)} stays unexplained on data held back")
    backwards = [joint[j] for j in np.flatnonzero(moving & (fit.backwards > DRIVING))]
    if backwards:
        case.add(1, f"the friction of {', '.join(backwards)} would have to drive instead of brake")
    if fit.bend > BENT * reading.layout.links:
        case.add(1, f"the links are {np.sqrt(2.0 * fit.bend):.0f} standard deviations from the card")
    late = abs(shift.delay) > max(DELAYED, SURE * shift.delay_std)
    turned = np.abs(shift.offset) > np.maximum(TURNED, 0.6 * SURE * shift.offset_std)
    return bool(case.level or late or np.any(turned) or np.any(held[moving] > ODDLY) or fit.bend > STRANGE)


def _best(tried: Any, fit: Fit, known: tuple[Guess | None, float]) -> tuple[Guess | None, float]:
    """The guess that gains most over the log as it is [nat]."""
    best, gain = known
    for guess in tried:
        found = guess.fit()
        better = fit.score - found.score - guess.easier
        if better > gain:
            best, gain = guess, better
    return best, gain


def _scale(case: Case, robot: Robot, scale: TorqueScales, moving: Array) -> None:
    """Torques that are not the card's size: units, gear ratios, drive gains."""
    if not np.isfinite(scale.common):
        return
    off = max(scale.common, 1.0 / scale.common)
    if off > LARGE:
        words = (
            f"the torques are {scale.common:.3g} times what the card's links need: are they in N·m, the currents in A, "
            "the drive gains at the joint?"
        )
        case.add(2 if off > HUGE else 1, words, "scale")
        return
    for j in np.flatnonzero(np.isfinite(scale.joint) & moving):
        one = scale.joint[j] / scale.common
        if one > 0.0 and max(one, 1.0 / one) > ODD:
            words = f"the torque of {robot.joint_names[j]} is {one:.2g} times what the other joints' would suggest"
            case.add(1, f"{words}: is its unit or drive gain another?", "scale")


def _evidence(reading: Reading, fit: Fit, held: Array, scale: TorqueScales, shift: Shifts) -> dict[str, Any]:
    residual = np.stack(
        [
            reading.motion.torque[:, j] - rows @ fit.vector[columns]
            for j, (columns, rows) in enumerate(zip(reading.layout.columns, reading.rows, strict=True))
        ],
        axis=1,
    )
    return {
        "unexplained_held_back": held.tolist(),
        "unexplained_in_training": fit.share.tolist(),
        "links_from_card_std": float(np.sqrt(2.0 * fit.bend)),
        "torque_over_card": [None if not np.isfinite(value) else float(value) for value in scale.joint],
        "torque_over_card_common": float(scale.common) if np.isfinite(scale.common) else None,
        "torque_delay_s": shift.delay,
        "torque_delay_std_s": shift.delay_std,
        "joint_offset_rad": shift.offset.tolist(),
        "joint_offset_std_rad": shift.offset_std.tolist(),
        "friction_that_drives": fit.backwards.tolist(),
        "residual_follows_velocity": _follows(residual, reading.motion.qd).tolist(),
        "residual_follows_position": _follows(residual, reading.motion.q).tolist(),
    }


def _follows(residual: Array, signal: Array, bins: int = 12) -> Array:
    """(n,) share of each residual's variance that a curve over the signal would explain."""
    out = np.zeros(residual.shape[1])
    for j in range(residual.shape[1]):
        order = np.argsort(signal[:, j])
        groups = np.array_split(residual[order, j], bins)
        total = float(np.var(residual[:, j])) * len(residual)
        between = sum(
            len(group) * float(np.mean(group) - np.mean(residual[:, j])) ** 2 for group in groups if len(group)
        )
        out[j] = between / total if total > 0.0 else 0.0
    return out
