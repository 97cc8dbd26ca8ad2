"""Everything that may be unknown about a robot, in one object: inertias, payload, armature, drive, friction, springs.

Arrays carry leading trial axes, and there may be none. The last axis of per-direction quantities is (positive,
negative). `Selection` turns chosen parts of it into a vector and back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from retorque.physics.friction import NO_FRICTION, Friction
from retorque.physics.inertia import from_vector, moved, robot_inertia, to_vector, with_inertias
from retorque.robots.losses import SIGMOID, Drive, JointFriction
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

SLOPE_OF_WIDTH = 4.4
"""A sigmoid rises from 10 % to 90 % over 4.4 / slope: slope = 4.4 / width."""
USUAL_WIDTH = 0.1
"""Velocity width of a sigmoid of no height [rad/s]."""
FORMAT = 2
"""Of files; 1 had scales of the card's masses instead of ten numbers a link."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """One target, or a batch of them: (...) is the batch, L the moving links, n the joints."""

    inertial: Array
    """(..., L, 10) of each moving link, without the payload; see `inertia` for the order."""
    payload: Array
    """(..., 10) of a body fixed to the payload mount, in the mount's frame."""
    armature: Array
    """(..., n) rotor inertia seen at the joint [kg·m²]."""
    torque_scale: Array
    """(..., n, 2) drive gain, by the sign of the command (B.1)."""
    torque_bias: Array
    """(..., n, 2) torque added, by the sign of the velocity (B.2) [N·m]."""
    dead_zone: Array
    """(..., n, 2) command lost before the drive acts, by the sign of the command (B.4) [N·m]."""
    viscous: Array
    """(..., n, 2) damping, by the sign of the velocity (B.2) [N·m·s/rad]."""
    friction_amplitude: Array
    """(..., n, 2) height of the sigmoidal friction (B.3) [N·m]."""
    friction_slope: Array
    """(..., n, 2) its slope [s/rad]."""
    friction_shift: Array
    """(..., n, 2) its velocity shift [rad/s]."""
    friction_coefficients: Array
    """(..., n, count) of the terms of `friction`, on top of the above; units as `friction.units`."""
    stiffness: Array
    """(..., n) of a spring beside the joint [N·m/rad]."""
    rest_position: Array
    """(..., n) where that spring is slack [rad]."""
    friction: Friction = NO_FRICTION
    """The terms that are linear in their coefficients, the same for all trials."""

    @classmethod
    def ideal(cls, robot: Robot, trials: int | tuple[int, ...] = (), friction: Friction = NO_FRICTION) -> Parameters:
        """The robot exactly as its rigid-body model: nothing hidden, no friction."""
        lead = (trials,) if isinstance(trials, int) else trials
        shape = {name: (*lead, *tail) for name, tail in shapes(robot, friction).items()}
        values = {name: np.zeros(shape[name]) for name in ARRAYS}
        values["inertial"] = np.broadcast_to(robot_inertia(robot), shape["inertial"]).copy()
        values["armature"] = np.broadcast_to(robot.armature, shape["armature"]).copy()
        values["torque_scale"] = np.ones(shape["torque_scale"])
        values["friction_slope"] = np.full(shape["friction_slope"], SLOPE_OF_WIDTH / USUAL_WIDTH)
        return cls(friction=friction, **values)

    @classmethod
    def of_robot(cls, robot: Robot, trials: int | tuple[int, ...] = ()) -> Parameters:
        """The robot with all that its card says: also the friction and the drive that were identified."""
        lead = (trials,) if isinstance(trials, int) else trials
        own, found = robot.friction, {}
        friction = NO_FRICTION if own is None or own.family == "sigmoid" else Friction.of_terms(own.terms, own.limit)
        if own is not None and own.family == "terms":
            found["friction_coefficients"] = own.coefficients
        elif own is not None:
            pairs = own.coefficients.reshape(robot.n, 4, 2)
            found = {name: pairs[:, k] for k, name in enumerate(SIGMOID_PAIRS)}
        if robot.drive is not None:
            drive = robot.drive
            found |= {"torque_scale": drive.gain, "torque_bias": drive.bias, "dead_zone": drive.dead_zone}
        ideal = cls.ideal(robot, lead, friction)
        return ideal.with_arrays({k: np.broadcast_to(x, (*lead, *x.shape)).copy() for k, x in found.items()})

    def with_arrays(self, arrays: Mapping[str, Array]) -> Parameters:
        """The same with other arrays, by name."""
        return Parameters(friction=self.friction, **{name: arrays.get(name, getattr(self, name)) for name in ARRAYS})

    def on_card(self, robot: Robot) -> Robot:
        """A robot whose card says all of this, the payload as part of its link; `of_robot` reads it back."""
        if self.trials:
            raise RetorqueError("a card holds one robot; choose a trial of the parameters")
        if np.any(self.stiffness):
            raise RetorqueError("a card has no place for springs at the joints; set their stiffness to zero")
        sigmoid = np.concatenate([getattr(self, name) for name in SIGMOID_PAIRS], axis=-1)
        friction = None
        if self.friction.count:
            if np.any(self.viscous) or np.any(self.friction_amplitude):
                raise RetorqueError("a card holds one family of friction; these parameters have both")
            friction = JointFriction(
                terms=self.friction.names, coefficients=self.friction_coefficients, limit=self.friction.limit
            )
        elif np.any(self.viscous) or np.any(self.friction_amplitude):
            friction = JointFriction(family="sigmoid", terms=SIGMOID, coefficients=sigmoid)
        drive = Drive(gain=self.torque_scale, bias=self.torque_bias, dead_zone=self.dead_zone)
        exact = np.all(drive.gain == 1.0) and not np.any(drive.bias) and not np.any(drive.dead_zone)
        altered = with_inertias(robot, self.total_inertial(robot), self.armature)
        return replace(altered, friction=friction, drive=None if exact else drive, uncertainty=None)

    @classmethod
    def sample(
        cls, robot: Robot, profile: Profile, trials: int | tuple[()], seed: int | np.random.Generator
    ) -> Parameters:
        """Targets drawn from the ranges of Table B.1 as the robot's profile gives them; (): a single one."""
        if isinstance(trials, tuple):
            return cls.sample(robot, profile, 1, seed)[0]
        rng = np.random.default_rng(seed)
        links, n = len(robot.moving_links), robot.n
        pair = (trials, n, 2)

        def both(largest: Array) -> Array:
            return rng.uniform(0.0, 1.0, pair) * largest[:, None]

        # The order of the draws is part of every published figure.
        bias = rng.uniform(-1.0, 1.0, (trials, n)) * profile.bias_max
        difference = rng.uniform(-1.0, 1.0, (trials, n)) * profile.bias_max * profile.bias_difference
        width = rng.uniform(*profile.friction_width, (trials, n))
        skew = rng.uniform(-1.0, 1.0, (trials, n)) * profile.friction_asymmetry
        slope = SLOPE_OF_WIDTH / width
        shift = rng.uniform(-1.0, 1.0, (trials, n)) * profile.friction_shift
        mass_scale = rng.uniform(*profile.mass_scale, (trials, links))
        centre_offset = rng.uniform(-1.0, 1.0, (trials, links, 3)) * profile.centre_offset
        armature = rng.uniform(profile.armature_min, profile.armature_max, (trials, n))
        payload_mass = rng.uniform(*profile.payload_mass, trials)
        payload_centre = rng.uniform(-1.0, 1.0, (trials, 3)) * profile.payload_centre
        return replace(
            cls.ideal(robot, trials),
            inertial=altered_links(robot, mass_scale, centre_offset),
            payload=to_vector(payload_mass, payload_centre, np.zeros((trials, 3, 3))),
            armature=armature,
            torque_scale=rng.uniform(*profile.torque_scale, pair),
            torque_bias=np.stack([bias, bias + difference], axis=-1),
            dead_zone=both(profile.dead_zone_max),
            viscous=both(profile.viscous_max),
            friction_amplitude=np.maximum(both(profile.friction_max), 0.005 / 3.0 * profile.friction_max[:, None]),
            friction_slope=np.stack([slope * 10.0**skew, slope * 10.0**-skew], axis=-1),
            friction_shift=np.stack([shift, -shift + rng.uniform(-0.5, 0.5, shift.shape) * profile.friction_shift], -1),
        )

    @property
    def trials(self) -> tuple[int, ...]:
        """The leading axes."""
        return self.payload.shape[:-1]

    @property
    def payload_mass(self) -> Array:
        """(...) [kg]"""
        return self.payload[..., 0]

    @property
    def payload_centre(self) -> Array:
        """(..., 3) centre of the payload in the mount's frame [m]; zero where there is none."""
        return from_vector(self.payload)[1]

    def with_payload(
        self, mass: Array | float, centre: Array | None = None, inertia: Array | None = None
    ) -> Parameters:
        """The same with another payload.

        Args:
            mass: (...) [kg].
            centre: (..., 3) in the mount's frame [m]; default: the payload's own centre.
            inertia: (..., 3, 3) about that centre [kg·m²]; default: a point.
        """
        where = self.payload_centre if centre is None else np.broadcast_to(centre, (*self.trials, 3))
        about = np.broadcast_to(np.zeros((3, 3)) if inertia is None else inertia, (*self.trials, 3, 3))
        return replace(self, payload=to_vector(np.broadcast_to(mass, self.trials), where, about))

    def total_inertial(self, robot: Robot) -> Array:
        """Ten inertial parameters of every moving link, payload included, (..., L, 10)."""
        where = mount(robot)
        if where is None or not np.any(self.payload):
            return self.inertial
        index, rotation, origin = where
        vector = self.inertial.copy()
        vector[..., index, :] += moved(self.payload, rotation, origin)
        return vector

    def flatten(self) -> Array:
        """All of it as one vector a trial, (..., size)."""
        lead = self.trials
        return np.concatenate([np.reshape(getattr(self, name), (*lead, -1)) for name in ARRAYS], axis=-1)

    @classmethod
    def unflatten(cls, robot: Robot, vector: Array, friction: Friction = NO_FRICTION) -> Parameters:
        """The inverse of `flatten`."""
        lead = vector.shape[:-1]
        values, start = {}, 0
        for name, shape in shapes(robot, friction).items():
            size = int(np.prod(shape))
            values[name] = vector[..., start : start + size].reshape(*lead, *shape)
            start += size
        if start != vector.shape[-1]:
            raise RetorqueError(
                f"parameters of robot '{robot.name}' are {start} numbers, not {vector.shape[-1]}; make them again"
            )
        return cls(friction=friction, **values)

    def __getitem__(self, index: int | slice | Array) -> Parameters:
        """Some of the trials."""
        return Parameters(friction=self.friction, **{name: getattr(self, name)[index] for name in ARRAYS})

    def save(self, path: str | Path, robot: Robot) -> None:
        """Write as JSON, with the robot's name and joint order."""
        content = {"format": FORMAT, "robot": robot.name, "joints": list(robot.joint_names)}
        values = {name: np.asarray(getattr(self, name)).tolist() for name in ARRAYS}
        terms = {"terms": self.friction.names, "limit": self.friction.limit}
        write_whole(path, json.dumps({**content, "friction": terms, "parameters": values}) + "\n")

    @classmethod
    def load(cls, path: str | Path, robot: Robot) -> Parameters:
        """Read what `save` wrote; another robot's file is refused."""
        try:
            content = json.loads(Path(path).read_text())
            values = {name: np.array(content["parameters"][name], dtype=float) for name in ARRAYS}
            friction = Friction.of_terms(content["friction"]["terms"], float(content["friction"]["limit"]))
            joints = content["joints"]
        except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise RetorqueError(f"cannot read parameters from '{path}': {error!r}; save them again") from error
        if joints != list(robot.joint_names):
            raise RetorqueError(f"'{path}' holds parameters of joints {joints}, not of {list(robot.joint_names)}")
        lead = values["payload"].shape[:-1]
        for name, shape in shapes(robot, friction).items():
            want = (*lead, *shape)
            if values[name].shape != want or not np.all(np.isfinite(values[name])):
                raise RetorqueError(f"'{path}': {name} must be finite and of shape {want}; save it again")
        return cls(friction=friction, **values)


