"""The demo's animation: the arm as capsules, without and with the correction, over the ideal one's shadow."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from retorque.bench.demo.demo_plots import Recorded
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame, Robot
from retorque.robots.shapes import capsules
from retorque.work.array import Array

SIZE = (400, 400)
"""One panel [pixels]."""
FINER = 2
"""Drawn larger by this factor and reduced, for smooth edges."""
RATE = 14.0
"""Frames a second."""
SHOWN = 8.0
"""Length of the animation [s]."""
TRAIL = 2.5
"""Length of the hand's trail [s]."""
GROUND, SHADOW, FLOOR, NOTE = (246, 248, 251), (205, 212, 222), (226, 231, 238), (140, 150, 166)
BAD, GOOD = (224, 86, 43), (15, 127, 147)


class Drawing:
    """Where the capsules and the hand are, seen from the side and a little from above.

    Args:
        robot: what is drawn.
        positions: (frames, n) of the motion that must fit into the picture [rad].
    """

    def __init__(self, robot: Robot, positions: Array):
        self.robot = robot
        self._body = RigidBody(robot)
        self._shapes = capsules(robot)
        turn, tilt = np.deg2rad(-52.0), np.deg2rad(16.0)
        right = np.array([-np.sin(turn), np.cos(turn), 0.0])
        ahead = np.array([np.cos(turn) * np.cos(tilt), np.sin(turn) * np.cos(tilt), np.sin(tilt)])
        self._view = np.stack([right, np.cross(ahead, right), ahead])  # right, up, towards the viewer
        points = np.concatenate([self._flat(positions[::10]), np.zeros((1, 3))])
        low, high = points.min(axis=0), points.max(axis=0)
        self._middle = 0.5 * (low + high)
        self._scale = 0.8 * min(SIZE) * FINER / float(np.max((high - low)[:2]) + 0.1)

    def hand(self, q: Array) -> Array:
        """Pixels of the end-effector, (frames, 2)."""
        return self._pixels(self._body.frame_pose(self.robot.end_effector, q)[0] @ self._view.T)

    def floor(self, draw: ImageDraw.ImageDraw) -> None:
        """A disc under the base."""
        angle = np.linspace(0.0, 2.0 * np.pi, 60)
        ring = 0.3 * np.stack([np.cos(angle), np.sin(angle), np.zeros(60)], axis=-1)
        draw.polygon([tuple(p) for p in self._pixels(ring @ self._view.T)], fill=FLOOR)

    def arm(self, draw: ImageDraw.ImageDraw, q: Array, colour: tuple[int, int, int]) -> None:
        """The arm at one position (n,), farther capsules first."""
        ends = self._ends(q) @ self._view.T  # (shapes, 2, 3)
        for index in np.argsort(ends[:, :, 2].mean(axis=1)):
            radius = self._shapes[index].radius * self._scale
            edge = tuple(int(0.72 * c) for c in colour)
            for grow, fill in ((0.0, edge), (-1.6 * FINER, colour)):
                self._stadium(draw, self._pixels(ends[index]), max(radius + grow, 1.0), fill)

    def _ends(self, q: Array) -> Array:
        """Both ends of every capsule in the world, (..., shapes, 2, 3) [m]."""
        found = []
        for shape in self._shapes:
            at, turned = self._body.frame_pose(Frame(link=shape.link), q)
            both = np.stack([shape.start, shape.end])
            found.append(at[..., None, :] + np.einsum("...ij,kj->...ki", turned, both))
        return np.stack(found, axis=-3)

    def _flat(self, q: Array) -> Array:
        return (self._ends(q) @ self._view.T).reshape(-1, 3)

    def _pixels(self, points: Array) -> Array:
        shift = (points - self._middle)[..., :2] * self._scale * np.array([1.0, -1.0])
        return shift + 0.5 * FINER * np.array(SIZE) + np.array([0.0, 12.0 * FINER])

    @staticmethod
    def _stadium(draw: ImageDraw.ImageDraw, ends: Array, radius: float, fill: tuple[int, ...]) -> None:
        (x0, y0), (x1, y1) = ends
        along = np.array([x1 - x0, y1 - y0])
        length = float(np.linalg.norm(along))
        if length > 1e-6:
            side = np.array([-along[1], along[0]]) / length * radius
            corners = [ends[0] + side, ends[1] + side, ends[1] - side, ends[0] - side]
            draw.polygon([(float(x), float(y)) for x, y in corners], fill=fill)
        for x, y in ends:
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)


def animation(robot: Robot, ideal: Recorded, plain: Recorded, helped: Recorded, name: str, trial: int) -> bytes:
    """A looping GIF of one trial's middle: the uncorrected arm on the left, the corrected one on the right."""
    period = float(ideal.time[1] - ideal.time[0])  # [s]
    step = max(1, round(1.0 / RATE / period))
    trail = round(TRAIL / period)
    first, last = middle(ideal.time)
    paths = [np.asarray(motion.position[:last, trial], dtype=float) for motion in (ideal, plain, helped)]
    drawing = Drawing(robot, np.concatenate([path[first::step] for path in paths]))
    hands = [drawing.hand(path) for path in paths]
    frames = []
    for k in range(first, last, step):
        since = max(0, k - trail)
        frame = Image.new("RGB", (2 * SIZE[0], SIZE[1]), GROUND)
        for column, colour, title in ((1, BAD, "uncorrected"), (2, GOOD, f"with {name}")):
            panel = _panel(
                drawing, [paths[0][k], paths[column][k]], [hands[0][since:k], hands[column][since:k]], colour
            )
            draw = ImageDraw.Draw(panel)
            draw.text((16, 12), title, fill=colour, font=ImageFont.load_default(17))
            draw.text((16, 34), "grey: the ideal robot", fill=NOTE, font=ImageFont.load_default(12))
            frame.paste(panel, (SIZE[0] * (column - 1), 0))
        frames.append(frame)
    palette = frames[len(frames) // 2].quantize(64)
    flat = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    buffer = io.BytesIO()
    flat[0].save(
        buffer,
        "GIF",
        save_all=True,
        append_images=flat[1:],
        duration=round(1000 * step * period),
        loop=0,
        optimize=True,
    )
    return buffer.getvalue()


def middle(clock: Array) -> tuple[int, int]:
    """The first and the last row that the animation shows."""
    half = 0.5 * (clock[-1] - SHOWN)
    return int(np.searchsorted(clock, max(0.0, half))), int(np.searchsorted(clock, max(0.0, half) + SHOWN))


def _panel(drawing: Drawing, poses: list[Array], trails: list[Array], colour: tuple[int, int, int]) -> Image.Image:
    """The ideal arm and the actual one, and where their hands have been."""
    picture = Image.new("RGB", (SIZE[0] * FINER, SIZE[1] * FINER), GROUND)
    draw = ImageDraw.Draw(picture)
    drawing.floor(draw)
    drawing.arm(draw, poses[0], SHADOW)
    drawing.arm(draw, poses[1], colour)
    for points, width, ink in ((trails[0], 4, NOTE), (trails[1], 2, colour)):
        if len(points) > 1:
            draw.line([(float(x), float(y)) for x, y in points], fill=ink, width=width * FINER, joint="curve")
    return picture.resize(SIZE, Image.Resampling.LANCZOS)
