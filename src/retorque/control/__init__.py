"""Controllers and references: from an action to the torque that the ideal robot would need."""

from retorque.control.action import JointAction, PoseAction, TorqueAction
from retorque.control.computed_torque import ComputedTorque
from retorque.control.controller import Controller
from retorque.control.direct_torque import DirectTorque
from retorque.control.joint_impedance import JointImpedance
from retorque.control.joint_waypoints import JointWaypoints
from retorque.control.operational_space import OperationalSpace
from retorque.control.pose_waypoints import PoseWaypoints
from retorque.control.reference import Reference
from retorque.control.windowed_sines import WindowedSines

__all__ = [
    "ComputedTorque",
    "Controller",
    "DirectTorque",
    "JointAction",
    "JointImpedance",
    "JointWaypoints",
    "OperationalSpace",
    "PoseAction",
    "PoseWaypoints",
    "Reference",
    "TorqueAction",
    "WindowedSines",
]
