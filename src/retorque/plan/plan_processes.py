"""Planner and modeller as processes beside the loop: shared memory between them, restarted when they die or stall."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from types import TracebackType

import numpy as np

from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.window import Samples
from retorque.plan.plan import Plan
from retorque.plan.planner import Planner
from retorque.plan.start_time import StartTime
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.processes import end_with_parent
from retorque.work.records import pack_record, unpack_record
from retorque.work.shared_memory import SharedRecord

LONGEST = 1200
"""Steps of the longest plan that fits."""
NAMES = 4096
"""Bytes for the names and shapes in a record."""
TRIES = 10
"""Reads before a record that is always being replaced is left for later."""
STALLED = 5.0
"""A worker that gives no sign of life for so long is ended and started again [s]."""
SEARCH_EVERY = 1.0
"""Least time between two searches [s]."""
POLL = 5e-4
"""Between looks for new samples [s]."""


@dataclass(frozen=True)
class Parts:
    """What the workers work with; made anew in each process."""

    planner: Planner
    modeller: Modeller
    start_time: StartTime


Maker = Callable[[], Parts]
"""At the top of a module, or a `functools.partial` of such a function: other processes must find it."""


@dataclass
class Counts:
    """What happened to the workers."""

    restarts: dict[str, int] = field(default_factory=lambda: {"planner": 0, "modeller": 0})
    plans: int = 0
    models: int = 0


class ProcessWorkers:
    """The workers of `MpcPolicy` as two processes; used as a context, at whose end they are gone.

    Processes are forked from a server that has everything imported, so that one is back in a moment.

    Args:
        make: makes planner and modeller.
        parts: the same, made here: sizes, and the first model.
        length: samples of the window.
    """

    def __init__(self, make: Maker, parts: Parts, length: int = 101):
        horizon = parts.planner.ilqr.settings.horizon
        if horizon > LONGEST:
            raise RetorqueError(
                f"a horizon of {horizon} steps does not fit; plans in shared memory have {LONGEST} at most"
            )
        self.make, self.parts, self.length = make, parts, length
        self._capacity = _capacities(parts, length)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, "retorque.plan.preload"])
        self.model: Model = parts.modeller.model
        self.plan: Plan | None = None
        self.counts = Counts()
        self._blocks: dict[str, SharedRecord] = {}
        self._processes: dict[str, BaseProcess] = {}
        self._starting: set[str] = set()
        self._versions = {"plan": 0, "model": 0}
        self._next: deque[Plan] = deque(maxlen=64)  # plans that begin later
        self._over = False

    def __enter__(self) -> ProcessWorkers:
        self._blocks = {key: SharedRecord(size) for key, size in self._capacity.items()}
        for role in WORK:
            self._start(role)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        for process in self._processes.values():
            process.kill()
            process.join()
        for block in self._blocks.values():
            block.close()

    def reset(self) -> None:
        """A run begins; the workers see it by the samples' numbers starting again."""
        self.plan = None
        self._next.clear()
        self._versions["plan"] = self._blocks["plan"].version if self._blocks else 0

    def ready(self, timeout: float = 120.0) -> bool:
        """Wait until both workers give signs of life."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            if all(self._blocks[f"{role}_alive"].version for role in WORK):
                return True
            time.sleep(0.01)
        return False

    def turn(self, samples: Samples, estimate: Array) -> None:
        """Post the newest samples, and take what the workers have."""
        recent = samples.last(self.length)
        head = np.array([recent.time, recent.number])
        publish(
            self._blocks["history"],
            head=head,
            states=recent.states,
            inputs=recent.inputs,
            valid=recent.valid,
            estimate=estimate,
        )
        self._take_model()
        self._take_plan()
        while self._next and self._next[0].start <= recent.time + 1e-9:
            self.plan = self._next.popleft()
        for role, process in list(self._processes.items()):
            if role not in self._starting and (not process.is_alive() or self._silent(role)):
                self._restart(role)

    def pid(self, role: str) -> int:
        """A worker's process number."""
        return self._processes[role].pid or 0

    def _take_plan(self) -> None:
        block = self._blocks["plan"]
        if block.version == self._versions["plan"]:
            return
        self._versions["plan"] = block.version
        found = read(block)
        if found is not None:
            plan = plan_of(found)
            if np.all(np.isfinite(plan.inputs)) and np.all(np.isfinite(plan.states)):
                self._next.append(plan)
                self.counts.plans += 1

    def _take_model(self) -> None:
        block = self._blocks["model"]
        if block.version == self._versions["model"]:
            return
        self._versions["model"] = block.version
        found = read(block)
        if found is not None and np.all(np.isfinite(found["p"])):
            self.model = model_of(found)
            self.counts.models += 1

    def _silent(self, role: str) -> bool:
        found = read(self._blocks[f"{role}_alive"])
        return found is not None and time.monotonic() - float(found["time"]) > STALLED

    def _start(self, role: str) -> None:
        paths = {key: block.path for key, block in self._blocks.items()}
        arguments = (role, self.make, paths)
        process = self._context.Process(target=work, args=arguments, daemon=True)
        process.start()
        self._processes[role] = process

    def _restart(self, role: str) -> None:
        """In a thread: the tick does not wait for a process to start."""
        self._starting.add(role)
        self.counts.restarts[role] += 1

        def again() -> None:
            self._processes[role].kill()
            self._processes[role].join()
            if not self._over:
                publish(
                    self._blocks[f"{role}_alive"], time=np.array(time.monotonic() + 10.0)
                )  # it may take a while to wake up
                self._start(role)
            self._starting.discard(role)

        threading.Thread(target=again, name=f"restart {role}", daemon=True).start()


