"""Inverse kinematics by mink and daqp: a quadratic program within joint and speed limits, behind the same interface."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.site_kinematics import KinematicsSettings, SiteKinematics
from retorque.robots.formats.mjcf_writer import to_mjmodel
from retorque.robots.robot import Frame, Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

STILL = 1e-9
"""Speed of joints that no site owns [rad/s]."""


class MinkKinematics(SiteKinematics):
    """min |J Δq - e|² + λ |Δq|² within joint and speed limits, for all sites of a robot at once.

    Poses are turned into the base's own axes, so that a free base needs no joints here.

    Args:
        robot: the robot.
        frames: the sites.
        used: (sites, n) joints of each site; the others stay.
        trials: robots served at once, one after the other.
        timestep: control period [s].
        settings: weights and limits; self-collision is left to the compiled solver.
    """

    def __init__(
        self,
        robot: Robot,
        frames: tuple[Frame, ...],
        used: Array,
        trials: int = 1,
        timestep: float = 0.02,
        settings: KinematicsSettings | None = None,
    ):
        try:
            import mink
        except ModuleNotFoundError:
            raise RetorqueError("mink is not installed; run `pip install 'retorque[mink]'`") from None
        self.settings = s = settings or KinematicsSettings()
        if s.collision_margin > 0.0:
            raise RetorqueError("mink is used without self-collision here; take the compiled solver, or margin 0")
        names = tuple(f"site {k}" for k in range(len(frames)))
        held = replace(robot, frames=dict(zip(names, frames, strict=True)))
        if robot.floating:
            base = replace(held.links[0], joint=None, position=(0.0, 0.0, 0.0), quaternion=(1.0, 0.0, 0.0, 0.0))
            held = held.with_links((base, *held.links[1:]))
        model = to_mjmodel(held, limits=True)
        self._mink, self._timestep = mink, timestep
        self._at = np.array([model.joint(name).qposadr[0] for name in robot.joint_names])
        self._configuration = mink.Configuration(model)
        speed = np.where(np.isfinite(robot.velocity_limit), robot.velocity_limit, s.speed)
        speed = np.where(used.any(axis=0), speed, STILL)
        self._limits = [
            mink.ConfigurationLimit(model, gain=1.0, min_distance_from_limits=s.margin),
            mink.VelocityLimit(model, dict(zip(robot.joint_names, speed.tolist(), strict=True))),
        ]
        self._tasks = [mink.FrameTask(name, "site", position_cost=1.0, orientation_cost=s.rotation) for name in names]
        self._posture = mink.PostureTask(model, cost=s.posture**0.5)
        self._lower, self._upper = np.array(robot.lower), np.array(robot.upper)
        self.q, self.codes = np.zeros((trials, robot.n)), np.zeros(trials, dtype=np.int64)
        self._begun = np.zeros((trials, robot.n))
        self._names = names

    def reset(self, q: Array) -> None:
        self.q[:] = q
        self._begun[:] = q

    def step(self, position: Array, rotation: Array, base: Array | None = None) -> Array:
        self.codes = np.zeros(len(self.q), dtype=np.int64)
        for t in range(len(self.q)):
            where, turn = np.zeros(3), np.eye(3)
            if base is not None:
                where, turn = base[t, :3], from_quaternion(base[t, 3:])
            self._one(t, (position[t] - where) @ turn, turn.T @ rotation[t])
        return self.q

    def _one(self, t: int, position: Array, rotation: Array) -> None:
        """One robot's step towards poses in its base's axes."""
        mink, configuration = self._mink, self._configuration
        whole = np.array(configuration.q)
        whole[self._at] = self._begun[t]
        self._posture.set_target(whole)
        whole[self._at] = self.q[t]
        configuration.update(whole)
        for k, task in enumerate(self._tasks):
            task.set_target(mink.SE3.from_rotation_and_translation(mink.SO3.from_matrix(rotation[k]), position[k]))
            at = configuration.data.site(self._names[k]).xpos
            if np.linalg.norm(position[k] - at) > self.settings.reach:
                self.codes[t] |= int(ComplyCode.REACH)
        try:
            velocity = mink.solve_ik(
                configuration,
                [*self._tasks, self._posture],
                self._timestep,
                "daqp",
                damping=self.settings.damping**2,
                limits=self._limits,
            )
        except (mink.MinkError, ValueError):  # no step within the limits: stay
            self.codes[t] |= int(ComplyCode.REACH)
            return
        moved = self.q[t] + self._timestep * velocity[self._at]
        if np.isfinite(moved).all():
            self.q[t] = np.clip(moved, np.minimum(self._lower, self.q[t]), np.maximum(self._upper, self.q[t]))
