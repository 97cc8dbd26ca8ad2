"""An estimate as JSON and as tables for a terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from rich.table import Table

from retorque.identify.drive.drive_estimate import DriveEstimate
from retorque.identify.drive.drive_layout import DriveLayout
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.torque_model import TorqueModel, TorqueScore
from retorque.identify.verdict.verdict import Verdict
from retorque.logs.clean import Dropped
from retorque.physics.parameters import PAIRS
from retorque.work.files import versions

PHYSICAL = (
    *("friction", "parameters", "base_parameters", "pseudo_inertia_min_eigenvalue", "physically_consistent"),
    *("residual_std", "residual_correlation_samples", "unidentifiable"),
)
"""What only a model with physical parameters has; null in the result of any other."""


def as_json(
    model: TorqueModel,
    train: TorqueScore,
    validation: TorqueScore | None,
    dropped: dict[str, Dropped],
    settings: dict[str, Any],
    verdict: Verdict,
) -> dict[str, Any]:
    """Everything a result file holds; infinite errors, and what a black box does not have, are null."""
    return {
        "robot": model.robot.name,
        **verdict.as_json(),
        "method": model.method,
        "joints": list(model.robot.joint_names),
        "samples": model.samples,
        **(_physical_json(model) if isinstance(model, Estimate) else dict.fromkeys(PHYSICAL)),
        "note": model.note or None,
        "train": score_json(train),
        "validation": None if validation is None else score_json(validation),
        "dropped": {name: dropped_json(record) for name, record in dropped.items()},
        "details": dict(model.details),
        "settings": settings,
        "versions": versions(),
    }


def _physical_json(estimate: Estimate) -> dict[str, Any]:
    """The content under the names of PHYSICAL."""
    card, errors, before = estimate.layout.card, estimate.standard_errors, estimate.prior_deviation
    parameters = [
        {
            "name": name,
            "unit": unit,
            "value": float(value),
            "std": _finite(std),
            "card": float(was),
            "card_std": float(b),
        }
        for name, unit, value, std, was, b in zip(
            estimate.names, estimate.layout.units, estimate.parameters, errors, card, before, strict=True
        )
    ]
    if isinstance(estimate, DriveEstimate):
        parameters += _drive_json(estimate)
    base = [
        {"name": name, "value": float(value), "std": _finite(std)}
        for name, value, std in zip(estimate.base.names, estimate.base_values, estimate.base_deviation, strict=True)
    ]
    links = [link.name for link in estimate.robot.moving_links]
    return {
        "friction": {
            "family": "sigmoid" if isinstance(estimate, DriveEstimate) else "terms",
            **asdict(estimate.friction),
            "terms": list(estimate.friction.names),
        },
        "parameters": parameters,
        "base_parameters": base,
        "pseudo_inertia_min_eigenvalue": dict(zip(links, map(float, estimate.margins), strict=True)),
        "physically_consistent": estimate.physical,
        "residual_std": estimate.noise.tolist(),
        "residual_correlation_samples": estimate.correlation.tolist(),
        "unidentifiable": list(estimate.unidentifiable),
    }


def _drive_json(estimate: DriveEstimate) -> list[dict[str, Any]]:
    """Every number of drives and sigmoidal friction, the logarithm of a slope as the slope."""
    layout = DriveLayout(estimate.robot)
    before = layout.selection.apply(layout.prior.mean)
    deviation = layout.prior.deviation[layout.links.size :].reshape(len(PAIRS), estimate.robot.n, 2)
    out = []
    for k, name in enumerate(PAIRS):
        card, card_std = getattr(before, name), deviation[k]
        card_std = card_std * (card if name == "friction_slope" else 1.0)
        for side in range(2):
            label, unit, values, errors = estimate.joint_terms[1 + 2 * k + side]
            for j, joint in enumerate(estimate.robot.joint_names):
                numbers = map(float, (values[j], errors[j], card[j, side], card_std[j, side]))
                known = dict(zip(("value", "std", "card", "card_std"), numbers, strict=True))
                out.append({"name": f"{label} {joint}", "unit": unit, **known})
    return out


def score_json(score: TorqueScore) -> dict[str, Any]:
    """Per-joint errors of a motion."""
    return {"rmse": score.rmse.tolist(), "relative_error": score.relative.tolist(), "samples": score.samples}


def dropped_json(record: Dropped) -> dict[str, Any]:
    """What was left out of a log, and why."""
    return {
        "rows": record.rows,
        "dropped": record.total,
        "reasons": dict(record.counts),
        "first_row": dict(record.first),
        "stretches": record.pieces,
        "notes": list(record.notes),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def joint_table(estimate: TorqueModel, train: TorqueScore, validation: TorqueScore | None) -> Table:
    """One row a joint: RMSE and relative error on training and validation motion."""
    table = Table(
        title=f"{estimate.robot.name}: torque prediction ({estimate.method}), RMSE \\[N·m] and relative error"
    )
    table.add_column("joint")
    for head in ["train", "relative", *(["validation", "relative"] if validation else [])]:
        table.add_column(head, justify="right")
    for j, name in enumerate(estimate.robot.joint_names):
        cells = [f"{train.rmse[j]:.4g}", f"{train.relative[j]:.3f}"]
        if validation:
            cells += [f"{validation.rmse[j]:.4g}", f"{validation.relative[j]:.3f}"]
        table.add_row(name, *cells)
    return table


def motor_table(estimate: Estimate) -> Table:
    """One row a term of friction, one column a joint: coefficient ± standard error."""
    table = Table(title="rotor inertia and friction of each joint")
    table.add_column("term")
    for j in range(estimate.robot.n):
        table.add_column(f"{j + 1}", justify="right")
    rotor, *terms = estimate.joint_terms
    rows = [rotor]
    dry = [k for k, name in enumerate(estimate.friction.names) if name.startswith(("coulomb", "presliding"))]
    if len(dry) > 1 and not estimate.friction.asymmetric:
        rows.append(("dry, together", "N·m", *_together(estimate, dry)))
    else:
        dry = []
    rows += [term for k, term in enumerate(terms) if k not in dry]
    for term, unit, values, std in rows:
        cells = [f"{_short(value)} ± {error:.1g}" for value, error in zip(values, std, strict=True)]
        table.add_row(f"{term} [dim]{unit}[/dim]", *cells)
    return table


def _together(estimate: Estimate, terms: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Sum of friction terms that a log tells apart badly but whose sum it knows well, with its error, (n,) each."""
    start = 10 * estimate.layout.links + estimate.robot.n
    places = start + np.arange(estimate.robot.n)[:, None] * estimate.friction.count + np.array(terms)
    variance = [np.sum(estimate.covariance[np.ix_(own, own)]) for own in places]
    return estimate.coefficients[:, terms].sum(axis=1), np.sqrt(np.maximum(variance, 0.0))


