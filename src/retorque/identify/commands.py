"""The commands `retorque identify` and `retorque payload`: options in, tables and files out."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import BLACK_BOXES, Estimator, estimator
from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.payload_estimate import estimate_payload
from retorque.identify.regression.choose import choose_friction
from retorque.identify.report.export import check_exportable, export, no_links
from retorque.identify.report.summary import as_json, base_table, dropped_json, joint_table, link_table, motor_table
from retorque.logs.columns import read_map
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.logs.signal import Filter
from retorque.physics.friction import Friction, preset
from retorque.robots.library import load as load_robot
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.files import check_folder, write_whole
from retorque.work.jobs import progress
from retorque.work.outcome import Outcome


@dataclass(kw_only=True)
class LogOptions:
    """How logs are read."""

    robot: str
    """A robot on board, or the path of a card, URDF or MJCF."""
    columns: Path | None = None
    """Mapping file (TOML): time, position, velocity, torque or current as column names or numbers counted from 0; or
    [files], one file a signal in a folder. Without it: the header's names, or the order time, positions, velocities,
    torques (currents where drive gains are given)."""
    rows: str = ":"
    """Rows of each log to use, A:B, counted from 0, B not included."""
    drive_gains: tuple[str, ...] = ()
    """Joint torque per motor current [N·m/A], one for each joint, where the log has currents."""
    cutoff: float = 5.0
    """Cut-off of the zero-phase filter [Hz]."""
    decimate: int = 0
    """Keep one sample in this many; 0 keeps ten for each period of the cut-off frequency."""
    friction: str = "presliding"
    """none, sign (equation 13), coulomb-viscous, saturating, stribeck, asymmetric, presliding, full; or auto: whichever
    predicts held-out parts of the training log best."""
    json: Path | None = None
    """Write the result here."""


@dataclass(kw_only=True)
class IdentifySettings(LogOptions):
    """Identify a robot from logs of its motion.

    Example: retorque identify motion.csv --robot panda --validate other.csv --json result.json --report report
    """

    logs: tyro.conf.Positional[tuple[Path, ...]]
    """CSV, NPZ or Parquet files (and .gz), or folders with a mapping's [files]."""
    validate: tuple[Path, ...] = ()
    """Logs to test the model on."""
    validate_rows: str = ":"
    """Rows of each validation log to use."""
    method: str = "sdp"
    """ols, wls: (weighted) least squares on base parameters; sdp: physically consistent; diffbary, diffnea: the same by
    gradient descent; delan: a network bound by the Euler-Lagrange equation, a black box without parameters."""
    report: Path | None = None
    """Write one self-contained HTML page into this folder."""
    export: Path | None = None
    """Write the identified robot as card, URDF and MJCF into this folder."""
    base: bool = False
    """Print every base parameter in words."""


@dataclass(kw_only=True)
class PayloadSettings(LogOptions):
    """Find what an arm carries, from a log without it and a log with it.

    Example: retorque payload empty.csv loaded.csv --robot ur10e --drive-gains 14.87 13.26 11.13 10.62 11.03 11.47
    """

    empty: tyro.conf.Positional[Path]
    """Log of a motion without the payload."""
    loaded: tyro.conf.Positional[Path]
    """Log of a motion with it."""
    loaded_rows: str | None = None
    """Rows of the loaded log; default: the same as --rows."""
    known_mass: float | None = None
    """The payload's mass [kg], where it was weighed: then the drive gains are found."""
    gain_uncertainty: float | None = None
    """Relative standard deviation of drive gains or torque sensors; default: 0.05 for currents, 0.01 for torques."""


