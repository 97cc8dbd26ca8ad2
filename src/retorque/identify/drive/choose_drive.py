"""Whether a log shows drives and sigmoidal friction: asked for, or found by what held-back motion says."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from retorque.identify.drive.drive_program import DriveProgram
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.sdp import SemidefiniteProgram
from retorque.logs.motion import Motion, join
from retorque.physics.friction import Friction
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

SIGMOID = "sigmoid"
"""The friction model that brings the drive along."""
START = "full"
"""The friction terms that come nearest to it, for a first guess."""
WORTH = 0.8
"""Error on data held back over that of friction terms (geometric mean of the joints) below which it is believed."""
BLOCKS = 5
"""Parts that a log is cut into; the odd ones are held back."""


@dataclass(frozen=True, kw_only=True)
class DriveComparison:
    """Torque RMSE (n,) [N·m] on the odd parts of a log, learnt from the even ones."""

    terms: Array
    """With friction terms and drives taken as exact."""
    sigmoid: Array
    """With drives and sigmoidal friction."""

    @property
    def pays(self) -> bool:
        """Whether the drive is believed."""
        ratio = np.maximum(self.sigmoid, 1e-12) / np.maximum(self.terms, 1e-12)
        return bool(np.exp(np.mean(np.log(ratio))) < WORTH)

    def as_json(self) -> dict[str, list[float]]:
        return {"terms": self.terms.tolist(), SIGMOID: self.sigmoid.tolist()}


def compare_drive(motion: Motion, robot: Robot, friction: Friction) -> DriveComparison:
    """Learn both kinds of model from parts of a motion and test them on the others."""
    edges = np.linspace(0, len(motion), BLOCKS + 1).astype(int)
    parts = [motion[first:last] for first, last in itertools.pairwise(edges)]
    seen, held = join(parts[::2]), join(parts[1::2])
    terms = SemidefiniteProgram().fit(seen, robot, friction)
    sigmoid = DriveProgram().fit(seen, robot, terms)
    return DriveComparison(terms=terms.score(held).rmse, sigmoid=sigmoid.score(held).rmse)


def check_method(friction: str, method: str) -> None:
    """Refuse sigmoidal friction where the method cannot learn it."""
    if friction == SIGMOID and method != "sdp":
        raise RetorqueError(f"friction '{SIGMOID}' is not linear, which method '{method}' needs; use --method sdp")


def with_drive(asked: str, motion: Motion, estimate: Estimate) -> tuple[Estimate, DriveComparison | None]:
    """The estimate with its drives where they were asked for, or where `auto` finds that they pay.

    Args:
        asked: the name of the friction model that was asked for.
        motion: what the estimate was learnt from.
        estimate: with friction terms, by `sdp`.
    """
    if asked == SIGMOID:
        return DriveProgram().fit(motion, estimate.robot, estimate), None
    if asked != "auto" or estimate.method != "sdp":
        return estimate, None
    compared = compare_drive(motion, estimate.robot, estimate.friction)
    return (DriveProgram().fit(motion, estimate.robot, estimate) if compared.pays else estimate), compared