ARRAYS = tuple(f.name for f in fields(Parameters) if f.name != "friction")
"""The fields that are arrays, in the order of `flatten`."""
PAIRS = (
    "torque_scale",
    "torque_bias",
    "dead_zone",
    "viscous",
    "friction_amplitude",
    "friction_slope",
    "friction_shift",
)
"""The fields with a value for each direction."""


SIGMOID_PAIRS = ("viscous", "friction_amplitude", "friction_slope", "friction_shift")
"""The fields that the friction family "sigmoid" of a card holds, in its order."""


def shapes(robot: Robot, friction: Friction = NO_FRICTION) -> dict[str, tuple[int, ...]]:
    """The shape of each array of one robot's parameters, without trials."""
    n = robot.n
    own: dict[str, tuple[int, ...]] = {
        "inertial": (len(robot.moving_links), 10),
        "payload": (10,),
        "friction_coefficients": (n, friction.count),
        **{name: (n, 2) for name in PAIRS},
    }
    return {name: own.get(name, (n,)) for name in ARRAYS}


def altered_links(robot: Robot, mass_scale: Array, centre_offset: Array) -> Array:
    """Ten numbers a link (..., L, 10) of the card's links with masses and inertias times (..., L), centres moved by
    (..., L, 3) [m]."""
    mass, centre, inertia = from_vector(robot_inertia(robot))
    return to_vector(mass_scale * mass, centre + centre_offset, mass_scale[..., None, None] * inertia)


def mount(robot: Robot) -> tuple[int, Array, Array] | None:
    """Index of the payload's moving link, and the mount's rotation (3, 3) and origin (3,) in that link.

    None where the mount does not move (a hand's palm): a payload there is not felt.
    """
    names = [link.name for link in robot.moving_links]
    frame = robot.payload_mount
    if frame.link not in names:
        return None
    return names.index(frame.link), from_quaternion(frame.quaternion), np.array(frame.position)
