"""Inverse kinematics by name: the compiled solver, or mink with daqp."""

from __future__ import annotations

from importlib.util import find_spec

from retorque.control.comply.mink_kinematics import MinkKinematics
from retorque.control.comply.site_kinematics import DampedLeastSquares, SiteKinematics
from retorque.work.errors import RetorqueError, unknown

KINEMATICS: dict[str, type[DampedLeastSquares] | type[MinkKinematics]] = {
    "compiled": DampedLeastSquares,
    "mink": MinkKinematics,
}
"""By the word on the command line."""


def kinematics_class(name: str) -> type[DampedLeastSquares] | type[MinkKinematics]:
    """The solver of that name; refused where what it needs is not installed."""
    if name not in KINEMATICS:
        raise unknown("inverse kinematics", name, KINEMATICS)
    if name == "mink" and not has_mink():
        raise RetorqueError("mink is not installed; run `pip install 'retorque[mink]'`")
    found = KINEMATICS[name]
    assert issubclass(found, SiteKinematics)
    return found


def has_mink() -> bool:
    """Whether mink and its solver are installed."""
    return all(find_spec(name) is not None for name in ("mink", "daqp"))
