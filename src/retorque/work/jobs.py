"""Jobs on all cores with one progress bar."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from retorque.work.checks import MOST_WORKERS, check_between
from retorque.work.cluster import joined_cluster, require_ray, result_of
from retorque.work.errors import RetorqueError
from retorque.work.files import versions, write_whole
from retorque.work.interrupts import interrupts_held
from retorque.work.processes import end_with_parent

_done: Any = None


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Settings of everything that is done in parts, on several cores or machines; results do not depend on them."""

    workers: int = 0
    """Processes; 0 takes all cores."""
    cluster: str = ""
    """Ray cluster that does the work instead: auto (runs already), local (new) or HOST:PORT."""

    def check_jobs(self) -> None:
        """Refuse, before the work, what cannot be spread."""
        check_between("--workers", self.workers, 0, MOST_WORKERS)
        require_ray(self.cluster)


@dataclass(frozen=True, kw_only=True)
class KeptJobSettings(JobSettings):
    """Settings of work that may be stopped and goes on another time."""

    keep: Path | None = None
    """Folder of finished parts, so that what was stopped goes on; delete it when code or weights have changed."""


def report(amount: int) -> None:
    """Tell the bar that so much more work is done; called inside a job."""
    if _done is not None:
        with _done.get_lock():
            _done.value += amount


def progress(shown: bool = True) -> Progress:
    """A bar of what is done, on the error stream; it goes when the work is over."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown)


def run_jobs(
    function: Callable[..., Any],
    jobs: Sequence[tuple[Any, ...]],
    work: int,
    title: str,
    workers: int = 0,
    cluster: str = "",
    keep: Path | None = None,
) -> list[Any]:
    """Results of `function(*job)` in the order of the jobs, wherever each was done.

    Args:
        function: at the top of a module, so that other processes find it; everything random follows from its arguments.
        jobs: its arguments.
        work: the sum of all that jobs `report`.
        title: of the bar.
        workers: processes; 0: one a core.
        cluster: address of a Ray cluster that does the jobs instead.
        keep: folder of finished jobs, which are not done again: jobs and results must then be such as JSON holds, data
            classes, slices, paths (jobs) and arrays.
    """
    if keep is not None:
        function = partial(_kept, function, keep, work // len(jobs))
    workers = min(workers or os.cpu_count() or 1, len(jobs))
    with progress() as bar:
        if cluster:
            return _on_cluster(function, jobs, bar, bar.add_task(title, total=len(jobs)), workers, cluster)
        return _in_processes(function, jobs, bar, bar.add_task(title, total=work), workers)


def _kept(function: Callable[..., Any], folder: Path, amount: int, *job: Any) -> Any:
    """The result of a job from its file, or done now and kept; a file of other versions or of another job is no result.

    Changes of the code between two versions cannot be seen: whoever makes one deletes the folder.
    """
    asked = {"function": f"{function.__module__}.{function.__name__}", "job": list(job), "versions": versions()}
    text = json.dumps(asked, sort_keys=True, default=_plain)
    asked = json.loads(text)
    file = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    try:
        found = json.loads(file.read_text(), object_hook=_array)
        if found["asked"] == asked:
            report(amount)
            return found["result"]
    except (OSError, ValueError, TypeError, KeyError):
        pass  # none yet, or damaged: done again
    result = json.dumps(function(*job), default=_plain)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, f'{{"asked": {text}, "result": {result}}}\n')
    return json.loads(result, object_hook=_array)  # as it comes back from the file


def _plain(value: Any) -> Any:
    """What JSON has no word for."""
    if is_dataclass(value) and not isinstance(value, type):
        return {type(value).__name__: {field.name: getattr(value, field.name) for field in fields(value)}}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be kept")


def _array(found: dict[str, Any]) -> Any:
    """Arrays as they were, anything else as it is."""
    return np.array(found["array"]) if found.keys() == {"array"} else found


def _in_processes(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], bar: Progress, task: TaskID, workers: int
) -> list[Any]:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # the processes are the parallelism
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    with (
        interrupts_held() as interrupted,
        ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(counter, os.getpid())) as pool,
    ):
        futures: list[Future[Any]] = []
        try:
            for job in jobs:
                futures.append(pool.submit(function, *job))
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                if interrupted.is_set():
                    raise KeyboardInterrupt
                bar.update(task, completed=counter.value)
                for future in finished:
                    future.result()
        except BaseException as error:
            for process in list((pool._processes or {}).values()):
                process.terminate()  # the jobs that wait fail too; one that was cancelled would break the pool's thread
            if isinstance(error, BrokenProcessPool):
                raise RetorqueError(
                    "a worker process was ended from outside, perhaps for want of memory; use fewer --workers"
                ) from error
            raise
        return [future.result() for future in futures]


def _on_cluster(
    function: Callable[..., Any],
    jobs: Sequence[tuple[Any, ...]],
    bar: Progress,
    task: TaskID,
    workers: int,
    cluster: str,
) -> list[Any]:
    """The same as tasks of a Ray cluster, which decides how many run at once; the bar counts whole jobs."""
    with joined_cluster(cluster, workers) as ray:
        remote = ray.remote(function)
        order = [remote.remote(*job) for job in jobs]
        pending, found = list(order), {}
        try:
            while pending:
                finished, pending = ray.wait(pending, timeout=0.2)
                for reference in finished:
                    found[reference] = result_of(ray, reference, "a job")
                bar.update(task, completed=len(found))
        except BaseException:
            for reference in pending:
                ray.cancel(reference, force=True)
            raise
        return [found[reference] for reference in order]


def _start(counter: Any, parent: int) -> None:
    global _done
    _done = counter
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process hears the interrupt and ends the others
