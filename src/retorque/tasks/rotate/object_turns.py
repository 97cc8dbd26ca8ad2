"""What became of an object that was moved and turned: its way in every stroke, and whether it was lost."""

from __future__ import annotations

import numpy as np

from retorque.robots.rotation import from_quaternion
from retorque.tasks.rotate.stroke_schedule import StrokeSchedule
from retorque.work.array import Array


class ObjectTurns:
    """Collects an object's poses tick by tick.

    Args:
        schedule: what was asked.
        begin: when the strokes begin [s].
        trials: objects.
        dropped: distance from the asked place at which an object is lost [m].
    """

    def __init__(self, schedule: StrokeSchedule, begin: float, trials: int, dropped: float):
        self.schedule, self.begin, self._limit = schedule, begin, dropped
        self.time: list[float] = []
        self.poses: list[Array] = []
        """(trials, 7) each."""
        self.forces: list[Array] = []
        """(trials, sites) true contact forces [N]."""
        self.felt: list[Array] = []
        """(trials, sites) the same as felt [N]."""
        self.lost = np.zeros(trials, dtype=bool)
        """(trials,) dropped or diverged."""
        self._start: Array | None = None

    def add(self, time: float, poses: Array, forces: Array, diverged: Array) -> None:
        """Take in one tick."""
        self.time.append(time)
        self.poses.append(poses.copy())
        self.forces.append(forces.copy())
        if time >= self.begin and self._start is None:
            self._start = poses.copy()
        if self._start is not None:
            asked, _ = self.schedule.at(time - self.begin)
            away = np.linalg.norm(poses[:, :3] - self._start[:, :3] - asked[:3], axis=-1)
            self.lost |= (away > self._limit) | diverged

    def strokes(self) -> Array:
        """(strokes, trials) way from one end to the other of each stroke [m or rad]; 0 of an object that was lost."""
        number = np.array([self.schedule.which(t - self.begin)[0] if t >= self.begin else -1 for t in self.time])
        poses = np.array(self.poses)
        out = np.zeros((self.schedule.cycles * len(self.schedule.strokes), poses.shape[1]))
        for k in range(len(out)):
            axis = np.array(self.schedule.strokes[k % len(self.schedule.strokes)].axis)
            during = poses[number == k]
            for t in range(poses.shape[1]):
                if self.lost[t] or not len(during):
                    continue
                if np.any(axis[:3]):
                    way = during[:, t, :3] @ axis[:3]
                else:
                    way = angles_about(during[:, t, 3:], axis[3:])
                out[k, t] = np.ptp(way)
        return out


def angles_about(quaternions: Array, axis: Array, first: int = 0) -> Array:
    """Angles (ticks,) about an axis of orientations (ticks, 4), from one of them [rad]."""
    back = from_quaternion(quaternions[first]).T
    across = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    across /= np.linalg.norm(across)
    other = np.cross(axis, across)
    turned = np.array([from_quaternion(q) @ back @ across for q in quaternions])
    return np.asarray(np.unwrap(np.arctan2(turned @ other, turned @ across)))
