"""How long each hot path takes, and how many steps a second the simulator makes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco.batch
import numpy as np

from retorque.adapt import ADAPTERS, adapter_class, make
from retorque.adapt.tam.adapter import TamAdapter
from retorque.bench.models.hybrid_speed import hybrid_tick
from retorque.bench.report import Report, Row, recorded
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.formats.mjcf import to_mjmodel
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.compiled.constants import has_core
from retorque.runtime.compiled.make import compiled
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import fixed_base, gains
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings, run_jobs


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench speed`."""

    robot: str = "panda"
    """Robot on board, or the path of an MJCF or URDF file."""
    adapters: tuple[str, ...] = ()
    """Adapters to time; none: every one on board."""
    ticks: int = 4000
    """Ticks of 1 ms that each adapter is timed over."""
    batch: int = 256
    """Simulations a batch for the steps a second."""
    repeats: int = 5
    """How often the steps a second are measured."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Time everything, one thing after the other, on one thread."""
    names = settings.adapters or tuple(ADAPTERS)
    for name in names:
        adapter_class(name)
    check_between("--ticks", settings.ticks, 100, 10_000_000)
    check_between("--batch", settings.batch, 1, MOST_TRIALS)
    check_between("--repeats", settings.repeats, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    if settings.cluster:  # times that machine
        return run_jobs(run, [(replace(settings, cluster=""),)], 1, "speed", 1, settings.cluster)[0]
    robot = fixed_base(Robot.load(settings.robot))
    load = os.getloadavg()[0]
    rows = list(_algebra(robot, settings))
    skipped = []
    for name in names:
        try:
            rows.extend(_adapter(robot, name, settings))
        except RetorqueError as error:  # no weights for this robot, say: the others are still worth timing
            skipped.append(f"{name}: {error}")
    rows.append(_rate(robot, "mujoco.batch, plain steps", settings, _plain_steps))
    rows.append(_rate(robot, "target with hidden parameters and noise", settings, _target_steps))
    machine = {"cores": os.cpu_count(), "load at the start": load}
    notes = (
        "times are of one call from Python, for one robot: mean is the median (p50); one thread; 'compiled' ticks are "
        "of the supervised C core alone, with the two calls into it; "
        f"load {load:.1f} on {os.cpu_count()} cores at the start: on a busy machine the tails are the other programs'"
    )
    return Report(
        bench="speed",
        settings={**recorded(settings), "machine": machine},
        rows=rows,
        notes="; not timed: ".join([notes, *skipped]),
    )


def _times(call: Callable[[], object], count: int) -> Array:
    """Duration of each call (count,) [us], after a warm-up."""
    for _ in range(min(100, count)):
        call()
    out = np.empty(count)
    for index in range(count):
        begin = time.perf_counter_ns()
        call()
        out[index] = 1e-3 * (time.perf_counter_ns() - begin)
    return out


def _row(
    robot: Robot, method: str, microseconds: Array, paper: float | None = None, metric: str = "time", **extra: float
) -> Row:
    """Median as the mean; the interval is of the median (order statistics, normal approximation)."""
    values = np.sort(microseconds)
    count = len(values)
    half = 0.98 * np.sqrt(count)
    low, high = (int(np.clip(np.floor(0.5 * count + side * half), 0, count - 1)) for side in (-1.0, 1.0))
    p50, p99, p999 = np.percentile(values, [50.0, 99.0, 99.9])
    return Row(
        robot=robot.name,
        method=method,
        metric=metric,
        unit="us",
        mean=float(p50),
        std=float(np.std(values)),
        ci95=(float(values[low]), float(values[high])),
        trials=count,
        paper=paper,
        extra={"p50": float(p50), "p99": float(p99), "p99.9": float(p999), **extra},
    )


def _algebra(robot: Robot, settings: Settings) -> Iterator[Row]:
    body = RigidBody(robot)
    rng = np.random.default_rng(settings.seed)
    q, qd, qdd = robot.home, rng.standard_normal(robot.n), rng.standard_normal(robot.n)
    target = _target(robot, 1, settings.seed)
    state = target.read()
    controller = JointImpedance(robot, *gains(robot, profile_of(robot)))
    action = WindowedSines.sample(robot.home, np.full(robot.n, 0.1), 1, 16.0, settings.seed).at(4.0)
    calls: dict[str, Callable[[], object]] = {
        "joint impedance torque": lambda: controller.command(state, action),
        "rigid body inverse dynamics": lambda: body.inverse_dynamics(q, qd, qdd),
        "rigid body forward dynamics": lambda: body.forward_dynamics(q, qd, qdd),
        "rigid body mass matrix": lambda: body.mass_matrix(q),
        "rigid body regressor": lambda: body.regressor(q, qd, qdd),
        "hybrid feed-forward (rigid body + LSTM), warmed up": hybrid_tick(robot, settings.seed),
        "rigid body frame Jacobian": lambda: body.jacobian(robot.end_effector, q),
    }
    for method, call in calls.items():
        yield _row(robot, method, _times(call, settings.ticks))


class Timed(Adapter):
    """An adapter whose every call is timed.

    Args:
        adapter: what is timed.
    """

    def __init__(self, adapter: Adapter):
        self.adapter, self.robot, self.trials = adapter, adapter.robot, adapter.trials
        self.timestep, self.seed = adapter.timestep, adapter.seed
        self.learn_every, self.health = adapter.learn_every, adapter.health
        self.tick: list[float] = []
        """Of `observe` and `correct` together, one a tick [us]."""
        self.learning: list[float] = []
        """Of each `learn` [us]."""

    def observe(self, state: State) -> None:
        begin = time.perf_counter_ns()
        self.adapter.observe(state)
        self.tick.append(1e-3 * (time.perf_counter_ns() - begin))

    def learn(self) -> Belief | None:
        begin = time.perf_counter_ns()
        belief = self.adapter.learn()
        self.learning.append(1e-3 * (time.perf_counter_ns() - begin))
        return belief

    def adopt(self, belief: Belief) -> None:
        self.adapter.adopt(belief)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        begin = time.perf_counter_ns()
        torque = self.adapter.correct(state, nominal_torque)
        self.tick[-1] += 1e-3 * (time.perf_counter_ns() - begin)
        return torque


def _adapter(robot: Robot, name: str, settings: Settings) -> Iterator[Row]:
    """A tick of the supervised adapter, what of it is the adapter's own, and `learn`, along a motion of one robot."""
    target = _target(robot, 1, settings.seed)
    bare = Timed(make(name, robot, 1, seed=settings.seed, truth=lambda: target.parameters))
    supervised = Timed(Supervisor(bare))
    profile = profile_of(robot)
    controller = JointImpedance(robot, *gains(robot, profile))
    reference = WindowedSines.sample(robot.home, profile.tracking_amplitude, 1, 16.0, settings.seed)
    loop = Loop(target, reference, controller, supervised)
    warm = settings.ticks // 10
    for _ in range(warm + settings.ticks):
        nominal = loop.tick().nominal.torque
    own, whole = np.array(bare.tick[warm:]), np.array(supervised.tick[warm:])
    yield _row(robot, name, own, metric="tick")
    yield _row(robot, f"{name} supervised", whole, metric="tick", of_bare=float(np.median(whole) / np.median(own)))
    if bare.learning:
        yield _row(robot, f"{name} learn", np.array(bare.learning[len(bare.learning) // 10 :]))
    if name == "tam" and isinstance(bare.adapter, TamAdapter):
        assert nominal is not None
        yield from _tam_parts(robot, bare.adapter, nominal, settings)
    if has_core(bare.adapter):
        yield from compiled_rows(robot, bare.adapter, settings.ticks, settings.seed)


def compiled_rows(robot: Robot, adapter: Adapter, ticks: int, seed: int) -> Iterator[Row]:
    """A supervised tick and `learn` in the compiled core, and what of it a call from Python adds."""
    name = next(key for key, (where, _) in ADAPTERS.items() if where.endswith(f":{type(adapter).__name__}"))
    core = compiled(Supervisor(adapter))
    if not isinstance(core, CompiledSupervisor):
        return
    profile = profile_of(robot)
    whole, inner = Timed(core), TimedCore(core)
    for timed, row in ((whole, f"{name} compiled, from Python"), (inner, f"{name} compiled")):
        core.reset()
        reference = WindowedSines.sample(robot.home, profile.tracking_amplitude, 1, 16.0, seed)
        loop = Loop(_target(robot, 1, seed), reference, JointImpedance(robot, *gains(robot, profile)), timed)
        for _ in range(ticks // 10 + ticks):
            loop.tick()
        yield _row(robot, row, np.array(timed.tick[ticks // 10 :]), metric="tick")
    if inner.learning:
        learning = np.array(inner.learning[len(inner.learning) // 10 :])
        yield _row(robot, f"{name} compiled learn", learning)
    if isinstance(adapter, TamAdapter):
        times = _times(core.repeat_column, min(ticks, 400))
        yield _row(robot, f"{name} compiled encoder update", times, paper=1000.0)


class TimedCore(Timed):
    """A compiled supervisor whose calls into the core alone are timed: what a robot's own program in C would spend.

    Args:
        adapter: what is timed.
    """

    def __init__(self, adapter: CompiledSupervisor):
        super().__init__(adapter)
        self.core = adapter

    def observe(self, state: State) -> None:
        self.core.fill(state)
        begin = time.perf_counter_ns()
        self.core.call_observe()
        self.tick.append(1e-3 * (time.perf_counter_ns() - begin))

    def correct(self, state: State, nominal_torque: Array) -> Array:
        self.core.fill_nominal(nominal_torque)
        begin = time.perf_counter_ns()
        self.core.call_correct()
        self.tick[-1] += 1e-3 * (time.perf_counter_ns() - begin)
        return self.core.sent


def _tam_parts(robot: Robot, tam: TamAdapter, nominal: Array, settings: Settings) -> Iterator[Row]:
    """The adaptor's network alone, and a new latent: `learn` hides it, as it is made once in 200 ticks."""
    q, qd, torque = tam.history.last(tam.preset.window)[:, ::-1].transpose(0, 2, 3, 1)
    ideal, probes = tam.context.ideal_response(q[..., 0], qd[..., 0], nominal)

    def correct() -> object:
        return tam.adaptor.correction(q, qd, torque, nominal, ideal, probes)

    def encode() -> None:  # the last column again; the warm-up alone is longer than the longest history
        tam.patches.columns -= 1
        tam.adaptor.set_latent(tam.encoder.push(tam.patches.next()))

    yield _row(robot, "tam adaptor", _times(correct, settings.ticks), paper=155.0)
    yield _row(robot, "tam encoder update", _times(encode, min(settings.ticks, 400)), paper=1000.0)


def _rate(robot: Robot, method: str, settings: Settings, measure: Callable[[Robot, Settings], float]) -> Row:
    values = np.array([measure(robot, settings) for _ in range(settings.repeats)])
    extra = {"best": float(values.max())}
    return Row.of(values, robot=robot.name, method=method, metric="rate", unit="steps/s", extra=extra)


def _plain_steps(robot: Robot, settings: Settings) -> float:
    """Steps a second of MuJoCo alone on one thread."""
    batch = mujoco.batch.Batch(to_mjmodel(robot, timestep=1e-3), settings.batch, 1)
    batch.bind("qpos")[:] = robot.home
    count = 100
    batch.step(nstep=count)
    begin = time.perf_counter()
    batch.step(nstep=count)
    return settings.batch * count / (time.perf_counter() - begin)


def _target_steps(robot: Robot, settings: Settings) -> float:
    """Steps a second of whole targets: limits, actuator model, MuJoCo and sensors."""
    target = _target(robot, settings.batch, settings.seed, noise=True)
    command = Command(torque=np.broadcast_to(RigidBody(robot).gravity(robot.home), target.position.shape))
    count = 100
    for _ in range(10):
        target.write(command)
        target.read()
    begin = time.perf_counter()
    for _ in range(count):
        target.write(command)
        target.read()
    return settings.batch * count / (time.perf_counter() - begin)


def _target(robot: Robot, trials: int, seed: int, noise: bool = False) -> Target:
    profile = profile_of(robot)
    sensors = SensorSettings.sample(profile, trials, seed) if noise else None
    return Target(robot, Parameters.sample(robot, profile, trials, seed), sensors=sensors, seed=seed, threads=1)
