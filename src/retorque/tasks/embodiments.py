"""The robots of the compliance paper as its tasks use them: sites, poses, servo gains, sizes of forces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from retorque.robots.robot import Robot
from retorque.sense.wrench_estimator import EstimatorSettings
from retorque.sense.wrench_solve import WrenchPrior
from retorque.work.array import Array
from retorque.work.errors import unknown


@dataclass(frozen=True, kw_only=True)
class Embodiment:
    """How one robot takes part."""

    robot: str
    sites: tuple[str, ...]
    """Frames that touch the world."""
    stiffness: Mapping[str, float]
    """Of the joints' position loops by a part of their names, the first that fits [N·m/rad]."""
    damping: Mapping[str, float]
    """The same [N·m·s/rad]; voltage-driven motors add their back-EMF."""
    pose: Mapping[str, float] = field(default_factory=dict)
    """Joint positions that differ from the card's home, by joint [rad]."""
    push: float = 5.0
    """Largest push of `bench wrench` at a site [N]."""
    prior: WrenchPrior = field(default_factory=WrenchPrior)
    """Of the wrench at each site."""
    compliance: float = 200.0
    """Stiffness with which it yields in `bench wrench` [N/m]."""
    smoothing: float = 0.9
    """The paper's moving average."""
    turn_weight: float = 0.3
    """Weight of 1 rad beside 1 m in inverse kinematics; small for fingers, which have four joints only."""
    base_height: float = 0.0
    """Of a free base that stands on its feet [m]."""
    feet: tuple[str, str] | tuple[()] = ()
    """Frames at the soles of a robot that stands."""
    sole: float = 0.0
    """Half length of a sole [m]."""
    noise: float = 0.01
    """Of the motors' torque reports, as a share of their limits: what the estimate is told."""
    bandwidth: float = 15.0
    """Of the momentum observer in contact tasks [1/s]."""
    spread: float = 1.0
    """Factor on the reported covariance, so that its ellipsoids hold the truth as often as they say (seed 1000): an
    estimate that is steadied by more noise than the motors have is surer than its solve."""
    hiding: float = 1.0
    """Another on what joints at rest may hide together."""

    def estimator(self) -> EstimatorSettings:
        """Settings of this robot's wrench estimate."""
        return EstimatorSettings(spread=self.spread, hiding=self.hiding)

    def load(self) -> Robot:
        """The robot of this embodiment."""
        return Robot.load(self.robot)

    def position(self, robot: Robot) -> Array:
        """The pose (n,) that tasks begin at [rad]."""
        q = np.array(robot.home)
        for name, value in self.pose.items():
            q[robot.joint_names.index(name)] = value
        return q

    def gains(self, robot: Robot) -> tuple[Array, Array]:
        """Stiffness and damping (n,) of the position loops."""
        return _by_part(robot, self.stiffness), _by_part(robot, self.damping)


def _by_part(robot: Robot, table: Mapping[str, float]) -> Array:
    return np.array([next(v for part, v in table.items() if part in name) for name in robot.joint_names])


def _finger(stem: str) -> dict[str, float]:
    return {f"{stem}_mcp": 0.5, f"{stem}_rot": 0.0, f"{stem}_pip": 0.7, f"{stem}_dip": 0.5}


EMBODIMENTS: Mapping[str, Embodiment] = MappingProxyType(
    {
        "arx_x5": Embodiment(
            robot="arx_x5",
            sites=("end_effector",),
            pose={"joint2": 1.0, "joint3": 1.2, "joint4": -0.3, "joint5": 0.1, "joint6": 0.1},
            # Gains of the public ARX drivers.
            stiffness={"joint1": 80.0, "joint2": 70.0, "joint3": 70.0, "joint4": 30.0, "joint5": 30.0, "joint6": 20.0},
            damping={"joint1": 2.0, "joint2": 2.0, "joint3": 2.0, "joint4": 1.0, "joint5": 1.0, "joint6": 0.7},
            push=10.0,
            compliance=300.0,
            prior=WrenchPrior(force=8.0, moment=0.04),
            noise=0.005,
            spread=0.26,
            hiding=2.7,
            smoothing=0.1,
        ),
        "leap_hand": Embodiment(
            robot="leap_hand",
            sites=("index_tip", "middle_tip", "ring_tip", "thumb_tip"),
            pose={
                **_finger("if"),
                **_finger("mf"),
                **_finger("rf"),
                "th_cmc": 0.9,
                "th_axl": 0.6,
                "th_mcp": 0.6,
                "th_ipl": 0.4,
            },
            stiffness={"": 6.0},  # P 900, 150 units a N·m/rad
            damping={"": 0.0},
            push=2.0,
            turn_weight=0.003,
            compliance=80.0,
            prior=WrenchPrior(force=1.5, moment=0.0045),
            spread=0.45,
            hiding=5.5,
            smoothing=0.1,
        ),
        "toddlerbot_2xm": Embodiment(
            robot="toddlerbot_2xm",
            sites=("left_hand_centre", "right_hand_centre"),
            stiffness={"hip": 14.0, "knee": 14.0, "ankle": 14.0, "": 10.0},  # P 2100 and 1500
            damping={"": 0.0},
            push=5.0,
            prior=WrenchPrior(force=4.0, moment=0.02),
            base_height=0.309,
            feet=("left_foot_centre", "right_foot_centre"),
            sole=0.055,
            noise=0.02,
            bandwidth=60.0,
            spread=0.15,
            hiding=3.0,
        ),
        "g1": Embodiment(
            robot="g1",
            sites=("left_hand", "right_hand"),
            stiffness={"hip": 500.0, "knee": 500.0, "ankle": 500.0, "waist": 500.0, "": 100.0},
            damping={"hip": 10.0, "knee": 10.0, "ankle": 10.0, "waist": 10.0, "": 3.0},
            push=15.0,
            compliance=400.0,
            prior=WrenchPrior(force=12.0, moment=0.06),
            smoothing=0.1,
            base_height=0.792,
            feet=("left_foot", "right_foot"),
            sole=0.085,
            noise=0.004,
        ),
    }
)
"""By robot."""


def embodiment(name: str) -> Embodiment:
    """The embodiment of that robot."""
    if name not in EMBODIMENTS:
        raise unknown("embodiment", name, EMBODIMENTS)
    return EMBODIMENTS[name]
