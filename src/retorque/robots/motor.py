"""Motor cards: what is known of a motor, each number with its source, and which motor drives which joint."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.toml_text import quoted
from retorque.work.errors import RetorqueError, unknown

DriveKind = Literal["servo", "qdd"]
UNKNOWN = "unknown"
"""What a card says where nobody knows."""
CALIBRATE = "calibrate it first: retorque calibrate-motor"
"""What to do about a constant that is missing."""


@dataclass(frozen=True, kw_only=True)
class Motor:
    """One kind of motor with its gear; torques, speeds and constants are seen at the output. NaN: unknown."""

    name: str
    title: str
    notes: str
    drive: DriveKind
    """servo: a position loop that sets the voltage; qdd: a quasi-direct drive with a current loop."""
    torque_constant: float
    """Kt [N·m/A]"""
    velocity_constant: float
    """Kv [rad/s/V]"""
    winding_resistance: float
    """Rw [ohm]"""
    bus_voltage: float
    """[V]"""
    efficiency: float
    """η of the gear, in (0, 1]."""
    gear_ratio: float
    """Turns of the rotor a turn of the output; the constants above include it."""
    coulomb: float
    """Friction that does not depend on load [N·m]."""
    static_ratio: float
    """Static over Coulomb friction."""
    viscous: float
    """[N·m·s/rad]"""
    armature: float
    """[kg·m²]"""
    torque_limit: float
    """[N·m]"""
    speed_limit: float
    """[rad/s]"""
    torque_at_speed_limit: float
    """[N·m]"""
    speed_at_torque_limit: float
    """[rad/s]"""
    brake_torque: float
    """Largest torque against being turned [N·m]."""
    current_limit: float
    """[A]"""
    current_step: float
    """Resolution of the reported current [A]; unknown of a motor without a current sensor."""
    pwm_step: float
    """Resolution of the duty cycle; unknown of a motor that does not report it."""
    position_step: float
    """Resolution of the encoder [rad]."""
    velocity_step: float
    """Resolution of the reported velocity [rad/s]."""
    servo_unit: float
    """Units of the servo's own P gain a N·m/rad."""
    sources: tuple[tuple[str, str], ...] = ()
    """Where each number comes from."""

    def require(self, *names: str) -> None:
        """Refuse a motor that lacks a constant, naming what to run."""
        missing = [name.replace("_", " ") for name in names if not np.isfinite(getattr(self, name))]
        if missing:
            raise RetorqueError(f"nobody knows the {' and '.join(missing)} of motor {self.name}; {CALIBRATE}")


NUMBERS = tuple(f.name for f in fields(Motor) if f.type == "float")
"""The fields of a card that are numbers or "unknown"."""
MAY_BE_ZERO = ("coulomb", "viscous", "armature")
"""What a calibration may find to be nothing; all other numbers are above zero."""


def motor_names() -> tuple[str, ...]:
    """The motors on board."""
    return tuple(sorted(motor.name for motor in _on_board()))


def load_motor(name: str | Path) -> Motor:
    """A motor on board by its name, or one in a card by its path."""
    path = Path(name)
    if path.suffix == ".toml":
        return _read(path)
    for motor in _on_board():
        if motor.name.lower() == str(name).lower():
            return motor
    raise unknown("motor", str(name), motor_names())


def motors_of(robot: Robot) -> tuple[Motor, ...]:
    """The motor of each joint, in order; a joint whose card names none is refused."""
    motors = []
    for joint in robot.joints:
        if not joint.motor:
            raise RetorqueError(f"the card of '{robot.name}' names no motor for joint '{joint.name}'; add motor = ...")
        motors.append(load_motor(joint.motor.split(" x ")[-1]))
    return tuple(motors)


def transmissions(robot: Robot) -> np.ndarray:
    """Joint torque over one motor's torque, (n,): r of equation 8, from limits that the card gives for both.

    A servo whose joint is turned through further gears, or by two of its kind, has the larger limit in the card.
    """
    ratio = np.ones(robot.n)
    for k, (joint, motor) in enumerate(zip(robot.joints, motors_of(robot), strict=True)):
        if motor.drive == "servo" and np.isfinite(joint.torque_limit) and motor.torque_limit > 0.0:
            ratio[k] = joint.torque_limit / motor.torque_limit
    return ratio


def write_motor(motor: Motor, path: str | Path) -> Path:
    """Write a card that `load_motor` reads."""
    from retorque.work.files import write_whole

    sources = dict(motor.sources)
    texts = {key: getattr(motor, key) for key in ("name", "title", "notes", "drive")}
    lines = [f"{key} = {quoted(value)}" for key, value in texts.items()]
    lines += ['source = "see each number"', ""]
    for key in NUMBERS:
        value = getattr(motor, key)
        told = sources.get(key, "unknown source")
        known = f"{{ value = {float(value)!r}, source = {quoted(told)} }}"
        lines.append(f"{key} = {known}" if np.isfinite(value) else f'{key} = "{UNKNOWN}"')
    return write_whole(path, "\n".join(lines) + "\n")


def _folder() -> Path:
    return Path(str(resources.files("retorque.robots"))) / "motors"


@cache
def _on_board() -> tuple[Motor, ...]:
    """Read once; a card of the user's own may have been written again."""
    return tuple(_read(path) for path in _folder().glob("*.toml"))


def _read(path: Path) -> Motor:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RetorqueError(f"there is no motor card '{path}'; give a name of: {', '.join(motor_names())}") from None
    except (ValueError, OSError) as error:
        raise RetorqueError(f"{path.name}: this is not a TOML file that can be read ({error}); correct it") from None
    values: dict[str, float] = {}
    sources: list[tuple[str, str]] = []
    for key in NUMBERS:
        entry = data.get(key)
        if entry == UNKNOWN:
            values[key] = float("nan")
            continue
        value = entry.get("value") if isinstance(entry, dict) else None
        good = isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value) and value >= 0.0
        good = good and (value != 0.0 or key in MAY_BE_ZERO)
        if not good or not isinstance(entry, dict) or not entry.get("source"):
            raise RetorqueError(
                f'{path.name}: {key} must be "unknown" or {{ value = a number above 0, source = "..." }}, not {entry!r}'
            )
        assert value is not None
        values[key] = float(value)
        sources.append((key, str(entry["source"])))
    if values["efficiency"] > 1.0:
        raise RetorqueError(f"{path.name}: the efficiency is {values['efficiency']}; it is at most 1")
    texts = {key: str(data.get(key, "")) for key in ("name", "title", "notes")}
    drive = data.get("drive")
    if drive not in ("servo", "qdd") or not texts["name"]:
        raise RetorqueError(f'{path.name}: a motor card has a name and drive = "servo" or "qdd"; correct it')
    more = set(data) - set(values) - set(texts) - {"source", "drive"}
    if more:
        raise RetorqueError(f"{path.name}: a motor card has no '{sorted(more)[0]}'; remove it")
    made: dict[str, Any] = {**texts, **values, "drive": drive}
    return Motor(**made, sources=tuple(sources))
