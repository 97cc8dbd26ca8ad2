"""How long each hot path takes, and how many steps a second the simulator makes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco.batch
import numpy as np

from retorque.adapt import ADAPTERS, Adapter, make
from retorque.adapt.tam.adapter import TamAdapter
from retorque.bench.hybrid_speed import hybrid_tick
from retorque.bench.report import Report, Row, recorded
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.mjcf import to_mjmodel
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import fixed_base, gains
from retorque.work.array import Array
from retorque.work.checks import MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.jobs import Spread, run_jobs


@dataclass(frozen=True, kw_only=True)
class Settings(Spread):
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
        if name not in ADAPTERS:
            raise unknown("adapter", name, ADAPTERS)
    if settings.ticks < 100 or settings.batch < 1 or settings.repeats < 1 or settings.seed < 0:
        raise RetorqueError("--ticks must be at least 100, --batch and --repeats at least 1, --seed at least 0")
    settings.check_spread()
    check_between("--batch", settings.batch, 1, MOST_TRIALS)
    check_between("--ticks", settings.ticks, 100, 10_000_000)
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
        "times are of one call from Python, for one robot: mean is the median (p50); one thread; "
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


def _row(robot: Robot, method: str, microseconds: Array, paper: float | None = None) -> Row:
    """Median as the mean; the interval is of the median (order statistics, normal approximation)."""
    values = np.sort(microseconds)
    count = len(values)
    half = 0.98 * np.sqrt(count)
    low, high = (int(np.clip(np.floor(0.5 * count + side * half), 0, count - 1)) for side in (-1.0, 1.0))
    p50, p99, p999 = np.percentile(values, [50.0, 99.0, 99.9])
    return Row(
        robot=robot.name,
        method=method,
        metric="time",
        unit="us",
        mean=float(p50),
        std=float(np.std(values)),
        ci95=(float(values[low]), float(values[high])),
        trials=count,
        paper=paper,
        extra={"p50": float(p50), "p99": float(p99), "p99.9": float(p999)},
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
        "joint impedance torque": lambda: controller.torque(state, action),
        "rigid body inverse dynamics": lambda: body.inverse_dynamics(q, qd, qdd),
        "rigid body forward dynamics": lambda: body.forward_dynamics(q, qd, qdd),
        "rigid body mass matrix": lambda: body.mass_matrix(q),
        "rigid body regressor": lambda: body.regressor(q, qd, qdd),
        "hybrid feed-forward (rigid body + LSTM), warmed up": hybrid_tick(robot, settings.seed),
        "rigid body frame Jacobian": lambda: body.jacobian(robot.end_effector, q),
    }
    for method, call in calls.items():
        yield _row(robot, method, _times(call, settings.ticks))


def _adapter(robot: Robot, name: str, settings: Settings) -> Iterator[Row]:
    """`observe` + `correct`, and `learn`, while the adapter drives one robot along a motion."""
    target = _target(robot, 1, settings.seed)
    adapter: Adapter = make(name, robot, 1, seed=settings.seed, truth=lambda: target.parameters)
    profile = profile_of(robot)
    controller = JointImpedance(robot, *gains(robot, profile))
    reference = WindowedSines.sample(robot.home, profile.tracking_amplitude, 1, 16.0, settings.seed)
    state = target.read()
    warm = settings.ticks // 10
    correct, learn = [], []
    for tick in range(warm + settings.ticks):
        nominal = controller.torque(state, reference.at((tick * target.timestep) % reference.duration))
        begin = time.perf_counter_ns()
        adapter.observe(state)
        middle = time.perf_counter_ns()
        if adapter.learn_every and tick % adapter.learn_every == 0:
            adapter.learn()
            learn.append(1e-3 * (time.perf_counter_ns() - middle))
        after = time.perf_counter_ns()
        command = adapter.correct(state, nominal)
        correct.append(1e-3 * (time.perf_counter_ns() - after + middle - begin))
        state = target.step(command)
    yield _row(robot, f"{name} correct", np.array(correct[warm:]))
    if learn:
        yield _row(robot, f"{name} learn", np.array(learn[len(learn) // 10 :]))
    if name == "tam" and isinstance(adapter, TamAdapter):
        yield from _tam_parts(robot, adapter, state, nominal, settings)


def _tam_parts(robot: Robot, tam: TamAdapter, state: State, nominal: Array, settings: Settings) -> Iterator[Row]:
    """The adaptor's network alone, and a new latent: `learn` hides it, as it is made once in 200 ticks."""
    q, qd, torque = tam.recent.last(0, tam.preset.window).transpose(0, 2, 3, 1)
    ideal, probes = tam.context.ideal_response(state.position, state.velocity, nominal)

    def correct() -> object:
        return tam.adaptor.correction(q, qd, torque, nominal, ideal, probes)

    def encode() -> None:  # the warm-up alone is longer than the longest history
        tam.adaptor.set_latent(tam.encoder.push(tam.history.patch()))

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
    command = np.broadcast_to(RigidBody(robot).gravity(robot.home), target.position.shape)
    count = 100
    for _ in range(10):
        target.step(command)
    begin = time.perf_counter()
    for _ in range(count):
        target.step(command)
    return settings.batch * count / (time.perf_counter() - begin)


def _target(robot: Robot, trials: int, seed: int, noise: bool = False) -> Target:
    profile = profile_of(robot)
    sensors = SensorSettings.sample(profile, trials, seed) if noise else None
    return Target(robot, Parameters.sample(robot, profile, trials, seed), sensors=sensors, seed=seed, threads=1)
