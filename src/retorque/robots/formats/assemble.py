"""A robot from the bodies of a file that has no card: joints cut, home and end-effector found."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from retorque.robots import validate
from retorque.robots.formats.tree import Body, all_joints, cut, default_end, default_home, frame_at
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Marker:
    """A named pose on a body of the file (a site, or a link that only marks a place)."""

    name: str
    body: int
    position: Array
    rotation: Array


def assemble(
    *,
    name: str,
    bodies: Sequence[Body],
    markers: Sequence[Marker],
    keep: Collection[str] | None,
    poses: Sequence[Mapping[str, float]] = (),
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    source: str,
    notes: Sequence[str] = (),
) -> Robot:
    """Make and check a robot.

    Args:
        name: The robot's name.
        bodies: Parents before children, depth first.
        markers: Poses to keep as frames; `end_effector` and `payload_mount` have their own meaning.
        keep: Joints to keep; None: all.
        poses: Candidates for the home pose, joint name to position [rad or m], best first.
        gravity: [m/s²].
        source: The file's name.
        notes: What the reader left out.
    """
    links, places = cut(bodies, keep, source)
    if not any(link.joint is not None and link.joint.kind != "free" for link in links):
        raise RetorqueError(f"{source}: there is no joint that moves; name at least one revolute or prismatic joint")
    frames = {m.name: frame_at(links, places[m.body].then(m.position, m.rotation)) for m in markers}
    end = frames.pop("end_effector", None) or default_end(links, frames, [frame_at(links, p) for p in places])
    payload = frames.pop("payload_mount", end)
    robot = Robot(
        name=name,
        links=links,
        home=np.zeros(0),
        end_effector=end,
        payload_mount=payload,
        title=name,
        source=source,
        gravity=gravity,
        frames=frames,
    )
    welded = [joint.name for joint in all_joints(bodies) if keep is not None and joint.name not in keep]
    said = [*notes, *([f"welded at their reference position: {', '.join(welded)}"] if welded else [])]
    for note in said:
        log.info("%s: %s", source, note)
    home = default_home(robot.lower, robot.upper)
    for pose in poses:
        values = np.array([pose.get(joint.name, np.nan) for joint in robot.joints])
        if np.all((values >= robot.lower) & (values <= robot.upper)):
            home = values
            break
    return validate.check(replace(robot, home=home, notes="; ".join(said)), source)
