"""Every fault of reports, clocks, controllers and adapters, in any combination at any tick."""

from __future__ import annotations

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.state import State

ROBOT = Robot.load("panda")
TRIALS, N, DT = 2, ROBOT.n, 1e-3
KINDS = (
    *("nan", "inf", "huge", "torque zero", "torque flipped", "torque scaled", "velocity zero", "velocity flipped"),
    *("frozen", "slip", "shape", "clock late", "clock back", "clock nan", "clock ahead"),
    *("nominal nan", "nominal shape", "nominal huge", "adapter raises", "adapter nan", "adapter huge"),
    *("observe raises", "learn raises", "learn stops"),
)


class Mess:
    """Draws which faults hold, on which trial and joint, and makes reports and nominal torques of it."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.until: dict[str, int] = {}
        self.where: dict[str, tuple[int | slice, int | slice]] = {}
        self.frozen = np.zeros((2, TRIALS, N))
        self.tick, self.back = 0, 0.0

    def draw(self) -> set[str]:
        """The faults of this tick."""
        rng = self.rng
        if rng.random() < 0.01:
            kind = str(rng.choice(KINDS))
            self.until[kind] = self.tick + int(rng.choice([1, 3, 20, 200]))
            joint = int(rng.integers(N)) if rng.random() < 0.7 else slice(None)
            self.where[kind] = (int(rng.integers(TRIALS)), joint)
            if kind == "clock back":
                self.back += rng.uniform(0.1, 5.0)
        return {kind for kind, end in self.until.items() if end > self.tick}

    def swings(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of a robot that follows slow sines whatever it is sent."""
        rate, t = 1.5 + 0.1 * np.arange(N), self.tick * DT
        still = np.zeros((TRIALS, 1))
        return ROBOT.home + 0.3 * np.sin(rate * t) + still, 0.3 * rate * np.cos(rate * t) + still

    def report(self, sent: np.ndarray, faults: set[str], true: tuple[np.ndarray, np.ndarray] | None = None) -> State:
        """What a robot says that is where `true` says, or swings."""
        rng, t = self.rng, self.tick * DT
        q, v = true if true is not None else self.swings()
        q = q + 1e-4 * rng.standard_normal((TRIALS, N))
        v = v + 1e-3 * rng.standard_normal((TRIALS, N))
        rows = {"q": q, "v": v, "t": sent.copy()}
        if "frozen" not in faults:
            self.frozen[:] = q, v
        for kind in sorted(faults):
            at = self.where[kind]
            if kind in ("nan", "inf", "huge"):
                rows[str(rng.choice(["q", "v", "t"]))][at] = {"nan": np.nan, "inf": np.inf, "huge": 1e300}[kind]
            elif kind.startswith("torque"):
                factor = {"torque zero": 0.0, "torque flipped": -1.0, "torque scaled": 1.7}[kind]
                rows["t"][at] = factor * np.clip(np.nan_to_num(rows["t"][at]), -1e300, 1e300)
            elif kind.startswith("velocity"):
                rows["v"][at] = {"velocity zero": 0.0, "velocity flipped": -1.0}[kind] * np.nan_to_num(rows["v"][at])
            elif kind == "frozen":
                rows["q"][at], rows["v"][at] = self.frozen[0][at], self.frozen[1][at]
            elif kind == "slip":
                rows["q"][at] += 0.15
        stamp = t - self.back
        if "clock late" in faults:
            stamp -= 0.003
        if "clock nan" in faults:
            stamp = np.nan
        if "clock ahead" in faults:
            stamp += 0.05
        if "shape" in faults:
            return State(stamp, np.zeros(3), np.zeros((5, 2)), np.zeros(()))
        return State(stamp, rows["q"], rows["v"], rows["t"])

    def nominal(self, faults: set[str], wanted: np.ndarray | None = None) -> np.ndarray:
        """What the controller wants, or makes of it."""
        if wanted is None:
            wanted = 0.2 * ROBOT.torque_limit * np.sin(self.tick * DT + np.arange(TRIALS)[:, None])
        torque = np.broadcast_to(wanted, (TRIALS, N)).copy()
        if "nominal nan" in faults:
            torque[self.where["nominal nan"]] = np.nan
        if "nominal huge" in faults:
            torque[self.where["nominal huge"]] = -1e12
        return np.zeros(4) if "nominal shape" in faults else torque
