"""The motion that tells most about a robot: Fourier trajectories optimised for what their log will reveal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize

from retorque.identify.excite.cell import Cell
from retorque.identify.excite.collision import Clearance
from retorque.identify.excite.fourier import Fourier, within
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import card_prior
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

EXTRA_STARTS = 4
"""Further random shapes to try while none has come out within all limits."""
BOTH = 0.5
"""Weight of the condition number's logarithm beside the mean information of a parameter."""
STEP, NEAR_STEP = 1e-6, 1e-5
"""Of the differences that gradients are made of: states and coefficients, and poses near something [rad]."""
ASIDE = 0.02
"""How far aside a descent that was stopped is begun anew, in standard deviations of the first coefficients."""
RATE = 100.0
"""Independent samples a second that a log is assumed to give [Hz]."""


@dataclass(frozen=True, kw_only=True)
class Excitation:
    """What a trajectory must respect and be good at."""

    time: float = 20.0
    """Length of the exciting motion [s]."""
    period: float = 10.0
    """Length of one period, about: a whole number of them fills the time [s]."""
    harmonics: int = 5
    """Sines and cosines of each joint."""
    criterion: Literal["logdet", "condition", "both"] = "logdet"
    """logdet: most information over all; condition: least difference between the best and worst known parameter;
    both: a weighted sum of the two."""
    speed: float = 0.5
    """Part of each joint's velocity limit to use."""
    acceleration: float = 4.0
    """Acceleration limit as a multiple of the velocity in use, per second: 4 reaches full speed in a quarter second."""
    torque: float = 0.7
    """Part of each joint's torque limit to use."""
    margin: float = 0.05
    """Distance to stay inside the joint limits [rad]."""
    cell: Cell | None = None
    """Floor, walls, things in the way, tool and further limits; default: free space."""
    clearance: float = 0.02
    """Distance to aim for between links that are not neighbours, and to the cell; half of it is kept, or half of the
    distance at home where that is less [m]."""
    seed: int = 0
    """Seed of the random first shapes."""
    starts: int = 3
    """Random first shapes to optimise; the best result is kept."""
    iterations: int = 25
    """Steps of the optimiser for each."""

    def __post_init__(self) -> None:
        if not (self.time > 0.0 and self.period > 0.0) or self.harmonics < 2:
            raise RetorqueError("an exciting motion needs a time above zero and at least two harmonics")
        if not (0.0 < self.speed <= 1.0 and 0.0 < self.torque <= 1.0 and self.acceleration > 0.0):
            raise RetorqueError("speed and torque are parts of the limits, above 0 and at most 1")
        if self.starts < 1 or self.iterations < 0:
            raise RetorqueError("the optimiser needs at least one start")


@dataclass(frozen=True, kw_only=True)
class Excited:
    """An optimised trajectory, and how good it is."""

    trajectory: Fourier
    repeats: int
    """Periods that fill the time asked for."""
    condition: float
    """Condition number of the base regressor, each column at unit length."""
    condition_before: float
    """The same of the first random shape."""
    log_det: float
    """Logarithm of the determinant of 1 + information, in units of the card's uncertainty and 1 % torque noise."""
    log_det_before: float
    clearance: float
    """Smallest distance between links that are not neighbours; infinite where none came near [m]."""
    torque_part: float
    """Largest torque as a part of its limit."""
    acceleration: Array
    """(n,) largest acceleration of each joint [rad/s²]."""


class Measured(NamedTuple):
    """How good a trajectory is, and how near it comes to what it must keep away from."""

    log_det: float
    condition: float
    torque: float
    """Largest, as a part of its limit."""
    distance: float
    """Smallest [m]."""
    crowding: float
    """Mean over poses of what is missing of the clearance [m]."""


