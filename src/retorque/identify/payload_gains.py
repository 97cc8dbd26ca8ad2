"""Drive gains between two logs: saved with their errors, guessed from a card, applied to a motion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.identify.verdict.doubts import scales
from retorque.identify.verdict.reading import Reading
from retorque.identify.verdict.sample import Sampled, thinned
from retorque.logs.motion import Motion, MotionSource
from retorque.physics.friction import preset
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole


@dataclass(frozen=True, kw_only=True)
class SavedGains:
    """Drive gains that a weighed payload gave."""

    gains: Array
    """(n,) [N·m/A], or true over recorded torque."""
    covariance: Array
    """(n, n) of their relative errors."""

    def save(self, path: Path, robot: Robot) -> Path:
        """Write as JSON."""
        content = {
            "robot": robot.name,
            "joints": list(robot.joint_names),
            "drive_gains": self.gains.tolist(),
            "relative_covariance": self.covariance.tolist(),
        }
        return write_whole(path, json.dumps(content, indent=2) + "\n")

    @classmethod
    def load(cls, path: Path, robot: Robot) -> SavedGains:
        """What `save` wrote, if it is for this robot."""
        try:
            content = json.loads(path.read_text())
            gains = np.array(content["drive_gains"], dtype=float)
            covariance = np.array(content["relative_covariance"], dtype=float)
            joints = content["joints"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RetorqueError(f"cannot read drive gains from '{path}': {error!r}; save them again") from error
        if joints != list(robot.joint_names):
            raise RetorqueError(f"'{path}' holds the gains of joints {', '.join(joints)}, not of '{robot.name}'")
        n = robot.n
        usable = gains.shape == (n,) and covariance.shape == (n, n) and bool(np.all(np.isfinite(covariance)))
        usable = usable and bool(np.all(np.isfinite(gains) & (gains != 0.0)))
        if not usable or not np.all(np.linalg.eigvalsh(covariance) > 0.0):
            raise RetorqueError(f"'{path}' needs {n} gains and a covariance of their errors; save them again")
        return cls(gains=gains, covariance=covariance)


@dataclass(frozen=True)
class Scaled:
    """A source of motion whose torques are multiplied joint by joint."""

    source: MotionSource
    factor: Array

    def chunks(self) -> Iterator[Motion]:
        """The source's pieces."""
        for piece in self.source.chunks():
            yield replace(piece, torque=piece.torque * self.factor)


def rough_gains(empty: MotionSource, robot: Robot) -> Array:
    """(n,) gains that give an empty log the card's torques, where nothing else is known of them."""
    motion = Sampled(empty).motion()
    reading = Reading(robot, preset("coulomb-viscous"), motion[thinned(motion)])
    found = scales(reading)
    joint = np.where(np.isfinite(found.joint) & (found.joint > 0.0), found.joint, found.common)
    if not np.all(np.isfinite(joint)):
        raise RetorqueError("the empty log shows no torque that the card foresees; give --drive-gains")
    return 1.0 / joint
