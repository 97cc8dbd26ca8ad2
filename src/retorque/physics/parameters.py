"""Everything that may be unknown about a robot, in one object: inertias, payload, armature, drive and friction.

Arrays carry leading trial axes. The last axis of per-direction quantities is (positive, negative).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from retorque.physics.inertia import from_vector, robot_inertia, to_vector
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

SLOPE_OF_WIDTH = 4.4
"""A sigmoid rises from 10 % to 90 % over 4.4 / slope: slope = 4.4 / width."""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """One target, or a batch of them: (...) is the batch, L the moving links, n the joints."""

    mass_scale: Array
    """(..., L) multiplier of each link's mass and inertia."""
    centre_offset: Array
    """(..., L, 3) shift of each link's centre of mass [m]."""
    armature: Array
    """(..., n) rotor inertia seen at the joint [kg·m²]."""
    payload_mass: Array
    """(...) mass of a point payload [kg]."""
    payload_centre: Array
    """(..., 3) where it is, in the payload mount's frame [m]."""
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

    @classmethod
    def ideal(cls, robot: Robot, trials: int | tuple[int, ...] = ()) -> Parameters:
        """The robot exactly as its model: nothing hidden."""
        lead = (trials,) if isinstance(trials, int) else trials
        links, n = len(robot.moving_links), robot.n
        pair = (*lead, n, 2)
        return cls(
            mass_scale=np.ones((*lead, links)),
            centre_offset=np.zeros((*lead, links, 3)),
            armature=np.broadcast_to(robot.armature, (*lead, n)).copy(),
            payload_mass=np.zeros(lead),
            payload_centre=np.zeros((*lead, 3)),
            torque_scale=np.ones(pair),
            torque_bias=np.zeros(pair),
            dead_zone=np.zeros(pair),
            viscous=np.zeros(pair),
            friction_amplitude=np.zeros(pair),
            friction_slope=np.full(pair, SLOPE_OF_WIDTH / 0.1),
            friction_shift=np.zeros(pair),
        )

    @classmethod
    def sample(cls, robot: Robot, profile: Profile, trials: int, seed: int | np.random.Generator) -> Parameters:
        """Targets drawn from the ranges of Table B.1 as the robot's profile gives them."""
        rng = np.random.default_rng(seed)
        links, n = len(robot.moving_links), robot.n
        pair = (trials, n, 2)

        def both(largest: Array) -> Array:
            return rng.uniform(0.0, 1.0, pair) * largest[:, None]

        bias = rng.uniform(-1.0, 1.0, (trials, n)) * profile.bias_max
        difference = rng.uniform(-1.0, 1.0, (trials, n)) * profile.bias_max * profile.bias_difference
        width = rng.uniform(*profile.friction_width, (trials, n))
        skew = rng.uniform(-1.0, 1.0, (trials, n)) * profile.friction_asymmetry
        slope = SLOPE_OF_WIDTH / width
        shift = rng.uniform(-1.0, 1.0, (trials, n)) * profile.friction_shift
        return cls(
            mass_scale=rng.uniform(*profile.mass_scale, (trials, links)),
            centre_offset=rng.uniform(-1.0, 1.0, (trials, links, 3)) * profile.centre_offset,
            armature=rng.uniform(profile.armature_min, profile.armature_max, (trials, n)),
            payload_mass=rng.uniform(*profile.payload_mass, trials),
            payload_centre=rng.uniform(-1.0, 1.0, (trials, 3)) * profile.payload_centre,
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
        return self.payload_mass.shape

    def inertial(self, robot: Robot) -> Array:
        """Ten inertial parameters of every moving link, payload included, (..., L, 10)."""
        mass, centre, inertia = from_vector(robot_inertia(robot))
        scale = self.mass_scale
        vector = to_vector(scale * mass, centre + self.centre_offset, scale[..., None, None] * inertia)
        where = mount(robot)
        if where is not None:
            index, rotation, origin = where
            point = origin + self.payload_centre @ rotation.T
            vector[..., index, :] += to_vector(self.payload_mass, point, np.zeros((*self.trials, 3, 3)))
        return vector

    def clip(self, robot: Robot, profile: Profile) -> Parameters:
        """The same, moved inside the profile's ranges."""
        low, high = bounds(robot, profile)
        return Parameters.unflatten(robot, np.clip(self.flatten(), low.flatten(), high.flatten()))

    def flatten(self) -> Array:
        """All of it as one vector a trial, (..., size)."""
        lead = self.trials
        return np.concatenate([np.reshape(getattr(self, f.name), (*lead, -1)) for f in fields(self)], axis=-1)

    @classmethod
    def unflatten(cls, robot: Robot, vector: Array) -> Parameters:
        """The inverse of `flatten`."""
        lead = vector.shape[:-1]
        values, start = {}, 0
        for f in fields(cls):
            shape = getattr(cls.ideal(robot), f.name).shape
            size = int(np.prod(shape))
            values[f.name] = vector[..., start : start + size].reshape(*lead, *shape)
            start += size
        return cls(**values)

    def __getitem__(self, index: int | slice | Array) -> Parameters:
        """Some of the trials."""
        return Parameters(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def save(self, path: str | Path, robot: Robot) -> None:
        """Write as JSON, with the robot's name and joint order."""
        content = {"format": 1, "robot": robot.name, "joints": list(robot.joint_names)}
        values = {f.name: np.asarray(getattr(self, f.name)).tolist() for f in fields(self)}
        write_whole(path, json.dumps({**content, "parameters": values}) + "\n")

    @classmethod
    def load(cls, path: str | Path, robot: Robot) -> Parameters:
        """Read what `save` wrote; another robot's file is refused."""
        try:
            content = json.loads(Path(path).read_text())
            values = {f.name: np.array(content["parameters"][f.name], dtype=float) for f in fields(cls)}
            joints = content["joints"]
        except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
            raise RetorqueError(f"cannot read parameters from '{path}': {error!r}; save them again") from error
        if joints != list(robot.joint_names):
            raise RetorqueError(f"'{path}' holds parameters of joints {joints}, not of {list(robot.joint_names)}")
        lead = values["payload_mass"].shape
        for f in fields(cls):
            want = (*lead, *getattr(cls.ideal(robot), f.name).shape)
            if values[f.name].shape != want or not np.all(np.isfinite(values[f.name])):
                raise RetorqueError(f"'{path}': {f.name} must be finite and of shape {want}; save it again")
        return cls(**values)


def mount(robot: Robot) -> tuple[int, Array, Array] | None:
    """Index of the payload's moving link, and the mount's rotation (3, 3) and origin (3,) in that link.

    None where the mount does not move (a hand's palm): a payload there is not felt.
    """
    names = [link.name for link in robot.moving_links]
    frame = robot.payload_mount
    if frame.link not in names:
        return None
    return names.index(frame.link), from_quaternion(frame.quaternion), np.array(frame.position)


def bounds(robot: Robot, profile: Profile) -> tuple[Parameters, Parameters]:
    """The smallest and the largest of every parameter that the profile allows."""
    ideal = Parameters.ideal(robot)

    def both(value: Array) -> Array:
        return np.repeat(np.asarray(value)[:, None], 2, axis=1)

    def full(like: Array, value: float) -> Array:
        return np.full_like(like, value)

    steep = 10.0**profile.friction_asymmetry
    shift = 1.5 * profile.friction_shift
    spread = profile.bias_max * (1.0 + profile.bias_difference)
    low = Parameters(
        mass_scale=full(ideal.mass_scale, profile.mass_scale[0]),
        centre_offset=full(ideal.centre_offset, -profile.centre_offset),
        armature=profile.armature_min,
        payload_mass=np.array(profile.payload_mass[0]),
        payload_centre=np.full(3, -profile.payload_centre),
        torque_scale=full(ideal.torque_scale, profile.torque_scale[0]),
        torque_bias=both(-spread),
        dead_zone=full(ideal.dead_zone, 0.0),
        viscous=full(ideal.viscous, 0.0),
        friction_amplitude=full(ideal.friction_amplitude, 0.0),
        friction_slope=full(ideal.friction_slope, SLOPE_OF_WIDTH / profile.friction_width[1] / steep),
        friction_shift=full(ideal.friction_shift, -shift),
    )
    high = Parameters(
        mass_scale=full(ideal.mass_scale, profile.mass_scale[1]),
        centre_offset=full(ideal.centre_offset, profile.centre_offset),
        armature=profile.armature_max,
        payload_mass=np.array(profile.payload_mass[1]),
        payload_centre=np.full(3, profile.payload_centre),
        torque_scale=full(ideal.torque_scale, profile.torque_scale[1]),
        torque_bias=both(spread),
        dead_zone=both(profile.dead_zone_max),
        viscous=both(profile.viscous_max),
        friction_amplitude=both(profile.friction_max),
        friction_slope=full(ideal.friction_slope, SLOPE_OF_WIDTH / profile.friction_width[0] * steep),
        friction_shift=full(ideal.friction_shift, shift),
    )
    return low, high
