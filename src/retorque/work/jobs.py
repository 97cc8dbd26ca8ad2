"""Jobs on all cores with one progress bar."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from retorque.work.processes import end_with_parent

_done: Any = None


def report(amount: int) -> None:
    """Tell the bar that so much more work is done; called inside a job."""
    if _done is not None:
        with _done.get_lock():
            _done.value += amount


def progress() -> Progress:
    """A bar of what is done, on the error stream; it goes when the work is over."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def run_jobs(
    function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], work: int, title: str, workers: int = 0
) -> list[Any]:
    """Results of `function(*job)` in order, each job in a process of its own kind; `work` is the sum of all reports."""
    workers = min(workers or os.cpu_count() or 1, len(jobs))
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # the processes are the parallelism
    context = multiprocessing.get_context("spawn")
    counter = context.Value("q", 0)
    with (
        progress() as bar,
        ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(counter, os.getpid())) as pool,
    ):
        task = bar.add_task(title, total=work)
        futures: list[Future[Any]] = []
        try:
            for job in jobs:  # starts the processes: an interrupt may come here already
                futures.append(pool.submit(function, *job))
            pending = set(futures)
            while pending:
                finished, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                bar.update(task, completed=counter.value)
                for future in finished:
                    future.result()
        except BaseException:
            for future in futures:
                future.cancel()
            for process in list(pool._processes.values()):
                process.terminate()
            raise
        return [future.result() for future in futures]


def _start(counter: Any, parent: int) -> None:
    global _done
    _done = counter
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process hears the interrupt and ends the others
