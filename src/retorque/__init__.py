"""Retorque makes a robot behave like its model.

The names below are the public interface; each is imported from its room when it is first used, so that a script pays
only for what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Action": "retorque.control.action",
    "Adapter": "retorque.loop.adapter",
    "Base": "retorque.robots.state",
    "Belief": "retorque.loop.belief",
    "Command": "retorque.robots.command",
    "Controller": "retorque.control.controller",
    "DirectTorque": "retorque.control.direct_torque",
    "Frame": "retorque.robots.robot",
    "GravityCompensated": "retorque.loop.plant",
    "Health": "retorque.loop.health",
    "Joint": "retorque.robots.robot",
    "JointAction": "retorque.control.action",
    "JointImpedance": "retorque.control.joint_impedance",
    "JointWaypoints": "retorque.control.joint_waypoints",
    "Link": "retorque.robots.robot",
    "Loop": "retorque.loop.loop",
    "MotorReport": "retorque.robots.state",
    "OperationalSpace": "retorque.control.operational_space",
    "Parameters": "retorque.physics.parameters",
    "Plant": "retorque.loop.plant",
    "Policy": "retorque.loop.policy",
    "PoseAction": "retorque.control.action",
    "PoseWaypoints": "retorque.control.pose_waypoints",
    "Profile": "retorque.robots.profile",
    "Pulses": "retorque.simulate.pulses",
    "RetorqueError": "retorque.work.errors",
    "RigidBody": "retorque.physics.rigid_body",
    "Robot": "retorque.robots.robot",
    "SensorSettings": "retorque.simulate.sensors",
    "State": "retorque.robots.state",
    "Supervisor": "retorque.loop.supervisor",
    "SupervisorSettings": "retorque.loop.supervisor",
    "Target": "retorque.simulate.target",
    "ThreadLearner": "retorque.loop.learner",
    "Tick": "retorque.loop.loop",
    "TorqueAction": "retorque.control.action",
    "Trace": "retorque.loop.trace",
    "WindowedSines": "retorque.control.windowed_sines",
    "identify": "retorque.identify",
    "compiled": "retorque.runtime.compiled.make",
    "make_adapter": "retorque.adapt:make",
    "plant_for": "retorque.loop.plant",
    "profile_of": "retorque.physics.default_profile",
    "run": "retorque.loop.loop",
}
"""Where each public name lives; after a colon, what it is called there. `identify` is a room itself."""

if TYPE_CHECKING:
    from retorque import identify
    from retorque.adapt import make as make_adapter
    from retorque.control.action import Action, JointAction, PoseAction, TorqueAction
    from retorque.control.controller import Controller
    from retorque.control.direct_torque import DirectTorque
    from retorque.control.joint_impedance import JointImpedance
    from retorque.control.joint_waypoints import JointWaypoints
    from retorque.control.operational_space import OperationalSpace
    from retorque.control.pose_waypoints import PoseWaypoints
    from retorque.control.windowed_sines import WindowedSines
    from retorque.loop.adapter import Adapter
    from retorque.loop.belief import Belief
    from retorque.loop.health import Health
    from retorque.loop.learner import ThreadLearner
    from retorque.loop.loop import Loop, Tick, run
    from retorque.loop.plant import GravityCompensated, Plant, plant_for
    from retorque.loop.policy import Policy
    from retorque.loop.supervisor import Supervisor, SupervisorSettings
    from retorque.loop.trace import Trace
    from retorque.physics.default_profile import profile_of
    from retorque.physics.parameters import Parameters
    from retorque.physics.rigid_body import RigidBody
    from retorque.robots.command import Command
    from retorque.robots.profile import Profile
    from retorque.robots.robot import Frame, Joint, Link, Robot
    from retorque.robots.state import Base, MotorReport, State
    from retorque.runtime.compiled.make import compiled
    from retorque.simulate.pulses import Pulses
    from retorque.simulate.sensors import SensorSettings
    from retorque.simulate.target import Target
    from retorque.work.errors import RetorqueError


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'retorque' has no attribute '{name}'; it has: {', '.join(__all__)}")
    module, _, called = _HOME[name].partition(":")
    home = import_module(module)
    value = home if module == f"{__name__}.{name}" else getattr(home, called or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Action",
    "Adapter",
    "Base",
    "Belief",
    "Command",
    "Controller",
    "DirectTorque",
    "Frame",
    "GravityCompensated",
    "Health",
    "Joint",
    "JointAction",
    "JointImpedance",
    "JointWaypoints",
    "Link",
    "Loop",
    "MotorReport",
    "OperationalSpace",
    "Parameters",
    "Plant",
    "Policy",
    "PoseAction",
    "PoseWaypoints",
    "Profile",
    "Pulses",
    "RetorqueError",
    "RigidBody",
    "Robot",
    "SensorSettings",
    "State",
    "Supervisor",
    "SupervisorSettings",
    "Target",
    "ThreadLearner",
    "Tick",
    "TorqueAction",
    "Trace",
    "WindowedSines",
    "__version__",
    "compiled",
    "identify",
    "make_adapter",
    "plant_for",
    "profile_of",
    "run",
]