def identify(settings: IdentifySettings) -> Outcome:
    """Run `retorque identify`."""
    out = Outcome()
    robot = load_robot(settings.robot)
    method = estimator(settings.method)
    for folder in (settings.report, settings.export):
        if folder is not None:
            check_folder(folder)
    if settings.export and settings.method in BLACK_BOXES:
        raise no_links(settings.method)  # before the long work
    train_log = open_log(settings, robot, settings.logs, settings.rows)
    data = train_log.load()
    if train_log.by_order:
        kind = "torques" if train_log.drive_gains is None else "currents"
        out.show(f"no header: columns taken as time, positions, velocities, {kind}", style="dim")
    validate_log: Log | None = None
    held: Motion | Log | None = None
    if settings.validate:
        validate_log = open_log(settings, robot, settings.validate, settings.validate_rows)
        held = validate_log.load()
    friction, compared = choose("none" if settings.method in BLACK_BOXES else settings.friction, data, robot, out)
    estimate = fit_with_progress(settings.method, method, data, robot, friction)
    train = estimate.score(data)
    validation = None if held is None else estimate.score(held)
    dropped = {"train": train_log.dropped}  # complete once the whole log has been read
    if validate_log is not None:
        dropped["validation"] = validate_log.dropped
    if settings.export:
        check_exportable(estimate)  # before anything is written
    content = as_json(estimate, train, validation, dropped, plain(settings))
    if compared:
        content["friction"]["cross_validated_rmse"] = compared
    for name, record in dropped.items():
        out.show(f"{name}: {record.words()}", style="dim" if not record.total else "yellow")
    out.show(joint_table(estimate, train, validation))
    if isinstance(estimate, Estimate):
        show_parameters(out, estimate, settings.base or settings.method in ("ols", "wls"))
    else:
        out.show(estimate.note, markup=False)
    if settings.json:
        out.later("result", partial(write_json, settings.json, content))
    if settings.export:
        out.later("card, URDF and MJCF", partial(_export, estimate, settings.export))
    if settings.report:
        from retorque.identify.report.report_page import write_report

        out.later("report", partial(write_report, estimate, data, held, content, settings.report))
    return out


def _export(estimate: TorqueModel, folder: Path) -> Path:
    export(estimate, folder)
    return folder


def fit_with_progress(
    name: str, method: Estimator, data: Motion | Log, robot: Robot, friction: Friction
) -> TorqueModel:
    """Fit, with a bar on standard error where the method trains for long."""
    if name not in BLACK_BOXES:
        return method.fit(data, robot, friction)
    from retorque.identify.methods.delan_estimator import DeepLagrangian

    assert isinstance(method, DeepLagrangian)  # the only black box
    with progress() as bar:
        task = bar.add_task("training", total=method.settings.epochs)

        def tell(epoch: int, loss: float) -> None:
            bar.update(task, completed=epoch, description=f"training, epoch {epoch}, loss {loss:.3g}")

        return dataclasses.replace(method, progress=tell).fit(data, robot, friction)


def show_parameters(out: Outcome, estimate: Estimate, base: bool) -> None:
    """Friction, links and what could not be told."""
    out.show(motor_table(estimate))
    out.show(link_table(estimate))
    if base:
        out.show(base_table(estimate))
    for sentence in estimate.unidentifiable:
        out.show(sentence, style="dim", markup=False)
    out.show("physically consistent" if estimate.physical else "[red]not physically consistent[/red]")