def _capacities(parts: Parts, length: int) -> dict[str, int]:
    """Bytes that each record may need."""
    d, size = parts.planner.ilqr.dynamics, parts.modeller.free.size
    row = d.states + d.inputs + 1
    plan = (LONGEST + 1) * (row + d.inputs * d.states)
    numbers = {
        "history": (length + 1) * row,
        "plan": plan,
        "model": 2 * size + d.states,
        "planner_alive": 1,
        "modeller_alive": 1,
    }
    return {key: 8 * count + NAMES for key, count in numbers.items()}


def publish(record: SharedRecord, **arrays: Array) -> None:
    """Make some arrays the newest of a record."""
    record.publish(pack_record(arrays))


def read(record: SharedRecord) -> Mapping[str, Array] | None:
    """The newest arrays of a record; None where there are none."""
    for _ in range(TRIES):
        found = record.newest()
        if found is not None:
            return unpack_record(found[1])
        if record.version == 0:
            return None
    return None


def plan_of(found: Mapping[str, Array]) -> Plan:
    """A plan from shared arrays."""
    start, timestep, cost, iterations, version, parameters = found["head"].tolist()
    return Plan(
        start=start,
        timestep=timestep,
        states=np.array(found["states"]),
        inputs=np.array(found["inputs"]),
        gains=np.array(found["gains"]),
        cost=cost,
        iterations=int(iterations),
        version=int(version),
        parameters=int(parameters),
    )


def model_of(found: Mapping[str, Array]) -> Model:
    """A model from shared arrays."""
    when, confidence, exploring, changed, window, version = found["head"].tolist()
    return Model(
        p=found["p"],
        deviation=found["deviation"],
        time=when,
        confidence=confidence,
        exploring=bool(exploring),
        changed=bool(changed),
        window=int(window),
        version=int(version),
        offset=found["offset"],
    )


def samples_of(found: Mapping[str, Array]) -> Samples:
    """Samples from shared arrays."""
    return Samples(
        float(found["head"][0]),
        int(found["head"][1]),
        *(np.array(found[key]) for key in ("states", "inputs", "valid")),  # compiled code takes no read-only arrays
    )