class _Problem:
    """The cost of a trajectory's coefficients."""

    def __init__(self, robot: Robot, settings: Excitation):
        cell = settings.cell or Cell()
        robot = cell.limited(robot)
        self.robot, self.settings = robot, settings
        self.repeats = max(1, round(settings.time / settings.period))
        self.period = settings.time / self.repeats
        self.layout = Layout(robot, preset("coulomb-viscous"))
        self.body = RigidBody(robot)
        base = base_parameters(self.layout)
        self.columns = base.independent
        prior = card_prior(self.layout, torque=10.0)
        self.unit = np.sqrt(np.sum(np.square(base.combination * prior.deviation), axis=1))
        bounded = np.isfinite(robot.lower) & np.isfinite(robot.upper)
        self.lower = np.where(bounded, robot.lower + settings.margin, -np.pi)
        self.upper = np.where(bounded, robot.upper - settings.margin, np.pi)
        # a full turn is enough: more only means that a cable is wound up
        middle = np.clip(np.asarray(robot.home, dtype=float), self.lower, self.upper)
        self.lower, self.upper = np.maximum(self.lower, middle - np.pi), np.minimum(self.upper, middle + np.pi)
        if np.any(self.upper <= self.lower):
            raise RetorqueError(f"the joint limits of '{robot.name}' leave no room for motion")
        self.speed = settings.speed * np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, 2.0)
        self.torque_limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, np.inf)
        self.noise = np.where(np.isfinite(robot.torque_limit), 0.01 * robot.torque_limit, 1.0)
        self.acceleration = np.minimum(settings.acceleration * self.speed, cell.accelerations(robot))
        self.clear = Clearance(robot, settings.clearance, cell)
        # some links are always nearer than that, by construction: then home is the measure
        at_home = self.clear.smallest(np.asarray(robot.home, dtype=float)[None])
        self.clearance = min(settings.clearance, max(at_home, 0.0))
        self.samples, self.fine = 16 * settings.harmonics, 128 * settings.harmonics
        # where something is in the way, joints may also move less than their limits allow
        self.sizes = robot.n if cell.walls or cell.things or cell.tool else 0
        self.size = robot.n * (2 * settings.harmonics + 1) + self.sizes

    def trajectory(self, vector: Array) -> Fourier:
        """The coefficients' trajectory: any vector is within joint, velocity and acceleration limits."""
        n, count = self.robot.n, self.settings.harmonics
        a, b, place, size = np.split(vector, [n * count, 2 * n * count, n * (2 * count + 1)])
        return within(
            a.reshape(n, count),
            b.reshape(n, count),
            0.5 + 0.5 * np.tanh(place),
            self.period,
            self.lower,
            self.upper,
            self.speed,
            self.acceleration,
            0.55 + 0.45 * np.tanh(size + 0.5) if self.sizes else 1.0,
        )

    def measure(self, trajectory: Fourier, samples: int) -> Measured:
        """What a log of one period, repeated, would tell, and how near to its limits the motion comes."""
        q, qd, qdd = trajectory.at(np.arange(samples) * self.period / samples)
        motion = Motion.of(q, qd, qdd, np.zeros_like(q))
        matrix = self.layout.matrix(self.body, motion)
        part = np.max(np.abs(matrix @ self.layout.card) / self.torque_limit)
        log_det, condition = self.told(matrix)
        # the way from home to the start must be free as well
        home = np.asarray(self.robot.home, dtype=float)
        approach = home + np.linspace(0.0, 1.0, 12)[:, None] * (q[0] - home)
        distance = self.clear.distances(np.concatenate([q, approach]))
        crowding = float(np.mean(np.maximum(self.clearance - distance, 0.0)))
        return Measured(log_det, condition, float(part), float(np.min(distance)), crowding)

    def told(self, matrix: Array) -> tuple[float, float]:
        """Log-determinant of the information and condition number of a regressor (samples, n, size)."""
        scaled = (matrix[..., self.columns] * self.unit / self.noise[:, None]).reshape(-1, len(self.columns))
        information = scaled.T @ scaled * (RATE * self.settings.time / len(matrix))
        log_det = float(np.linalg.slogdet(np.eye(len(information)) + information)[1])
        size = np.sqrt(np.maximum(np.diagonal(information), 1e-300))
        spread = np.linalg.eigvalsh(information / size / size[:, None])
        return log_det, float(np.sqrt(spread[-1] / max(spread[0], 1e-15 * spread[-1])))

    def quality(self, measured: Measured) -> float:
        """The criterion alone, smaller is better."""
        evenness, known = float(np.log(measured.condition)), -measured.log_det / len(self.columns)
        return {"logdet": known, "condition": evenness, "both": known + BOTH * evenness}[self.settings.criterion]

    def cost(self, vector: Array) -> float:
        """The criterion, with penalties for torque and nearness."""
        measured = self.measure(self.trajectory(vector), self.samples)
        over = max(0.0, measured.torque / self.settings.torque - 1.0)
        near = max(0.0, self.clearance - measured.distance) / 0.01
        if self.sizes:  # in a cell most first shapes are in the way for long: the mean leads them out
            near += 5.0 * measured.crowding / 0.01
        return self.quality(measured) + 20.0 * over + 2.0 * near

    def slope(self, vector: Array) -> tuple[float, Array]:
        """The cost and its gradient.

        What a log tells depends on each sample's state alone, and that on the coefficients cheaply: differences of the
        regressor along 3n axes of the state replace those along every coefficient.
        """
        clock = np.arange(self.samples) * self.period / self.samples
        trajectory = self.trajectory(vector)
        state = np.stack(trajectory.at(clock))  # (3, samples, n)
        matrix = self._matrix(state)
        pull = self._pull(matrix)
        part = matrix @ self.layout.card / self.torque_limit
        worst = np.unravel_index(np.argmax(np.abs(part)), part.shape)
        over = max(0.0, float(np.abs(part[worst])) / self.settings.torque - 1.0)
        if over:
            push = 20.0 / self.settings.torque * np.sign(part[worst]) / self.torque_limit[worst[1]]
            pull[worst] += push * self.layout.card
        slope = self._nearness(state[0])
        for kind in range(3):
            for j in range(self.robot.n):
                moved = state.copy()
                moved[kind, :, j] += STEP
                slope[kind, :, j] += np.sum(pull * (self._matrix(moved) - matrix), axis=(1, 2)) / STEP
        gradient = np.empty(len(vector))
        for index in range(len(vector)):
            aside = vector.copy()
            aside[index] += STEP
            gradient[index] = np.sum(slope * (np.stack(self.trajectory(aside).at(clock)) - state)) / STEP
        return self.cost(vector), gradient

    def _matrix(self, state: Array) -> Array:
        """(samples, n, size) the regressor of states (3, samples, n)."""
        q, qd, qdd = state
        return self.layout.matrix(self.body, Motion.of(q, qd, qdd, np.zeros_like(q)))

    def _pull(self, matrix: Array) -> Array:
        """(samples, n, size) how the criterion changes with each entry of the regressor."""
        unit = self.unit / self.noise[:, None]
        tall = (matrix[..., self.columns] * unit).reshape(-1, len(self.columns))
        repeat = RATE * self.settings.time / len(matrix)
        known = -2.0 * repeat * tall @ np.linalg.inv(np.eye(tall.shape[1]) + repeat * tall.T @ tall) / tall.shape[1]
        size = np.maximum(np.linalg.norm(tall, axis=0), 1e-150)
        even = tall / size
        spread, axes = np.linalg.eigh(even.T @ even)
        first, last = axes[:, -1], axes[:, 0]
        rise = even @ (np.outer(first, first) / spread[-1] - np.outer(last, last) / max(spread[0], 1e-15 * spread[-1]))
        evenness = (rise - even * np.sum(even * rise, axis=0)) / size
        own = {"logdet": known, "condition": evenness, "both": known + BOTH * evenness}[self.settings.criterion]
        out = np.zeros_like(matrix)
        out[..., self.columns] = own.reshape(len(matrix), -1, len(self.columns)) * unit
        return out

    def _nearness(self, q: Array) -> Array:
        """(3, samples, n) how the price of nearness changes with each sample's state."""
        out = np.zeros((3, *q.shape))
        home, way = np.asarray(self.robot.home, dtype=float), np.linspace(0.0, 1.0, 12)
        poses = np.concatenate([q, home + way[:, None] * (q[0] - home)])
        distance = self.clear.distances(poses)
        short = distance < self.clearance
        if not np.any(short):
            return out
        price = np.zeros(len(poses))
        price[np.argmin(distance)] = -2.0 / 0.01
        if self.sizes:
            price -= 2.0 * 5.0 / 0.01 * short / len(poses)
        for j in range(self.robot.n):
            moved = poses[short].copy()
            moved[:, j] += NEAR_STEP
            change = np.zeros(len(poses))
            change[short] = (self.clear.distances(moved) - distance[short]) / NEAR_STEP
            each = price * np.where(np.isfinite(change), change, 0.0)
            out[0, :, j] = each[: len(q)]
            out[0, 0, j] += float(way @ each[len(q) :])
        return out

    def feasible(self, measured: Measured) -> bool:
        """Whether torque and clearance are within their limits."""
        return measured.torque <= self.settings.torque * 1.02 and measured.distance >= 0.5 * self.clearance

    def peak(self, trajectory: Fourier) -> Array:
        """(n,) largest accelerations [rad/s²]."""
        return np.abs(trajectory.at(np.arange(self.fine) * self.period / self.fine)[2]).max(axis=0)

    def fitting(self, trajectory: Fourier) -> Fourier:
        """The trajectory, or where it breaks a limit the largest one on its way to standing still at home."""
        if self.feasible(self.measure(trajectory, self.fine)):
            return trajectory
        home = np.clip(np.asarray(self.robot.home, dtype=float), self.lower, self.upper)
        small, large = 0.0, 1.0
        for _ in range(6):
            size = 0.5 * (small + large)
            fits = self.feasible(self.measure(trajectory.towards(home, size), self.fine))
            small, large = (size, large) if fits else (small, size)
        return trajectory.towards(home, max(small, 0.01))