def payload(settings: PayloadSettings) -> Outcome:
    """Run `retorque payload`."""
    out = Outcome()
    robot = load_robot(settings.robot)
    empty_log = open_log(settings, robot, (settings.empty,), settings.rows)
    empty = empty_log.load()
    rows = settings.rows if settings.loaded_rows is None else settings.loaded_rows
    loaded_log = open_log(settings, robot, (settings.loaded,), rows)
    loaded = loaded_log.load()
    uncertain = settings.gain_uncertainty
    if uncertain is None:
        uncertain = 0.01 if empty_log.drive_gains is None else 0.05
    friction, _ = choose(settings.friction, empty, robot, out)
    found = estimate_payload(empty, loaded, robot, friction, uncertain, settings.known_mass)
    gains = found.gain_scale if empty_log.drive_gains is None else found.gain_scale * empty_log.drive_gains
    gains_std = found.gain_scale_std * gains / found.gain_scale
    content: dict[str, Any] = {
        "robot": robot.name,
        "mass_kg": found.mass,
        "mass_std_kg": found.mass_std,
        "centre_m": found.centre.tolist(),
        "centre_std_m": found.centre_std.tolist(),
        "inertia_kg_m2": found.inertia.tolist(),
        "inertia_std_kg_m2": found.inertia_std.tolist(),
        "frame": f"payload mount on {robot.payload_mount.link}",
        "pseudo_inertia_min_eigenvalue": found.margin,
        "known_mass_kg": settings.known_mass,
        "drive_gains": gains.tolist(),
        "drive_gains_std": gains_std.tolist(),
        "drive_gains_unit": "N·m/A" if empty_log.drive_gains is not None else "true torque per recorded torque",
        "dropped": {"empty": dropped_json(empty_log.dropped), "loaded": dropped_json(loaded_log.dropped)},
        "settings": plain(settings),
    }
    for name, record in (("empty", empty_log.dropped), ("loaded", loaded_log.dropped)):
        out.show(f"{name}: {record.words()}", style="dim" if not record.total else "yellow")
    centre = ", ".join(f"{c:.4f} ± {s:.4f}" for c, s in zip(found.centre, found.centre_std, strict=True))
    if settings.known_mass is None:
        out.show(f"mass    {found.mass:.3f} ± {found.mass_std:.3f} kg")
    out.show(f"centre  {centre} m (payload mount's frame)")
    out.show(f"inertia {', '.join(f'{v:.4g}' for v in np.diagonal(found.inertia))} kg·m² about its centre")
    unit = "N·m/A" if empty_log.drive_gains is not None else "of what was recorded"
    out.show(f"gains   {', '.join(f'{g:.3f} ± {s:.3f}' for g, s in zip(gains, gains_std, strict=True))} {unit}")
    if settings.json:
        out.later("result", partial(write_json, settings.json, content))
    return out


def open_log(settings: LogOptions, robot: Robot, paths: tuple[Path, ...], rows: str) -> Log:
    """The log that the options describe."""
    return Log(
        paths=paths,
        robot=robot,
        columns=None if settings.columns is None else read_map(settings.columns),
        rows=parse_rows(rows),
        drive_gains=parse_gains(settings.drive_gains),
        filter=Filter(cutoff=settings.cutoff, decimate=settings.decimate),
    )


def parse_rows(text: str) -> slice:
    """A:B, either side open."""
    match = re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", text)
    if not match:
        raise RetorqueError(f"rows are written A:B, such as 355:5090, not '{text}'")
    start, stop = (int(part) if part else None for part in match.groups())
    if start is not None and stop is not None and stop <= start:
        raise RetorqueError(f"rows {text} hold nothing: the second number must be larger")
    return slice(start, stop)


def parse_gains(texts: tuple[str, ...]) -> np.ndarray | None:
    """Numbers separated by blanks or commas."""
    parts = [part for text in texts for part in re.split(r"[,\s]+", text) if part]
    if not parts:
        return None
    try:
        return np.array([float(part) for part in parts])
    except ValueError as error:
        raise RetorqueError(f"drive gains are numbers [N·m/A], not '{' '.join(texts)}'") from error


def choose(name: str, data: Motion | Log, robot: Robot, out: Outcome) -> tuple[Friction, dict[str, list[float]]]:
    """The friction model of that name; for "auto" also every candidate's cross-validated RMSE."""
    if name != "auto":
        return preset(name), {}
    best, compared = choose_friction(data, robot)
    out.show(f"friction model: {best} (predicts held-out parts of the training log best)")
    return preset(best), compared


def plain(settings: Any) -> dict[str, Any]:
    """Settings as JSON knows them."""

    def one(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value)
        return [one(item) for item in value] if isinstance(value, tuple) else value

    return {field.name: one(getattr(settings, field.name)) for field in dataclasses.fields(settings)}


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write a result whole."""
    return write_whole(path, json.dumps(content, indent=2, allow_nan=False) + "\n")
