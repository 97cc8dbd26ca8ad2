"""From strokes on a board to commands at 50 Hz: approach, contact, retreat."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction, along, critical_damping
from retorque.robots.state import State
from retorque.tasks.comply.stroke_shapes import Strokes, resampled
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class StrokeSettings:
    """How strokes are followed."""

    size: float = 0.06
    """Of the shape [m]."""
    force: float = 5.0
    """Pressed along the normal in contact [N]."""
    normal_stiffness: float = 80.0
    """[N/m]"""
    pressing_stiffness: float | None = None
    """The same while a force is commanded, with the damping as before; default: no other. A board that is nearer than
    it was thought is not pressed harder for it where this is small [N/m]."""
    tangent_stiffness: float = 800.0
    """[N/m]"""
    turn_stiffness: float = 40.0
    """[N·m/rad]"""
    damping_ratio: float = 1.0
    """Times critical damping; a stiff robot on a hard board needs more than 1."""
    contact_speed: float = 0.02
    """Along the strokes [m/s]."""
    free_speed: float = 0.05
    """Elsewhere [m/s]."""
    clearance: float = 0.02
    """Distance from the board between strokes [m]."""
    press_time: float = 1.0
    """Over which the force comes and goes [s]."""
    pause: float = 0.5
    """Between pressing and moving [s]."""
    period: float = 0.02
    """Of the commands [s]."""


@dataclass(frozen=True, kw_only=True)
class DrawingPlane:
    """A plane as the planner knows it."""

    centre: Array
    """(3,) of the drawing [m]."""
    normal: Array
    """(3,) out of the board, towards the robot."""
    up: Array
    """(3,) direction that is up in the drawing."""

    @property
    def axes(self) -> Array:
        """(3, 3) rows: right and up in the drawing as the robot sees it, and the normal."""
        n = self.normal / np.linalg.norm(self.normal)
        up = self.up - n * (self.up @ n)
        up = up / np.linalg.norm(up)
        return np.stack([np.cross(up, n), up, n])


@dataclass(frozen=True, kw_only=True)
class StrokePlan:
    """A dense trajectory of one site: a row every period."""

    position: Array
    """(ticks, 3) [m]"""
    velocity: Array
    """(ticks, 3) [m/s]"""
    press: Array
    """(ticks,) share of the force that is commanded."""
    drawing: Array
    """(ticks,) whether the pen is on a stroke."""
    normal: Array
    """(3,) out of the board."""
    settings: StrokeSettings

    @property
    def duration(self) -> float:
        """[s]"""
        return len(self.position) * self.settings.period


def plan_strokes(
    strokes: Strokes, board: DrawingPlane, start: Array, settings: StrokeSettings | None = None
) -> StrokePlan:
    """Approach each stroke from in front of the board, press, follow it, let go, retreat.

    Args:
        strokes: on the unit square.
        board: where the planner thinks it is.
        start: (3,) where the site is now [m].
        settings: speeds, forces, sizes.
    """
    s = settings or StrokeSettings()
    if not strokes:
        raise RetorqueError("there are no strokes to follow; name a shape")
    right, up, normal = board.axes
    rows: list[tuple[Array, Array, Array]] = []  # positions, press, drawing

    def hold(point: Array, seconds: float, begin: float, end: float) -> None:
        count = max(1, round(seconds / s.period))
        rows.append((np.repeat(point[None], count, 0), np.linspace(begin, end, count), np.zeros(count)))

    def move(a: Array, b: Array, speed: float) -> None:
        count = max(2, round(np.linalg.norm(b - a) / speed / s.period))
        share = np.linspace(0.0, 1.0, count)[:, None]
        smooth = share * share * (3.0 - 2.0 * share)
        rows.append((a + smooth * (b - a), np.zeros(count), np.zeros(count)))

    at = np.asarray(start, dtype=float)
    for stroke in strokes:
        points = board.centre + s.size * (stroke[:, :1] * right + stroke[:, 1:] * up)
        above = points[0] + s.clearance * normal
        move(at, above, s.free_speed)
        move(above, points[0], s.contact_speed)
        hold(points[0], s.press_time, 0.0, 1.0)
        hold(points[0], s.pause, 1.0, 1.0)
        dense = resampled(points, s.contact_speed * s.period)
        rows.append((dense, np.ones(len(dense)), np.ones(len(dense))))
        hold(points[-1], s.pause, 1.0, 1.0)
        hold(points[-1], 0.5 * s.press_time, 1.0, 0.0)
        at = points[-1] + 2.0 * s.clearance * normal
        move(points[-1], at, s.free_speed)
    position = np.concatenate([row[0] for row in rows])
    velocity = np.gradient(position, s.period, axis=0)
    return StrokePlan(
        position=position,
        velocity=velocity,
        press=np.concatenate([row[1] for row in rows]),
        drawing=np.concatenate([row[2] for row in rows]) > 0.5,
        normal=normal,
        settings=s,
    )


class StrokePolicy:
    """Follows a plan with one site, the others stay; a policy that acts every control period.

    Args:
        plan: what to follow.
        site: which of the sites draws.
        position: (sites, 3) or (trials, sites, 3) where the sites begin [m].
        rotation: (..., sites, 3, 3) that they keep.
    """

    period = 0.0

    def __init__(self, plan: StrokePlan, site: int, position: Array, rotation: Array):
        self.plan, self.site = plan, site
        self._position, self._rotation = np.array(position), np.array(rotation)
        s = plan.settings
        self.stiffness = np.broadcast_to(
            along(plan.normal, s.normal_stiffness, s.tangent_stiffness, s.turn_stiffness), (*position.shape[:-1], 6, 6)
        ).copy()
        self._damping: Array | None = s.damping_ratio * critical_damping(self.stiffness)
        self._pressing = self.stiffness
        if s.pressing_stiffness is not None:
            soft = along(plan.normal, s.pressing_stiffness, s.tangent_stiffness, s.turn_stiffness)
            self._pressing = np.broadcast_to(soft, self.stiffness.shape).copy()
        elif s.damping_ratio == 1.0:
            self._damping = None
        self.tick = 0

    def reset(self, state: State) -> None:
        self._began = state.time

    def act(self, state: State) -> ComplianceAction:
        p = self.plan
        tick = self.tick = min(round((state.time - self._began) / p.settings.period), len(p.position) - 1)
        position = self._position.copy()
        position[..., self.site, :] = p.position[tick]
        velocity, wrench = np.zeros((*position.shape[:-1], 6)), np.zeros((*position.shape[:-1], 6))
        velocity[..., self.site, :3] = p.velocity[tick]
        wrench[..., self.site, :3] = -p.press[tick] * p.settings.force * p.normal
        stiffness = self._pressing if p.press[tick] > 0.0 else self.stiffness
        return ComplianceAction(position, self._rotation, stiffness, velocity, self._damping, wrench, state.time)
