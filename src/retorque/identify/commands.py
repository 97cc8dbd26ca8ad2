"""The command `retorque identify`: a log in, a model with errors and a verdict out."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro

from retorque.identify.drive.choose_drive import SIGMOID, DriveComparison, check_method, with_drive
from retorque.identify.drive.drive_estimate import PLAIN, DriveEstimate
from retorque.identify.log_options import LogOptions, choose, open_log, plain, robot_of, with_cutoff, write_json
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import BLACK_BOXES, Estimator, estimator
from retorque.identify.methods.start_state import learn_starts, with_starts
from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.report.model_files import check_exportable, export, no_links
from retorque.identify.report.static_part import StaticPart
from retorque.identify.report.summary import as_json, base_table, joint_table, link_table, motor_table, score_json
from retorque.identify.verdict.sample import Sampled
from retorque.identify.verdict.verdict import Verdict, judge
from retorque.logs.clean import DamagedLog
from retorque.logs.log import Log
from retorque.logs.motion import Motion, MotionSource
from retorque.physics.friction import Friction, preset
from retorque.robots.library import load as load_robot
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.files import check_folder, versions
from retorque.work.outcome import Outcome


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
    residual: Literal["none", "lstm", "mlp"] = "none"
    """Learn what the model leaves over with a network, with memory (lstm) or without (mlp), where data held back says
    that it pays (needs the `train` extra)."""
    report: Path | None = None
    """Write one self-contained HTML page into this folder."""
    export: Path | None = None
    """Write the identified robot as card, URDF and MJCF into this folder."""
    base: bool = False
    """Print every base parameter in words."""


def identify(settings: IdentifySettings) -> Outcome:
    """Run `retorque identify`."""
    out = Outcome()
    robot = robot_of(settings, settings.logs[0], out) if settings.logs else load_robot(settings.robot)
    check_method(settings.friction, settings.method)
    method = estimator(settings.method)
    for folder in (settings.report, settings.export):
        if folder is not None:
            check_folder(folder)
    if settings.export and settings.method in BLACK_BOXES:
        raise no_links(settings.method)  # before the long work
    try:
        return _identify(settings, robot, method, out)
    except DamagedLog as error:
        return refused(error, settings, robot, out)


def _identify(settings: IdentifySettings, robot: Robot, method: Estimator, out: Outcome) -> Outcome:
    settings = with_cutoff(settings, robot, settings.logs[0], settings.rows, out)
    train_log = open_log(settings, robot, settings.logs, settings.rows)
    data = Sampled(train_log.load())
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
    data, estimate = _with_starts(settings, method, data, estimate, out)
    drives: DriveComparison | None = None
    if isinstance(estimate, Estimate):
        estimate, drives = with_drive(settings.friction, data.motion(), estimate)
        if isinstance(estimate, DriveEstimate) and drives is not None:
            out.show("friction model: sigmoid, with dead zones of the drives (predicts data held back better still)")
    if isinstance(held, Motion) and isinstance(estimate, Estimate):
        held = with_starts(held, estimate)  # what it began with is no fault of the model
    train = estimate.score(data)
    validation = None if held is None else estimate.score(held)
    dropped = {"train": train_log.dropped}  # complete once the whole log has been read
    if validate_log is not None:
        dropped["validation"] = validate_log.dropped
    judged, through = data.motion(), _judged_by(settings)
    if isinstance(estimate, DriveEstimate):
        judged, through = estimate.behind_drive(judged), PLAIN
    verdict = judge(judged, robot, through, train_log.findings)
    content = as_json(estimate, train, validation, dropped, plain(settings), verdict)
    if isinstance(estimate, Estimate) and (settings.json or settings.report) and np.all(estimate.margins > 0.0):
        static = StaticPart.of(estimate)
        content["train"]["static"] = score_json(static.score(data))
        if held is not None:
            content["validation"]["static"] = score_json(static.score(held))
    if compared:
        content["friction"]["cross_validated_rmse"] = compared
    if drives is not None:
        content["friction"]["held_back_rmse"] = drives.as_json()
    for name, record in dropped.items():
        out.show(f"{name}: {record.words()}", style="dim" if not record.total else "yellow")
    out.show(joint_table(estimate, train, validation))
    if isinstance(estimate, Estimate):
        show_parameters(out, estimate, settings.base or settings.method in ("ols", "wls"))
    else:
        out.show(estimate.note, markup=False)
    show_verdict(out, verdict)
    if settings.residual != "none":
        _residual(settings, estimate, data.motion(), content, out)
    if settings.json:
        out.later("result", partial(write_json, settings.json, content))
    if settings.export and verdict.verdict != "refuse":
        check_exportable(estimate)  # before anything is written
        out.later("card, URDF and MJCF", partial(_export, estimate, settings.export))
    elif settings.export:
        out.show("nothing is exported: a refused model must not reach a robot", style="red")
    if settings.report:
        from retorque.identify.report.report_page import write_report

        out.later("report", partial(write_report, estimate, data, held, content, settings.report))
    return out


def _with_starts(
    settings: IdentifySettings, method: Estimator, data: Sampled, estimate: TorqueModel, out: Outcome
) -> tuple[Sampled, TorqueModel]:
    """The data with the presliding states that it began with, and the model learnt from it, where they matter."""
    motion = data.source
    if not isinstance(motion, Motion) or not isinstance(estimate, Estimate):
        return data, estimate

    def refit(started: Motion) -> Estimate:
        found = fit_with_progress(settings.method, method, started, estimate.robot, estimate.friction)
        assert isinstance(found, Estimate)  # as the first time
        return found

    started, learnt = learn_starts(motion, estimate, refit)
    if started is motion:
        return data, estimate
    out.show("friction that the log began with was learnt along (joints that stand still keep it)", style="dim")
    return Sampled(started), learnt


def _residual(
    settings: IdentifySettings, estimate: TorqueModel, motion: Motion, content: dict[str, Any], out: Outcome
) -> None:
    """Train a residual, say whether it pays, and add it to what is written."""
    if not isinstance(estimate, Estimate):
        raise RetorqueError(f"a residual needs an identified model under it, which '{settings.method}' is not")
    from retorque.identify.residual.residual_model import save_residual
    from retorque.identify.residual.train_residual import TorqueResidualTraining, train_residual

    kind: Literal["lstm", "mlp"] = "lstm" if settings.residual == "lstm" else "mlp"
    found = train_residual(estimate, motion, TorqueResidualTraining(kind=kind))
    content["residual"] = found.as_json()
    change = 100.0 * (1.0 - float(np.mean(found.after / np.maximum(found.before, 1e-12))))
    if not found.pays:
        out.show(
            f"the {kind} residual does not surely pay on data held back ({change:.0f} %): it is not written",
            style="yellow",
        )
        return
    out.show(f"the {kind} residual takes {change:.0f} % off the error on data held back")
    if settings.export:
        robot = estimate.identified()
        name = f"{robot.name}_identified"
        made = {"command": "retorque identify", **found.as_json()}
        shape = {"residual": kind, "hidden": found.settings.hidden}
        path = settings.export / f"{name}_residual.safetensors"
        out.later(
            "residual", partial(save_residual, path, found.arrays, dataclasses.replace(robot, name=name), shape, made)
        )


def _judged_by(settings: IdentifySettings) -> Friction:
    """The friction that the verdict looks through: whatever the method, a gearbox has some."""
    if settings.friction in ("auto", "none", SIGMOID) or settings.method in BLACK_BOXES:
        return preset("presliding")
    return preset(settings.friction)


def show_verdict(out: Outcome, verdict: Verdict) -> None:
    """The last word on a model."""
    style = {"trust": "green", "doubt": "yellow", "refuse": "red"}[verdict.verdict]
    causes = f" ({', '.join(verdict.causes)})" if verdict.causes else ""
    out.show(f"verdict: {verdict.verdict}{causes}", style=style)
    for reason in verdict.reasons:
        out.show(f"  {reason}", style=style, markup=False)
    out.code = verdict.code


def refused(error: DamagedLog, settings: LogOptions, robot: Robot, out: Outcome) -> Outcome:
    """How a command ends on a log that could not even be read as motion."""
    verdict = Verdict(verdict="refuse", causes=(error.cause,), reasons=(str(error),))
    if settings.json is None:
        raise error
    content = {"robot": robot.name, **verdict.as_json(), "settings": plain(settings), "versions": versions()}
    out.later("result", partial(write_json, settings.json, content))
    show_verdict(out, verdict)
    return out


def _export(estimate: TorqueModel, folder: Path) -> Path:
    export(estimate, folder)
    return folder


def fit_with_progress(
    name: str, method: Estimator, data: MotionSource, robot: Robot, friction: Friction
) -> TorqueModel:
    """Fit, with a bar on standard error where the method trains for long."""
    if name not in BLACK_BOXES:
        return method.fit(data, robot, friction)
    from retorque.identify.methods.delan_estimator import DeepLagrangian
    from retorque.work.jobs import progress

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
