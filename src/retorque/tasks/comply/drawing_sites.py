"""Where and how each robot draws: pens, boards, and the arms that draw by torque."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.sense.wrench_solve import WrenchPrior
from retorque.tasks.comply.stroke_plan import StrokeSettings
from retorque.tasks.embodiments import Embodiment
from retorque.work.errors import RetorqueError

PEN_LENGTH = 0.1
"""Of an arm that draws by torque [m]."""
MOST_ARM_JOINTS, LEAST_REACH = 8, 0.05
"""An arm has at most so many joints, and moves its hand by so much a radian in every direction at home [m]."""


@dataclass(frozen=True, kw_only=True)
class DrawingSite:
    """Where and how a robot draws."""

    site: str
    """The end-effector frame that holds the pen."""
    pen: tuple[float, float, float]
    """The pen's tip in that frame [m]."""
    offset: tuple[float, float, float]
    """Centre of the drawing from the tip's place at the start [m]."""
    normal: tuple[float, float, float]
    """Out of the board."""
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Up in the drawing."""
    pose: Mapping[str, float] = field(default_factory=dict)
    """Joints that stand elsewhere than usual while drawing [rad]."""
    strokes: StrokeSettings = field(default_factory=StrokeSettings)
    """Sizes, speeds and gains."""
    misplaced: float = 0.01
    """How far the board really is from where it is thought to be [m]."""
    board: float = 0.3
    """Half its width and height [m]."""
    tilted: float = float(np.deg2rad(10.0))
    """How far it is turned [rad]."""
    base_height: float | None = None
    """Of a free base in that pose; default: the embodiment's [m]."""


BENT = 0.2
"""Of G1's hips and ankles, its knees twice that: straight legs cannot lean [rad]."""
SITES = {
    "toddlerbot_2xm": DrawingSite(
        site="right_hand_centre",
        pen=(0.0, 0.0, -0.06),
        offset=(0.035, 0.03, 0.05),
        normal=(-1.0, 0.0, 0.0),
        strokes=StrokeSettings(pressing_stiffness=5.0),
    ),
    "arx_x5": DrawingSite(
        site="end_effector",
        pen=(0.11, 0.0, 0.0),
        offset=(0.05, 0.0, 0.0),
        normal=(-1.0, 0.0, 0.0),
        strokes=StrokeSettings(size=0.1, normal_stiffness=80.0, tangent_stiffness=600.0, damping_ratio=5.0),
    ),
    # The index finger bends against the board; the others are out of the way.
    "leap_hand": DrawingSite(
        site="index_tip",
        pen=(-0.02, 0.005, 0.0),
        offset=(-0.01, 0.0, -0.02),
        normal=(1.0, 0.0, 0.0),
        pose={"mf_mcp": 0.1, "rf_mcp": 0.1, "th_cmc": 0.0, "th_axl": 0.0, "th_mcp": 0.0, "th_ipl": 0.0},
        strokes=StrokeSettings(
            size=0.025,
            force=1.0,
            normal_stiffness=20.0,
            tangent_stiffness=200.0,
            damping_ratio=12.0,
            contact_speed=0.01,
            free_speed=0.02,
            clearance=0.01,
        ),
        misplaced=0.004,
        board=0.022,
    ),
    # Forearm forward; the pen is long enough that the hand stays clear of the board.
    "g1": DrawingSite(
        site="right_hand",
        pen=(0.2, 0.0, 0.0),
        offset=(0.05, 0.0, 0.03),
        normal=(-1.0, 0.0, 0.0),
        pose={
            "right_shoulder_pitch_joint": 0.2,
            "right_shoulder_roll_joint": -0.1,
            "right_elbow_joint": 0.1,
            **{f"{side}_hip_pitch_joint": -BENT for side in ("left", "right")},
            **{f"{side}_knee_joint": 2.0 * BENT for side in ("left", "right")},
            **{f"{side}_ankle_pitch_joint": -BENT for side in ("left", "right")},
        },
        strokes=StrokeSettings(size=0.1, force=10.0, normal_stiffness=80.0, tangent_stiffness=600.0, damping_ratio=5.0),
        base_height=0.7793,
    ),
}
"""By robot."""


def arm(name: str) -> Embodiment:
    """A torque-controlled arm as an embodiment: its hand is the site."""
    return Embodiment(robot=name, sites=("end_effector",), stiffness={}, damping={}, prior=WrenchPrior(force=5.0))


def table_site(robot: Robot) -> DrawingSite:
    """A table below the hand of an arm at home, and a pen that points straight down."""
    turn = RigidBody(robot).frame_pose(robot.end_effector, robot.home)[1]
    x, y, z = PEN_LENGTH * turn.T @ np.array([0.0, 0.0, -1.0])
    return DrawingSite(
        site="end_effector",
        pen=(float(x), float(y), float(z)),
        offset=(0.0, 0.0, -0.05),
        normal=(0.0, 0.0, 1.0),
        up=(1.0, 0.0, 0.0),
        strokes=StrokeSettings(size=0.1, normal_stiffness=80.0, tangent_stiffness=600.0, damping_ratio=12.0),
    )


def check_drawing(robot: str) -> None:
    """Refuse a robot that cannot draw."""
    if robot in SITES:
        return
    found = Robot.load(robot)
    arm_like = not found.floating and found.n <= MOST_ARM_JOINTS
    if arm_like:
        moves = RigidBody(found).jacobian(found.end_effector, found.home)[:3]
        arm_like = float(np.linalg.svd(moves, compute_uv=False)[-1]) >= LEAST_REACH
    if not arm_like:
        raise RetorqueError(
            f"'{robot}' has no pen; robots that draw: {', '.join(SITES)}, and arms by torque such as panda whose home "
            "is not singular"
        )