def _descend(problem: _Problem, start: Array, rng: np.random.Generator) -> Array:
    """The coefficients at the end of the descent, which is begun anew a little aside where a kink has stopped it.

    A motion's size follows from its largest velocity and acceleration: where another moment becomes the largest, the
    slope jumps, and L-BFGS finds no way on.
    """
    left, best, cost, aside = problem.settings.iterations, start, np.inf, 0.0
    while left > 0:
        begun = best + aside * rng.standard_normal(len(best))
        result = minimize(problem.slope, begun, jac=True, method="L-BFGS-B", options={"maxiter": left, "maxls": 8})
        if result.fun < cost:
            best, cost = result.x, float(result.fun)
        left, aside = left - max(1, int(result.nit)), ASIDE
    return best


def excite(robot: Robot, settings: Excitation) -> Excited:
    """Optimise a trajectory for a robot.

    Random shapes are improved by descent on the criterion with penalties for torque and nearness of links; joint,
    velocity and acceleration limits hold by construction.
    """
    problem = _Problem(robot, settings)
    rng = np.random.default_rng(settings.seed)
    found: list[tuple[float, Fourier, Measured]] = []
    before: Measured | None = None
    for attempt in range(settings.starts + EXTRA_STARTS):
        if attempt >= settings.starts and found:
            break
        drawn = [rng.standard_normal(problem.size) for _ in range(8)]
        start = min(drawn, key=problem.cost)
        if before is None:
            before = problem.measure(problem.fitting(problem.trajectory(drawn[0])), problem.fine)
        trajectory = problem.fitting(problem.trajectory(_descend(problem, start, rng)))
        measured = problem.measure(trajectory, problem.fine)
        if problem.feasible(measured):
            found.append((problem.quality(measured), trajectory, measured))
    if not found:
        raise RetorqueError(
            f"no motion of '{robot.name}' kept its torque limits and stayed clear of itself and its cell; "
            "try more --starts, another --seed, or a lower --speed"
        )
    _, trajectory, measured = min(found, key=lambda item: item[0])
    assert before is not None
    return Excited(
        trajectory=trajectory,
        repeats=problem.repeats,
        log_det=measured.log_det,
        log_det_before=before.log_det,
        condition=measured.condition,
        condition_before=before.condition,
        torque_part=measured.torque,
        clearance=measured.distance,
        acceleration=problem.peak(trajectory),
    )
