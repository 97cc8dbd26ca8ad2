"""`retorque export c`: the supervised adapter of a robot as a folder of C, with a run that proves it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from retorque.adapt import make
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Robot
from retorque.runtime.compiled.build import headers, sources
from retorque.runtime.compiled.constants import NETWORKS, constants_of
from retorque.runtime.compiled.parity import Recording, Replayed, joined, record, replay, troubled
from retorque.runtime.compiled.supervisor_constants import supervisor_constants
from retorque.runtime.export.c_source import model_source
from retorque.tasks.tracking_task import fixed_base
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.files import check_folder, write_whole

PHYSICS, NETWORK = 1e-9, 1e-5
"""How far the replay may be from NumPy [N·m]."""


@dataclass(frozen=True, kw_only=True)
class ExportCSettings:
    """Settings of `retorque export c`."""

    robot: str
    """Robot on board, or the path of a card, an MJCF or a URDF file."""
    adapter: str = "recursive"
    """The adapter; those with a compiled core: default, direct, recursive, recursive-contact, tam, tam-recursive."""
    out: Path
    """The folder to write; files of an earlier export are replaced."""
    weights: Path | None = None
    """A file of weights instead of the ones on board, where the adapter has any."""
    timestep: float = 1e-3
    """Control period [s]; TAM's networks know 1000 Hz alone."""
    ticks: int = 2000
    """Length of the run that is replayed, clean and then with everything that goes wrong."""
    seed: int = 0
    """Of that run."""


def run(settings: ExportCSettings) -> Path:
    """Write the folder; its path."""
    check_between("--ticks", settings.ticks, 100, 100_000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    robot = fixed_base(Robot.load(settings.robot))
    adapter = make(settings.adapter, robot, 1, timestep=settings.timestep, weights=settings.weights)
    constants = {**constants_of(adapter), "supervisor": supervisor_constants(Supervisor(adapter))}
    check_folder(settings.out)
    clean = record(robot, settings.ticks // 2, settings.seed, timestep=settings.timestep)
    run = joined(clean, troubled(clean, robot, settings.seed))
    answered = replay(Supervisor(adapter), run)
    tolerance = NETWORK if type(adapter) in NETWORKS else PHYSICS
    files = {
        "model.h": _model_header(robot, settings.adapter, tolerance),
        "model.c": model_source(constants),
        "parity.txt": parity_text(run, answered),
        **{f"core/{path.name}": path.read_text() for path in (*sources(), *headers())},
        **{path.name: path.read_text() for path in _templates()},
    }
    for name, content in files.items():
        write_whole(settings.out / name, content)
    return settings.out


def parity_text(run: Recording, answered: Replayed) -> str:
    """One line a tick: reset, carry, codes, time, report (3 n), nominal torque (n) and the torque that goes out (n)."""
    ticks = len(run.time)
    numbers = np.column_stack([run.time, run.report.reshape(ticks, -1), run.nominal, answered.torque])
    lines = [f"{ticks} {run.nominal.shape[1]}"]
    for reset, carry, code, row in zip(run.reset, run.carry, answered.health, numbers, strict=True):
        lines.append(f"{int(reset)} {int(carry)} {code} " + " ".join(f"{x:.17g}" for x in row))
    return "\n".join(lines) + "\n"


def _model_header(robot: Robot, adapter: str, tolerance: float) -> str:
    names = ", ".join(robot.joint_names)
    return f"""/* Written by `retorque export c`: adapter '{adapter}' of robot '{robot.name}'.
 * Joints, in order: {names}. */
#ifndef RETORQUE_MODEL_H
#define RETORQUE_MODEL_H

#include "retorque.h"

#define RETORQUE_JOINTS {robot.n}
#define RETORQUE_TOLERANCE {tolerance:g} /* of the replay [N m] */

#ifdef __cplusplus
extern "C" {{
#endif

extern const rt_model retorque_model;

#ifdef __cplusplus
}}
#endif
#endif
"""


def _templates() -> list[Path]:
    folder = Path(str(resources.files("retorque.runtime.export"))) / "templates"
    return sorted(folder.iterdir())
