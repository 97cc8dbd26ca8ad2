"""A robot's model from its logs, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from retorque.identify.drive.choose_drive import SIGMOID, START, check_method, with_drive
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import fit
from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.regression.choose import choose_friction
from retorque.identify.verdict.sample import Sampled
from retorque.logs.columns import Columns
from retorque.logs.log import Log
from retorque.logs.signal import Filter
from retorque.physics.friction import preset
from retorque.robots.robot import Robot


def from_log(
    logs: str | Path | Sequence[str | Path],
    robot: Robot,
    *,
    method: str = "sdp",
    friction: str = "presliding",
    columns: Columns | None = None,
    drive_gains: Sequence[float] | None = None,
    filter: Filter | None = None,
) -> TorqueModel:
    """Identify a robot: read its logs, clean and filter them, and fit a model, as `retorque identify` does.

    Args:
        logs: one file of motion or several (CSV, NPZ, Parquet).
        robot: as its maker describes it.
        method: `sdp`, whose links can exist, or another of `retorque.identify.methods.estimator.METHODS`.
        friction: the name of a friction model, `sigmoid` (with the drives) or `auto`.
        columns: which column is what, where the header does not say.
        drive_gains: torque per motor current of each joint, for logs of currents [N·m/A].
        filter: how samples are filtered and thinned.

    Returns:
        The model; with physical parameters it is an `Estimate`, whose `identified()` is the robot to save, simulate,
        adapt from or feed forward.
    """
    paths = (logs,) if isinstance(logs, str | Path) else logs
    log = Log(
        tuple(Path(path) for path in paths),
        robot,
        columns=columns,
        drive_gains=None if drive_gains is None else np.asarray(drive_gains, dtype=float),
        filter=filter or Filter(),
    )
    check_method(friction, method)
    data = Sampled(log.load())
    model = choose_friction(data, robot)[0] if friction == "auto" else START if friction == SIGMOID else friction
    found = fit(data, robot, preset(model), method)
    return with_drive(friction, data.motion(), found)[0] if isinstance(found, Estimate) else found
