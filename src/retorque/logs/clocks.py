"""A folder with one file a signal, each with a clock of its own: brought to the positions' times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.logs.columns import find_signal, find_time
from retorque.logs.table import open_table
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def own_clocks(folder: Path, files: dict[str, str], robot: Robot) -> bool:
    """Whether the signals' files have a column more than joints: a clock each."""
    if "time" in files:
        return False
    table = open_table(folder / files["position"])
    return table.width > robot.n and (table.names is not None or table.width == robot.n + 1)


def read_signal(path: Path, signal: str, robot: Robot) -> tuple[Array, Array]:
    """Times (rows,) and values (rows, n) of one file, in the order of its clock."""
    table = open_table(path)
    clock = 0 if table.names is None else find_time(table.names)
    if clock is None:
        raise RetorqueError(f"'{path.name}' has no column for time; name it 'time' or 't'")
    if table.names is None:
        columns = tuple(range(1, robot.n + 1))
    else:
        columns = find_signal(table.names, signal, robot, path.name)
    blocks = [values for _, values in table.blocks()]
    rows = np.concatenate(blocks)
    rows = rows[np.all(np.isfinite(rows[:, [clock, *columns]]), axis=1)]
    order = np.unique(rows[:, clock], return_index=True)[1]
    if len(order) < 2:
        raise RetorqueError(f"'{path.name}' holds no rows with a clock that goes forward")
    return rows[order, clock], rows[order][:, columns]


def together(folder: Path, files: dict[str, str], robot: Robot) -> dict[str, Array]:
    """Every signal at the positions' times, as far as all clocks reach: time (rows,), the others (rows, n)."""
    read = {name: read_signal(folder / file, name, robot) for name, file in files.items()}
    begin = max(time[0] for time, _ in read.values())
    end = min(time[-1] for time, _ in read.values())
    time, position = read["position"]
    inside = (time >= begin) & (time <= end)
    if np.sum(inside) < 2:
        raise RetorqueError(f"the clocks of the files in '{folder}' have no time in common; check their units")
    out = {"time": time[inside], "position": position[inside]}
    for name, (clock, values) in read.items():
        if name != "position":
            columns = [np.interp(out["time"], clock, values[:, j]) for j in range(robot.n)]
            out[name] = np.stack(columns, axis=1)
    return out