def _short(value: float) -> str:
    return "0" if abs(value) < 1e-6 else f"{value:.3g}"


def link_table(estimate: Estimate) -> Table:
    """One row a link: mass and centre beside the card's, and whether it can exist."""
    from retorque.physics.inertia import from_vector

    mass, centre, _ = from_vector(estimate.inertial)
    errors = estimate.standard_errors[: 10 * estimate.layout.links].reshape(-1, 10)
    table = Table(title="links (mass and centre are split between neighbours as the card has them)")
    table.add_column("link")
    for head in ("mass ± std \\[kg]", "card", "centre of mass \\[m]", "smallest pseudo-inertia eigenvalue"):
        table.add_column(head, justify="right")
    for k, link in enumerate(estimate.robot.moving_links):
        place = ", ".join(f"{value:.3f}" for value in centre[k])
        margin = f"{estimate.margins[k]:.3g}" + ("" if estimate.margins[k] > 0.0 else "  impossible")
        table.add_row(link.name, f"{mass[k]:.3f} ± {errors[k, 0]:.3f}", f"{link.mass:.3f}", place, margin)
    return table


def base_table(estimate: Estimate) -> Table:
    """Every base parameter in words, with its error from the log alone."""
    table = Table(title="base parameters: all that any motion can reveal")
    table.add_column("combination", overflow="fold")
    table.add_column("value", justify="right")
    table.add_column("std", justify="right")
    for name, value, std in zip(estimate.base.names, estimate.base_values, estimate.base_deviation, strict=True):
        table.add_row(name, f"{value:.5g}", f"{std:.2g}" if np.isfinite(std) else "unseen")
    return table