def work(role: str, make: Maker, paths: dict[str, str]) -> None:
    """A worker process: samples in, plans or models out, until its parent goes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(os.getppid())
    blocks = {key: SharedRecord(path=path) for key, path in paths.items()}
    job = WORK[role](make, blocks)
    alive, seen = blocks[f"{role}_alive"], 0
    while True:
        publish(alive, time=np.array(time.monotonic()))
        version = blocks["history"].version
        if version == seen:
            time.sleep(POLL)
            continue
        seen = version
        found = read(blocks["history"])
        if found is not None:
            job.turn(samples_of(found), np.array(found["estimate"]))


class PlanningJob:
    """Plans from the newest samples; where the plan does not arrive, another thread searches meanwhile."""

    def __init__(self, make: Maker, blocks: dict[str, SharedRecord]):
        parts = make()
        self.planner, self.rule, self.free = parts.planner, parts.start_time, parts.modeller.free
        self.blocks = blocks
        last = read(blocks["plan"])
        self.plan = None if last is None else plan_of(last)  # a planner that was restarted goes on from there
        self.planner.version = 0 if self.plan is None else self.plan.version
        self.number = -1
        self._make = make
        self._searcher: Planner | None = None
        self._thread: threading.Thread | None = None
        self._found: Plan | None = None
        self._searched, self._search_takes = -math.inf, 0.5

    def turn(self, samples: Samples, estimate: Array) -> None:
        """One plan."""
        if samples.number < self.number:
            self.plan = None
        self.number = samples.number
        found = read(self.blocks["model"])
        p = self.free.guess if found is None else found["p"]
        version = 0 if found is None else int(found["head"][5])
        whole, now = self.free.whole(p), samples.time
        begin = time.monotonic()
        if self.plan is None or now > self.plan.end:
            plan = self.planner.replan(None, estimate, now, whole, parameters=version)  # something at once
        else:
            plan = self._after(self.plan, estimate, now, whole, version)
        if plan is None:
            return
        self.rule.solved(time.monotonic() - begin, plan.iterations)
        beside = self._found
        if beside is not None and beside.start <= plan.start + 0.5 * plan.timestep:
            self._found = None
            beside = self._after(beside, estimate, now, whole, version)  # where it leads from here, if it came late
            if beside is not None and self.planner.better(beside, plan):
                plan = beside
        self._publish(plan)
        idle = self._thread is None or not self._thread.is_alive()
        if idle and not self.planner.arrives(plan) and begin > self._searched + SEARCH_EVERY:
            self._thread = threading.Thread(target=self._search, args=(plan, estimate, now, whole), daemon=True)
            self._thread.start()

    def _after(self, last: Plan, estimate: Array, now: float, whole: Array, version: int) -> Plan | None:
        """The plan that goes on from one as soon as it can be ready."""
        dt = self.planner.ilqr.dynamics.timestep
        start = now + dt * math.ceil(self.rule.lead() / dt)
        x = self.planner.predict(self.plan, estimate, now, start, whole)
        return self.planner.replan(last, x, start, whole, parameters=version)

    def _search(self, plan: Plan, estimate: Array, now: float, whole: Array) -> None:
        """Look for a way out, which takes a while."""
        begin = time.monotonic()
        if self._searcher is None:  # two threads cannot share a solver's memory
            self._searcher = self._make().planner
        start = now + self._search_takes
        x = self._searcher.predict(plan, estimate, now, start, whole)
        self._found = self._searcher.search(x, start, whole)
        self._searched = time.monotonic()
        self._search_takes = 1.2 * (self._searched - begin)

    def _publish(self, plan: Plan) -> None:
        self.plan = plan
        steps = min(plan.horizon, LONGEST)
        head = [plan.start, plan.timestep, plan.cost, plan.iterations, plan.version, plan.parameters]
        publish(
            self.blocks["plan"],
            head=np.array(head, dtype=float),
            states=plan.states[: steps + 1],
            inputs=plan.inputs[:steps],
            gains=plan.gains[:steps],
        )


class ModellingJob:
    """Keeps the parameters up to date."""

    def __init__(self, make: Maker, blocks: dict[str, SharedRecord]):
        self.modeller, self.blocks = make().modeller, blocks
        self.number = -1

    def turn(self, samples: Samples, estimate: Array) -> None:
        """One model."""
        if samples.number < self.number:
            self.modeller.reset()
        self.number = samples.number
        if len(samples.states) < 2:
            return
        model = self.modeller.update(samples)
        head = [model.time, model.confidence, model.exploring, model.changed, model.window, model.version]
        known = {"p": model.p, "deviation": model.deviation, "offset": np.asarray(model.offset)}
        publish(self.blocks["model"], head=np.array(head, dtype=float), **known)


WORK: dict[str, Callable[[Maker, dict[str, SharedRecord]], PlanningJob | ModellingJob]] = {
    "planner": PlanningJob,
    "modeller": ModellingJob,
}
