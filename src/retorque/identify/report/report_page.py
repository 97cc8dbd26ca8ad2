"""One self-contained HTML page for an identification: torques, residual spectra, parameters, excitation, advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.signal import welch

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.report.advice import Coverage, advice, coverage, sharpness
from retorque.logs.motion import Motion, MotionSource, join
from retorque.physics.kinds import INERTIAL_NAMES
from retorque.work.files import write_whole
from retorque.work.page import escape, figure_image, page, table

MOST = 20_000
"""Samples of a log that are drawn."""
_STYLE = "td,th{padding:.15rem .7rem;font-size:.85rem}img{background:#fff}details{margin:.6rem 0}"


def write_report(
    estimate: TorqueModel, data: MotionSource, held: MotionSource | None, content: dict[str, Any], folder: str | Path
) -> Path:
    """Write `identification.html` into a folder.

    Args:
        estimate: what was identified; a black box has no parameters to show, and the page says so.
        data: the motion it was learnt from.
        held: the validation motion, where there is one.
        content: the result file's content.
        folder: where to.
    """
    train = _first(data)
    seen = coverage(train, estimate.robot)
    parts = [_head(estimate, content), _advice(estimate, seen, content), _errors(estimate, content)]
    parts.append(_section("Measured and predicted torque, training", _torques(estimate, train)))
    if held is not None:
        parts.append(_section("Measured and predicted torque, validation", _torques(estimate, _first(held))))
    parts.append(_section("Residual spectra", _spectra(estimate, train, None if held is None else _first(held))))
    parts.append(_excitation(estimate, seen))
    parts.append(_parameters(estimate, content))
    content_page = page(f"{estimate.robot.name}: identification", "".join(parts), _STYLE)
    return write_whole(Path(folder) / "identification.html", content_page)


def _first(data: MotionSource) -> Motion:
    pieces, count = [], 0
    for piece in data.chunks():
        pieces.append(piece)
        count += len(piece)
        if count >= MOST:
            break
    return join(pieces)[:MOST]


def _section(title: str, figure: Figure) -> str:
    return f"<h2>{escape(title)}</h2>{figure_image(figure, title)}"


def _head(estimate: TorqueModel, content: dict[str, Any]) -> str:
    robot = estimate.robot
    if not isinstance(estimate, Estimate):
        verdict = "<span class='soft'>a black box: whether it is physically consistent cannot be said</span>"
    elif estimate.physical:
        verdict = "<span class='good'>physically consistent: every link could exist</span>"
    else:
        verdict = "<span class='bad'>not physically consistent: some links could not exist</span>"
    lines = [f"<h1>{escape(robot.title or robot.name)}</h1>"]
    lines.append(f"<p>{estimate.samples} samples, method {escape(estimate.method)}, {verdict}.</p>")
    lines.append(_verdict(content))
    for name, record in content["dropped"].items():
        reasons = "; ".join(f"{count} {reason}" for reason, count in record["reasons"].items()) or "nothing left out"
        reasons = "; ".join([reasons, *record["notes"]])
        lines.append(f"<p class='soft'>{escape(name)} log: {record['rows']} rows; {escape(reasons)}.</p>")
    return "".join(lines)


def _verdict(content: dict[str, Any]) -> str:
    """The verdict, its causes and the sentences behind it."""
    kind = {"trust": "good", "doubt": "bad", "refuse": "bad"}[content["verdict"]]
    causes = f" ({', '.join(content['causes'])})" if content["causes"] else ""
    head = f"<p>verdict: <span class='{kind}'>{escape(content['verdict'] + causes)}</span></p>"
    items = "".join(f"<li>{escape(reason)}</li>" for reason in content["reasons"])
    return head + (f"<ul>{items}</ul>" if items else "")


def _advice(estimate: TorqueModel, seen: Coverage, content: dict[str, Any]) -> str:
    held = content["validation"] and content["validation"]["relative_error"]
    sentences = advice(estimate, seen, content["train"]["relative_error"], held)
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f"<h2>What to record next</h2><ul>{items}</ul>"


def _errors(estimate: TorqueModel, content: dict[str, Any]) -> str:
    held = content["validation"]
    head = ["joint", "train RMSE [N·m]", "relative"]
    head += ["validation RMSE [N·m]", "relative"] if held else []
    static = content["train"].get("static")  # what URDF and MJCF can say
    head += ["train RMSE in URDF, MJCF"] if static else []
    rows = []
    for j, name in enumerate(estimate.robot.joint_names):
        row = [name, f"{content['train']['rmse'][j]:.4g}", f"{content['train']['relative_error'][j]:.3f}"]
        row += [f"{held['rmse'][j]:.4g}", f"{held['relative_error'][j]:.3f}"] if held else []
        row += [f"{static['rmse'][j]:.4g}"] if static else []
        rows.append(row)
    return "<h2>Torque prediction</h2>" + table(head, rows)


def _torques(estimate: TorqueModel, motion: Motion) -> Figure:
    predicted = estimate.torque(motion)
    n = estimate.robot.n
    figure = Figure(figsize=(11, 1.7 * n), layout="constrained")
    axes = np.atleast_1d(figure.subplots(n, 1, sharex=True))
    time = motion.time - motion.time[0]
    for j, axis in enumerate(axes):
        axis.plot(time, motion.torque[:, j], color="0.55", lw=1.6, label="measured")
        axis.plot(time, predicted[:, j], color="C0", lw=0.9, label="predicted")
        axis.plot(time, motion.torque[:, j] - predicted[:, j], color="C3", lw=0.7, label="residual")
        axis.set_ylabel(f"{estimate.robot.joint_names[j]}\n[N·m]", fontsize=8)
        axis.grid(alpha=0.25)
    axes[0].legend(loc="upper right", ncols=3, fontsize=8)
    axes[-1].set_xlabel("time [s]")
    return figure


def _spectra(estimate: TorqueModel, train: Motion, held: Motion | None) -> Figure:
    n = estimate.robot.n
    columns = min(n, 4)
    lines = -(-n // columns)
    figure = Figure(figsize=(11, 2.4 * lines), layout="constrained")
    axes = np.atleast_1d(figure.subplots(lines, columns, sharex=True)).ravel()
    for name, motion, color in (("training", train, "C0"), ("validation", held, "C1")):
        if motion is None:
            continue
        rate = 1.0 / float(np.median(np.diff(motion.time)))
        length = min(len(motion), 512)
        frequency, power = welch(estimate.residual(motion), rate, nperseg=length, axis=0)
        _, whole = welch(motion.torque, rate, nperseg=length, axis=0)
        for j, axis in enumerate(axes[:n]):
            axis.loglog(frequency[1:], np.sqrt(power[1:, j]), color=color, lw=1.0, label=f"{name} residual")
            axis.loglog(frequency[1:], np.sqrt(whole[1:, j]), color=color, lw=0.8, ls=":", label=f"{name} torque")
    for j, axis in enumerate(axes):
        axis.set_visible(j < n)
        if j < n:
            top = max(float(np.max(line.get_ydata())) for line in axis.get_lines())
            axis.set_ylim(1e-5 * top, 2.0 * top)  # below lies only what the filter left
            axis.set_title(estimate.robot.joint_names[j], fontsize=9)
            axis.grid(alpha=0.25)
    axes[0].legend(fontsize=7)
    figure.supxlabel("frequency [Hz]", fontsize=9)
    figure.supylabel("N·m/√Hz", fontsize=9)
    return figure


def _excitation(estimate: TorqueModel, seen: Coverage) -> str:
    rows = [
        [
            name,
            f"{seen.span[j]:.2f}",
            f"{100 * seen.span_part[j]:.0f} %" if np.isfinite(seen.span_part[j]) else "-",
            f"{seen.speed[j]:.2f}",
            f"{seen.acceleration[j]:.2f}",
            str(seen.reversals[j]),
            f"{100 * seen.still[j]:.0f} %",
        ]
        for j, name in enumerate(estimate.robot.joint_names)
    ]
    head = ["joint", "range [rad]", "of its limits", "speed [rad/s]", "acceleration [rad/s²]", "reversals", "standing"]
    moved = "<h2>Excitation</h2>" + table(head, rows)
    return moved + _revealed(estimate) if isinstance(estimate, Estimate) else moved


def _revealed(estimate: Estimate) -> str:
    known = sharpness(estimate)
    order = np.argsort(known)
    order = order[[estimate.base.names[k].startswith(("m", "I", "armature")) for k in order]]
    figure = Figure(figsize=(11, 0.17 * len(order) + 1.0), layout="constrained")
    axis = figure.subplots()
    shown = np.maximum(known[order], 1e-2)
    axis.barh(np.arange(len(order)), shown, color=np.where(known[order] < 1.0, "C3", "C0"))
    names = [estimate.base.names[k] for k in order]
    labels = [name if len(name) < 46 else name[:44] + " …" for name in names]
    axis.set_yticks(np.arange(len(order)), labels, fontsize=6)
    axis.set_xscale("log")
    axis.axvline(1.0, color="0.3", lw=0.8)
    axis.set_xlabel("times better known than from the card (red: not improved)")
    axis.set_ylim(-1, len(order))
    words = "".join(f"<p class='soft'>{escape(text)}</p>" for text in estimate.unidentifiable)
    return _section("What the motion revealed", figure) + words


def _parameters(estimate: TorqueModel, content: dict[str, Any]) -> str:
    if not isinstance(estimate, Estimate):
        return f"<h2>Parameters</h2><p>{escape(estimate.note)}.</p>"
    links = []
    for k, link in enumerate(estimate.robot.moving_links):
        rows = [_interval(content["parameters"][10 * k + i], name) for i, name in enumerate(INERTIAL_NAMES)]
        note = f"{link.name} (smallest pseudo-inertia eigenvalue {estimate.margins[k]:.3g})"
        links.append(f"<details><summary>{escape(note)}</summary>{table(_HEAD, rows)}</details>")
    rest = [_interval(item, item["name"]) for item in content["parameters"][10 * len(links) :]]
    base = [
        [item["name"], f"{item['value']:.5g}", "unseen" if item["std"] is None else f"± {1.96 * item['std']:.2g}"]
        for item in content["base_parameters"]
    ]
    motors = f"<details open><summary>rotors and friction</summary>{table(_HEAD, rest)}</details>"
    bases = table(["combination", "value", "95 % from the log alone"], base)
    combined = f"<details><summary>base parameters, in words</summary>{bases}</details>"
    return f"<h2>Parameters with 95 % intervals</h2>{motors}{''.join(links)}{combined}"


_HEAD = ["parameter", "unit", "value", "95 % interval", "card"]


def _interval(item: dict[str, Any], name: str) -> list[str]:
    half = 1.96 * item["std"] if item["std"] is not None else np.inf
    low, high = item["value"] - half, item["value"] + half
    return [name, item["unit"], f"{item['value']:.4g}", f"{low:.4g} .. {high:.4g}", f"{item['card']:.4g}"]
