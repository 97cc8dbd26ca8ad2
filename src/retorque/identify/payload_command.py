"""The command `retorque payload`: what an arm carries, from an empty and a loaded log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from retorque.identify.commands import refused, show_verdict
from retorque.identify.log_options import LogOptions, choose, open_log, plain, robot_of, with_cutoff, write_json
from retorque.identify.payload_estimate import COMMON, SENSOR, SINGLE, PayloadEstimate, estimate_payload
from retorque.identify.payload_gains import SavedGains, Scaled, rough_gains
from retorque.identify.report.summary import dropped_json
from retorque.identify.verdict.payload_verdict import judge_payload
from retorque.logs.clean import DamagedLog
from retorque.logs.columns import read_map
from retorque.logs.log import Log
from retorque.logs.motion import MotionSource
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.files import check_file
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
    """The payload's mass [kg], where it was weighed: then the drive gains are found, and none need be given."""
    gain_uncertainty: float | None = None
    """Relative standard deviation of each drive gain or torque sensor by itself; default: 0.04 for currents, 0.01 for
    torques."""
    common_uncertainty: float | None = None
    """Relative standard deviation of a factor that all of them share; default: 0.08 for currents, 0.01 for torques."""
    gains: Path | None = None
    """Drive gains with their errors, as an earlier `payload --known-mass --save-gains` wrote them."""
    save_gains: Path | None = None
    """Write the drive gains that were found, with their errors, for the next time."""


def payload(settings: PayloadSettings) -> Outcome:
    """Run `retorque payload`."""
    out = Outcome()
    robot = robot_of(settings, settings.empty, out)
    if settings.save_gains is not None:
        check_file(settings.save_gains)
    try:
        return _payload(settings, robot, out)
    except DamagedLog as error:
        return refused(error, settings, robot, out)


def _payload(settings: PayloadSettings, robot: Robot, out: Outcome) -> Outcome:
    if settings.gains is None and not _unknown_gains(settings, None):
        settings = with_cutoff(settings, robot, settings.empty, settings.rows, out)
    saved = None if settings.gains is None else SavedGains.load(settings.gains, robot)
    empty_log, loaded_log = _logs(settings, robot, saved)
    empty: MotionSource = empty_log.load()
    loaded: MotionSource = loaded_log.load()
    unit = np.ones(robot.n) if empty_log.drive_gains is None else empty_log.drive_gains
    if _unknown_gains(settings, saved):
        unit = rough_gains(empty, robot)
        empty, loaded = Scaled(empty, unit), Scaled(loaded, unit)
    is_current = empty_log.drive_gains is not None
    friction, _ = choose(settings.friction, empty, robot, out)
    estimate = partial(
        estimate_payload,
        robot=robot,
        friction=friction,
        gain_uncertainty=settings.gain_uncertainty or (SINGLE if is_current else SENSOR),
        known_mass=settings.known_mass,
        common_uncertainty=settings.common_uncertainty or (COMMON if is_current else SENSOR),
        gain_covariance=None if saved is None or settings.known_mass is not None else saved.covariance,
    )
    found = estimate(empty, loaded)
    findings = (*empty_log.findings, *loaded_log.findings)
    verdict = judge_payload(found, robot, settings.known_mass, findings, lambda: estimate(loaded, empty))
    gains, gains_std = found.gain_scale * unit, found.gain_scale_std * unit
    content: dict[str, Any] = {
        "robot": robot.name,
        **verdict.as_json(),
        "mass_kg": found.mass,
        "mass_std_kg": found.mass_std,
        "mass_variance_share_of_gains": found.gain_share,
        "centre_m": found.centre.tolist(),
        "centre_std_m": found.centre_std.tolist(),
        "inertia_kg_m2": found.inertia.tolist(),
        "inertia_std_kg_m2": found.inertia_std.tolist(),
        "frame": f"payload mount on {robot.payload_mount.link}",
        "pseudo_inertia_min_eigenvalue": found.margin,
        "known_mass_kg": settings.known_mass,
        "drive_gains": gains.tolist(),
        "drive_gains_std": gains_std.tolist(),
        "drive_gains_unit": "N·m/A" if is_current else "true torque per recorded torque",
        "dropped": {"empty": dropped_json(empty_log.dropped), "loaded": dropped_json(loaded_log.dropped)},
        "settings": plain(settings),
    }
    for name, record in (("empty", empty_log.dropped), ("loaded", loaded_log.dropped)):
        out.show(f"{name}: {record.words()}", style="dim" if not record.total else "yellow")
    _show(out, settings, found, gains, gains_std, is_current)
    show_verdict(out, verdict)
    if settings.json:
        out.later("result", partial(write_json, settings.json, content))
    if settings.save_gains:
        kept = SavedGains(gains=gains, covariance=found.gain_covariance / np.outer(found.gain_scale, found.gain_scale))
        out.later("drive gains", partial(kept.save, settings.save_gains, robot))
    return out


def _unknown_gains(settings: PayloadSettings, saved: SavedGains | None) -> bool:
    given = settings.drive_gains or saved is not None
    if settings.columns is not None and not given:
        given = read_map(settings.columns).drive_gains is not None
    return settings.known_mass is not None and not given


def _logs(settings: PayloadSettings, robot: Robot, saved: SavedGains | None) -> tuple[Log, Log]:
    """Both logs; with a known mass and no gains, currents are read as they are."""
    rows = settings.rows if settings.loaded_rows is None else settings.loaded_rows
    if saved is not None:
        settings = replace(settings, drive_gains=tuple(map(repr, saved.gains.tolist())))
    logs = [
        open_log(settings, robot, (settings.empty,), settings.rows),
        open_log(settings, robot, (settings.loaded,), rows),
    ]
    if _unknown_gains(settings, saved):
        for log in logs:
            if log.has_currents():
                log.drive_gains = np.ones(robot.n)
    return logs[0], logs[1]


def _show(
    out: Outcome, settings: PayloadSettings, found: PayloadEstimate, gains: Array, gains_std: Array, is_current: bool
) -> None:
    centre = ", ".join(f"{c:.4f} ± {s:.4f}" for c, s in zip(found.centre, found.centre_std, strict=True))
    if settings.known_mass is None:
        owed = f"{100 * np.sqrt(found.gain_share) * found.mass_std / max(found.mass, 1e-9):.1f} %"
        out.show(f"mass    {found.mass:.3f} ± {found.mass_std:.3f} kg, of which the drive gains {owed} of the mass")
    out.show(f"centre  {centre} m (payload mount's frame)")
    out.show(f"inertia {', '.join(f'{v:.4g}' for v in np.diagonal(found.inertia))} kg·m² about its centre")
    unit = "N·m/A" if is_current else "of what was recorded"
    out.show(f"gains   {', '.join(f'{g:.3f} ± {s:.3f}' for g, s in zip(gains, gains_std, strict=True))} {unit}")
