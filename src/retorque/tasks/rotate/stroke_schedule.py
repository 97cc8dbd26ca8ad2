"""Object motions to and fro: a smooth pose over time along one axis after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """From where the object is to one side, to the other, and back."""

    axis: tuple[float, float, float, float, float, float]
    """Of the twist: a direction, or an axis of rotation."""
    reach: float
    """To either side [m or rad]."""
    speed: float
    """On average [m/s or rad/s]."""

    @property
    def seconds(self) -> float:
        """A whole stroke [s]."""
        return 4.0 * self.reach / self.speed

    def at(self, time: float) -> tuple[float, float]:
        """Way and speed at a time since it began."""
        quarter = 0.25 * self.seconds
        ends = (0.0, self.reach, -self.reach, 0.0)
        begins = (0.0, quarter, 3.0 * quarter, 4.0 * quarter)
        for k in range(3):
            if time < begins[k + 1]:
                length = begins[k + 1] - begins[k]
                share = (time - begins[k]) / length
                way = ends[k + 1] - ends[k]
                smooth, slope = share * share * (3.0 - 2.0 * share), 6.0 * share * (1.0 - share) / length
                return ends[k] + way * smooth, way * slope
        return 0.0, 0.0


@dataclass(frozen=True)
class StrokeSchedule:
    """Strokes one after the other, over and over."""

    strokes: tuple[Stroke, ...]
    cycles: int
    pause: float = 0.5
    """Between strokes [s]."""

    @property
    def duration(self) -> float:
        """[s]"""
        return self.cycles * sum(stroke.seconds + self.pause for stroke in self.strokes)

    def which(self, time: float) -> tuple[int, float]:
        """The stroke's number among all, and the time since it began; -1 where all are done."""
        count = 0
        for _ in range(self.cycles):
            for stroke in self.strokes:
                if time < stroke.seconds + self.pause:
                    return count, time
                time -= stroke.seconds + self.pause
                count += 1
        return -1, 0.0

    def at(self, time: float) -> tuple[Array, Array]:
        """Pose vector (6,) [m, rad] and twist (6,) at a time."""
        number, since = self.which(time)
        if number < 0 or time < 0.0:
            return np.zeros(6), np.zeros(6)
        stroke = self.strokes[number % len(self.strokes)]
        way, speed = stroke.at(since)
        axis = np.array(stroke.axis)
        return way * axis, speed * axis
