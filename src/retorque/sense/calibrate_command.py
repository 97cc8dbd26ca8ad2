"""`retorque calibrate-motor`: from a log to a motor card."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.table import Table

from retorque.robots.motor import load_motor, write_motor
from retorque.sense import motor_calibration as fits
from retorque.sense.motor_calibration import Constant
from retorque.work.array import Array
from retorque.work.checks import check_between
from retorque.work.errors import RetorqueError
from retorque.work.files import check_file
from retorque.work.outcome import Outcome

COLUMNS = ("time", "position", "velocity", "pwm", "voltage", "current", "load")
"""What a log may have: s, rad, rad/s, share of the voltage, V, A, N·m."""


@dataclass(frozen=True, kw_only=True)
class CalibrateSettings:
    """Settings of `retorque calibrate-motor`."""

    log: tyro.conf.Positional[Path]
    """CSV with a header: velocity [rad/s] and any of pwm, voltage [V], current [A], load [N·m], position [rad]."""
    motor: str
    """The motor's name, or the path of its card; what the log does not tell is taken from there."""
    payload: float = 0.0
    """Mass on an arm that turns about a level axis, where there is no bench sensor [kg]."""
    arm: float = 0.0
    """Length of that arm; position 0 hangs down [m]."""
    output: Path | None = None
    """Write the card with what was found."""


def calibrate(settings: CalibrateSettings) -> Outcome:
    """Find what the log can tell."""
    motor = load_motor(settings.motor)
    check_between("--payload", settings.payload, 0.0, 1000.0, "kg")
    check_between("--arm", settings.arm, 0.0, 10.0, "m")
    if settings.output is not None:
        check_file(settings.output)
    log = read_log(settings.log)
    found = _fits(log, settings, motor.velocity_constant, motor.bus_voltage)
    if not found:
        raise RetorqueError(
            f"'{settings.log}' tells nothing: it needs velocity with pwm (a free sweep), with pwm and current (the "
            "winding), or current with load or --payload and --arm"
        )
    table = Table(title=f"{motor.name}: constants from {settings.log.name}")
    for name in ("constant", "found", "card"):
        table.add_column(name, justify="left" if name == "constant" else "right")
    for name, constant in found.items():
        before = getattr(motor, name)
        table.add_row(name.replace("_", " "), str(constant), f"{before:.5g}" if np.isfinite(before) else "unknown")
    outcome = Outcome()
    outcome.show(table)
    if settings.output is not None:
        told = {**dict(motor.sources), **{key: f"calibrated from {settings.log.name}: {c}" for key, c in found.items()}}
        values: dict[str, Any] = {key: constant.value for key, constant in found.items()}
        card = replace(motor, sources=tuple(told.items()), **values)
        file = settings.output
        outcome.later("card", lambda: write_motor(card, file))
    return outcome


def read_log(path: Path) -> dict[str, Array]:
    """The columns of a CSV log, by name."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RetorqueError(f"cannot read '{path}' ({error}); give a CSV file with a header") from None
    if len(rows) < 2:
        raise RetorqueError(f"'{path}' holds no samples; give a CSV file with a header and rows")
    header = [name.strip().lower() for name in rows[0]]
    try:
        table = np.array([[float(value) for value in row] for row in rows[1:] if row])
    except ValueError as error:
        raise RetorqueError(f"'{path}': {error}; every row needs a number for each column") from None
    if table.ndim != 2 or table.shape[1] != len(header) or not np.isfinite(table).all():
        raise RetorqueError(f"'{path}': every row needs a finite number for each of {', '.join(header)}")
    log = {name: table[:, k] for k, name in enumerate(header) if name in COLUMNS}
    if "velocity" not in log:
        raise RetorqueError(f"'{path}' has no column 'velocity'; columns that are read: {', '.join(COLUMNS)}")
    return log


def _fits(log: dict[str, Array], settings: CalibrateSettings, kv: float, bus: float) -> dict[str, Constant]:
    found: dict[str, Constant] = {}
    velocity = log["velocity"]
    load = log.get("load")
    if load is None and settings.payload > 0.0 and settings.arm > 0.0 and "position" in log:
        load = fits.pendulum_load(log["position"], settings.payload, settings.arm)
    voltage = log.get("voltage", np.full(len(velocity), bus))
    if "pwm" in log and load is None and not ("current" in log and np.abs(velocity).max() < fits.MOVING):
        found["velocity_constant"] = fits.velocity_constant(log["pwm"], voltage, velocity)
        kv = found["velocity_constant"].value
    if "pwm" in log and "current" in log and np.isfinite(kv):
        found["winding_resistance"] = fits.winding_resistance(log["pwm"], voltage, velocity, log["current"], kv)
    if load is not None and "current" in log:
        fit = fits.drive(load, log["current"], velocity)
        found |= {"torque_constant": fit.torque_constant, "efficiency": fit.efficiency, "coulomb": fit.coulomb}
    return found
