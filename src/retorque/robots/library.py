"""The robots on board, and any other robot by the path of its file."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import resources
from pathlib import Path

from retorque.robots.card import read_card
from retorque.robots.formats.xml_file import read_xml
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError, unknown
from retorque.work.files import is_file

ENDINGS = (".toml", ".xml", ".mjcf", ".urdf")
MENAGERIE = "menagerie:"
"""What stands before the name of a robot that is fetched."""


def names() -> tuple[str, ...]:
    """The names of the robots on board, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load(name: str | Path) -> Robot:
    """A robot on board by its name, one in a card, MJCF or URDF file by its path, or `menagerie:NAME`.

    The last is a robot of the `mujoco-menagerie` package, by its folder's name.
    """
    text = str(name)
    if text in names():
        return _on_board(text)
    if text.startswith(MENAGERIE):
        from retorque.robots.formats.mjcf import read_menagerie

        return read_menagerie(text.removeprefix(MENAGERIE))
    path = Path(name).expanduser()
    looks_like_a_path = path.suffix.lower() in ENDINGS or isinstance(name, Path) or "/" in text or "\\" in text
    if not is_file(path):
        if looks_like_a_path:
            raise RetorqueError(
                f"there is no file '{text}'; give the path of a card, an MJCF or a URDF file, or one of: "
                + ", ".join(names())
            )
        raise unknown("robot", text, names())
    if path.suffix.lower() == ".toml":
        return read_card(path)
    if path.suffix.lower() in ENDINGS:
        return _from_xml(path)
    raise RetorqueError(f"'{text}' is neither a robot on board nor a file ending in {', '.join(ENDINGS)}; rename it")


def load_as_found(name: str | Path, joints: Collection[str] | None = None) -> Robot:
    """As `load`, for robots whose files are why they are identified: impossible inertias are repaired, with a note.

    Args:
        name: as `load` takes it.
        joints: those to keep of a URDF or MJCF file; the others are welded.
    """
    path = Path(name).expanduser()
    if str(name) in names() or not is_file(path) or path.suffix.lower() == ".toml":
        robot = load(name)
        strange = [joint for joint in joints or () if joint not in robot.joint_names]
        if strange:
            raise unknown("joint", strange[0], robot.joint_names)
        if joints is not None and set(joints) != set(robot.joint_names):
            raise RetorqueError(
                f"the joints of the card '{robot.name}' cannot be locked; give its URDF or MJCF file as --robot"
            )
        return robot
    if read_xml(path).tag == "robot":
        from retorque.robots.formats.urdf import read_urdf

        return read_urdf(path, joints, repair=True)
    from retorque.robots.formats.mjcf import read_mjcf

    return read_mjcf(path, joints)


def _folder() -> Path:
    return Path(str(resources.files("retorque.robots"))) / "cards"


@cache
def _on_board(name: str) -> Robot:
    return read_card(_folder() / f"{name}.toml")


def _from_xml(path: Path) -> Robot:
    """What an XML file is, its first element says: `<robot>` is URDF, `<mujoco>` is MJCF."""
    root = read_xml(path).tag
    if root == "robot":
        from retorque.robots.formats.urdf import read_urdf

        return read_urdf(path)
    if root in ("mujoco", "mujocoinclude"):
        from retorque.robots.formats.mjcf import read_mjcf

        return read_mjcf(path)
    raise RetorqueError(f"{path.name}: the file starts with <{root}>; a robot's file starts with <mujoco> or <robot>")
