"""Weights of networks: what every file of them says about robots, rate and gravity, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, save_tensors

GRAVITY = "torques include gravity"
"""The convention of every network here."""


class WeightsHeader(TypedDict):
    """What travels with a network's weights, whichever network it is."""

    shape: dict[str, Any]
    """Sizes and variant: everything that the numbers' meaning depends on."""
    robots: dict[str, list[str]]
    """Robots it was trained on, and the names of their joints in order."""
    only: str
    """The one robot that it serves, or "" where it serves others as well."""
    rate: float
    """Control rate it was trained at [Hz]."""
    gravity: str
    """Whether torques include gravity; always `GRAVITY` here."""
    made: dict[str, Any]
    """How: seed, steps, minutes, losses."""


TYPES: dict[str, type | tuple[type, ...]] = {
    "shape": dict,
    "robots": dict,
    "only": str,
    "rate": (int, float),
    "gravity": str,
    "made": dict,
}
"""What a header's entries must be."""


def weights_header(
    robots: Sequence[Robot], shape: dict[str, Any], made: dict[str, Any], *, only: str = "", rate: float = 1000.0
) -> WeightsHeader:
    """The header of weights that were trained on these robots."""
    joints = {robot.name: list(robot.joint_names) for robot in robots}
    return WeightsHeader(shape=shape, robots=joints, only=only, rate=rate, gravity=GRAVITY, made=made)


def save_network(
    path: str | Path, tensors: Mapping[str, Array], network: str, format: int, header: WeightsHeader
) -> Path:
    """Write a network's weights whole.

    Args:
        path: the file.
        tensors: by name.
        network: which network, such as "TAM".
        format: version of its layout.
        header: what they are for.
    """
    return save_tensors(path, tensors, f"{network} weights", format, dict(header))


def load_network(path: str | Path, network: str, format: int) -> tuple[dict[str, Array], WeightsHeader]:
    """Tensors and header; truncated, altered, foreign or infinite ones and mistyped headers are refused."""
    tensors, found = load_tensors(path, f"{network} weights", format, finite=True)
    wrong = [name for name, kind in TYPES.items() if not isinstance(found.get(name), kind)]
    if not wrong and not all(isinstance(names, list) for names in found["robots"].values()):
        wrong = ["robots"]
    if wrong:
        raise RetorqueError(f"the header of '{path}' has no usable '{wrong[0]}'; copy or train the weights again")
    odd = [name for name, array in tensors.items() if array.dtype.kind != "f"]
    if odd:
        raise RetorqueError(f"'{odd[0]}' in '{path}' does not hold real numbers; copy or train the weights again")
    return tensors, cast(WeightsHeader, {name: found[name] for name in TYPES})


def check_weights(header: WeightsHeader, path: str | Path, robot: Robot, timestep: float) -> None:
    """Refuse weights of another robot, joint order, rate or gravity convention."""
    check_rate(header["rate"], path, timestep)
    if header["gravity"] != GRAVITY:
        raise RetorqueError(f"'{path}' was trained with another gravity convention ('{header['gravity']}')")
    check_only(header, path, robot)
    joints = header["robots"].get(robot.name)
    if joints is not None and joints != list(robot.joint_names):
        raise RetorqueError(
            f"'{path}' expects joints {', '.join(map(str, joints))} of '{robot.name}', not "
            f"{', '.join(robot.joint_names)}"
        )


def check_only(header: WeightsHeader, path: str | Path, robot: Robot) -> None:
    """Refuse weights that serve another robot."""
    only = header["only"]
    if only and only != robot.name:
        raise RetorqueError(f"'{path}' was made for robot '{only}', not for '{robot.name}'; name weights that serve it")


def check_rate(rate: float, path: str | Path, timestep: float) -> None:
    """Refuse weights of another control rate [Hz]."""
    if not abs(timestep * rate - 1.0) <= 1e-6:
        raise RetorqueError(
            f"'{path}' was trained at {rate:.0f} Hz and cannot run at {1.0 / timestep:.0f} Hz; use a timestep of "
            f"{1.0 / max(rate, 1e-9):.6g} s"
        )
