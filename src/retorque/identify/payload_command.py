"""The command `retorque payload`: what an arm carries, from an empty and a loaded log."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from retorque.identify.log_options import LogOptions, choose, open_log, plain, write_json
from retorque.identify.payload_estimate import estimate_payload
from retorque.identify.report.summary import dropped_json
from retorque.robots.library import load as load_robot
from retorque.work.outcome import Outcome


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
