"""How well windows are fitted, how soon a change is found, and how often none was: the cart-pole in pushed motion."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.physics.dynamics import make_dynamics
from retorque.plan.modelling.information import Information
from retorque.plan.modelling.window import Samples, SampleWindow
from retorque.plan.modelling.window_fit import WindowFit
from retorque.tasks.mpc.mpc_library import make_task
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import KeptJobSettings, report, run_jobs

PUSH = 12.0
"""Of the motion in which changes are sought [N]."""
SETTLED = 100
"""Samples before a change comes, and before bands and false alarms are counted."""
EXPLAINED = 2.0
"""A fit whose squared residuals are above so many times the noise's does not explain its window: it has diverged."""
LATEST = 50
"""A change that is not found within so many samples is missed."""


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench mpc-windows`."""

    windows: int = 1000
    """Windows of each length."""
    lengths: tuple[int, ...] = (20, 50)
    """Samples of a window."""
    changes: int = 20
    """Runs in which both masses change by half."""
    stretches: int = 1
    """Minutes without a change."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Fit windows, and watch runs with and without a change."""
    check_between("--windows", settings.windows, 1, 100_000)
    check_between("--changes", settings.changes, 1, 1000)
    check_between("--stretches", settings.stretches, 1, 100)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_names("length", "--lengths", settings.lengths)
    for length in settings.lengths:
        check_between("--lengths", length, 5, 100)
    settings.check_jobs()
    compile_with_progress()
    where = {"robot": "cartpole"}
    rows = []
    for length in settings.lengths:
        ratios, diverged = fitted(length, settings.windows, settings.seed)
        extra = {"samples": length, "diverged": diverged}
        for ratio, name in zip(ratios, ("cart mass", "pole mass"), strict=True):
            metric = f"error / Cramér-Rao bound, {name}, {length} samples"
            rows.append(Row.of(np.array([ratio]), method="window fit", metric=metric, unit="-", extra=extra, **where))
    jobs = [(settings.seed + k, SETTLED + LATEST, True) for k in range(settings.changes)]
    jobs += [(settings.seed + 50 + k, 6000, False) for k in range(settings.stretches)]
    found = run_jobs(watched, jobs, len(jobs), "mpc-windows", settings.workers, settings.cluster, settings.keep)
    alarms, inside = [list(part) for part in zip(*found, strict=True)]
    delays = [next((k - SETTLED for k in times if k >= SETTLED), LATEST) for times in alarms[: settings.changes]]
    early = sum(k < SETTLED for times in alarms[: settings.changes] for k in times)
    seen = {"missed": sum(delay >= LATEST for delay in delays), "early": early, "largest": max(delays)}
    rows += [
        Row.of(
            np.array(delays, dtype=float),
            method="information",
            metric="delay of detection",
            unit="samples",
            extra=seen,
            **where,
        ),
        Row.of(
            np.array([len(times) for times in alarms[settings.changes :]], dtype=float),
            method="information",
            metric="false alarms in 60 s",
            unit="-",
            **where,
        ),
        Row.of(
            np.concatenate(inside[settings.changes :]).astype(float),
            method="information",
            metric="truth inside 95 % band",
            unit="-",
            **where,
        ),
    ]
    notes = "both masses change by half; ratios are root mean squares of errors in units of each window's own bound"
    return Report(bench="mpc-windows", settings=recorded(settings), rows=rows, notes=notes)


def _fit() -> WindowFit:
    task = make_task("cartpole")
    dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
    return WindowFit(dynamics, task.free, np.full(4, task.noise))


def fitted(length: int, windows: int, seed: int) -> tuple[Array, int]:
    """Errors (2,) in units of the Cramér-Rao bound over many windows, and how many of these diverged."""
    fit, rng = _fit(), np.random.default_rng([seed, length])
    weak = np.diag(1.0 / np.square(2.0 * fit.free.span))
    squares, diverged = [], 0
    for _ in range(windows):
        p = rng.uniform(0.5, 3.0, 2)
        x = np.array([0.0, rng.uniform(-3.0, 3.0), 0.0, rng.standard_normal()])
        knots = rng.uniform(-15.0, 15.0, length // 10 + 2)
        inputs = np.interp(np.arange(length) / 10.0, np.arange(len(knots)), knots)[:, None]
        states = fit.dynamics.rollout(x, inputs, fit.free.whole(p))
        measured = states + fit.noise * rng.standard_normal(states.shape)
        samples = Samples(0.0, length, measured, inputs, np.ones(length + 1, dtype=bool))
        found = fit.fit(samples, fit.free.guess, weak)
        if found is None or not np.all(np.isfinite(found.p)) or found.misfit > EXPLAINED * measured.size:
            diverged += 1
            continue
        squares.append(np.square(found.p - p) / np.diag(np.linalg.inv(found.information)))
    return np.sqrt(np.mean(squares, axis=0)) if squares else np.full(2, np.inf), diverged


def watched(seed: int, steps: int, change: bool) -> tuple[list[int], Array]:
    """When `information` found a change, and whether the truth lay inside its band at each step once settled."""
    fit, rng = _fit(), np.random.default_rng([seed, 13])
    dt, modeller = fit.dynamics.timestep, Information(fit.free, fit)
    window = SampleWindow(modeller.longest, 4, 1, dt)
    p, x, u = np.array([1.0, 0.5]), np.array([0.0, rng.uniform(-3.0, 3.0), 0.0, 0.0]), np.zeros(1)
    phase = rng.uniform(0.0, 2.0 * np.pi, 2)
    alarms, inside, version = [], [], 0
    for k in range(steps):
        if change and k == SETTLED:
            p = 1.5 * p
        window.add(k * dt, x + fit.noise * rng.standard_normal(4), u)
        model = modeller.update(window.samples()) if window.count > 1 else modeller.model
        if model.changed and model.version != version:
            alarms.append(k)
        version = model.version
        if k >= SETTLED:
            inside.append(np.abs(model.p - p) <= 1.96 * model.deviation)
        u = np.array([PUSH * np.sin(0.07 * k + phase[0]) + 0.3 * PUSH * np.sin(0.23 * k + phase[1]) - 2.0 * x[0]])
        x = fit.dynamics.step(x, u, fit.free.whole(p))
    report(1)
    return alarms, np.array(inside).ravel()
