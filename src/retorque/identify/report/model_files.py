"""Writing an identified robot where Retorque and other tools can read it: a card, a URDF and an MJCF."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.torque_model import TorqueModel
from retorque.robots.card import card_text
from retorque.robots.formats.mjcf_writer import write_mjcf
from retorque.robots.formats.urdf_writer import write_urdf
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole


def export(estimate: TorqueModel, folder: str | Path, name: str = "") -> dict[str, Path]:
    """Write card, URDF and MJCF into a folder; each reloads to the same rigid-body torques.

    The card holds the friction as it was identified, with its errors; URDF and MJCF hold as much of it as they can say.

    Args:
        estimate: what was identified; every link must be able to exist.
        folder: where to.
        name: the new robot's name; default: the old one's with "_identified".
    """
    estimate = check_exportable(estimate)
    robot = estimate.identified()
    source = f"identified by {estimate.method} from {estimate.samples} samples; before: {robot.source}"
    robot = replace(robot, name=name or f"{robot.name}_identified", source=source)
    target = Path(folder)
    return {
        "card": write_whole(target / f"{robot.name}.toml", card_text(robot)),
        "urdf": write_whole(target / f"{robot.name}.urdf", write_urdf(robot)),
        "mjcf": write_whole(target / f"{robot.name}.xml", write_mjcf(robot)),
    }


def check_exportable(estimate: TorqueModel) -> Estimate:
    """The same estimate; refused where it has no links, or links that no engine would load."""
    if not isinstance(estimate, Estimate):
        raise no_links(estimate.method)
    if not np.all(estimate.margins > 0.0):
        bad = [link.name for link, m in zip(estimate.robot.moving_links, estimate.margins, strict=True) if m <= 0.0]
        raise RetorqueError(
            f"links {', '.join(bad)} of this {estimate.method} estimate cannot exist, so no engine would load them; "
            "identify with --method sdp"
        )
    negative = [
        name
        for name, value, bounded, error in zip(
            estimate.names, estimate.parameters, estimate.layout.nonnegative, estimate.standard_errors, strict=True
        )
        if bounded and value < -1e-6 - 0.01 * error
    ]
    if negative:
        raise RetorqueError(
            f"{', '.join(negative[:3])} of this {estimate.method} estimate is negative, which no card may be; identify "
            "with --method sdp"
        )
    return estimate


def no_links(method: str) -> RetorqueError:
    """Why a black box cannot be exported."""
    return RetorqueError(
        f"a '{method}' model has no masses or inertias to write into a card, URDF or MJCF; leave --export out, or "
        "identify with --method sdp"
    )
