"""How well a motion excited a robot, joint by joint, and what to record next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.torque_model import TorqueModel
from retorque.logs.motion import Motion
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What each joint did in a log, (n,) each."""

    span: Array
    """Range of positions [rad]."""
    span_part: Array
    """The same as a part of the range between the limits; NaN where there are none."""
    speed: Array
    """Largest speed [rad/s]."""
    acceleration: Array
    """Largest acceleration [rad/s²]."""
    reversals: Array
    """Changes of direction."""
    still: Array
    """Part of the time slower than 0.01 rad/s."""


def coverage(motion: Motion, robot: Robot) -> Coverage:
    """Go through a motion."""
    span = np.ptp(motion.q, axis=0)
    room = np.where(np.isfinite(robot.upper - robot.lower), robot.upper - robot.lower, np.nan)
    moving = np.abs(motion.qd) > 0.01
    reversals = []
    for j in range(robot.n):
        signs = np.sign(motion.qd[moving[:, j], j])
        reversals.append(int(np.sum(np.diff(signs) != 0)))
    return Coverage(
        span=span,
        span_part=span / room,
        speed=np.abs(motion.qd).max(axis=0),
        acceleration=np.abs(motion.qdd).max(axis=0),
        reversals=np.array(reversals),
        still=1.0 - moving.mean(axis=0),
    )


def sharpness(estimate: Estimate) -> Array:
    """(rank,) how many times better each base parameter is known than from the card alone."""
    prior = np.sqrt(np.sum(np.square(estimate.base.combination * estimate.prior_deviation), axis=1))
    return prior / np.maximum(estimate.base_deviation, 1e-300)


def advice(
    model: TorqueModel, seen: Coverage, train: Sequence[float], validation: Sequence[float] | None = None
) -> list[str]:
    """Sentences: what to record next.

    Args:
        model: what was identified.
        seen: what each joint did in the training log.
        train: (n,) relative torque error on the training log.
        validation: (n,) the same on the validation log, where there is one.
    """
    out = [*_missed(model.robot, train, validation), *_unused(model.robot, seen)]
    if isinstance(model, Estimate):
        out = [*_weak(model), *out, *_unmodelled(model)]
    next_step = "a longer or faster one" if validation is not None else "a second one as validation (--validate)"
    return out or [f"nothing stands out in this motion: {next_step} would show how far the model carries."]


def _missed(robot: Robot, train: Sequence[float], validation: Sequence[float] | None) -> list[str]:
    """Joints whose torque the model does not explain, or only on the motion it learnt from."""
    out = []
    untold = [name for name, error in zip(robot.joint_names, train, strict=True) if error > 0.5]
    if untold:
        out.append(
            f"more than half of the torque of {', '.join(untold)} is not explained even in training: if it is mostly "
            "friction, use a method and a --friction that model it, or record more motion against gravity."
        )
    pairs = zip(robot.joint_names, train, train if validation is None else validation, strict=True)
    foreign = [name for name, here, there in pairs if there > 0.2 and there > 3.0 * here]
    if foreign:
        out.append(
            f"{', '.join(foreign)}: the validation error is more than three times the training error, so the training "
            "motion says too little about such motion: record some of that kind too."
        )
    return out


def _weak(estimate: Estimate) -> list[str]:
    """What the log told no better than the card."""
    known = sharpness(estimate)
    inertial = np.array([name[0] in "mI" for name in estimate.base.names])
    weak = int(np.sum(inertial & (known < 1.0)))
    if not weak:
        return []
    return [
        f"{weak} of {int(np.sum(inertial))} inertial combinations are known no better than from the card: "
        f"run 'retorque excite --robot {estimate.robot.name}' and record the motion it designs, faster or longer than "
        "this one."
    ]


def _unused(robot: Robot, seen: Coverage) -> list[str]:
    """What the joints could have done and did not."""
    out = []
    for j, name in enumerate(robot.joint_names):
        if seen.reversals[j] < 4:
            out.append(
                f"{name} changed direction {seen.reversals[j]} times: record motion that reverses it more often."
            )
        if np.isfinite(seen.span_part[j]) and seen.span_part[j] < 0.1:
            out.append(f"{name} used {100 * seen.span_part[j]:.0f} % of its range: let it move further.")
        if np.isfinite(robot.velocity_limit[j]) and seen.speed[j] < 0.1 * robot.velocity_limit[j]:
            out.append(
                f"{name} stayed below 10 % of its speed limit: faster motion would show its inertia and viscosity."
            )
    return out


def _unmodelled(estimate: Estimate) -> list[str]:
    """What the residuals and the links say about the model itself."""
    out = []
    slow = [name for name, tau in zip(estimate.robot.joint_names, estimate.correlation, strict=True) if tau > 60.0]
    if slow:
        out.append(
            f"the residuals of {', '.join(slow)} change slowly, so something is not modelled (temperature, a spring, "
            "load-dependent friction): record after warming up, or try --friction auto."
        )
    if not estimate.physical:
        out.append("this estimate cannot exist as a body: use --method sdp before simulating with it.")
    return out
