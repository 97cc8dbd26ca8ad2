"""Runs `retorque learner` and the fakes of `retorque fake` until they are interrupted, and says where they listen."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.robots.library import load
from retorque.runtime.drive import stop_signals
from retorque.runtime.fakes.dynamixel_bus import DynamixelBus, DynamixelBusSettings
from retorque.runtime.fakes.franka_box import FrankaBox, FrankaBoxSettings
from retorque.runtime.fakes.ros2_robot import Ros2Robot, Ros2RobotSettings
from retorque.runtime.fakes.ur_controller import UrController, UrControllerSettings
from retorque.runtime.learning.learner_address import learner_at
from retorque.runtime.learning.learner_process import LearnerSpec


def serve_franka(settings: FrankaBoxSettings) -> None:
    """Run `retorque fake franka`."""
    box = FrankaBox(settings)
    _say(f"listening: {settings.host} (a simulated {settings.robot}, seed {settings.seed}); stop it with Ctrl-C")
    with stop_signals() as told:
        box.serve(lambda: not told(), _say)


def serve_dynamixel(settings: DynamixelBusSettings) -> None:
    """Run `retorque fake dynamixel`."""
    bus = DynamixelBus(settings)
    _say(f"listening: {bus.path} ({len(bus.ids)} servos of a simulated {settings.robot}); stop it with Ctrl-C")
    with stop_signals() as told:
        bus.serve(lambda: not told())
    _say(bus.words())


def serve_ros2(settings: Ros2RobotSettings) -> None:
    """Run `retorque fake ros2`."""
    robot = Ros2Robot(settings)
    _say(f"listening: {settings.domain} (the DDS domain of a simulated {settings.robot}); stop it with Ctrl-C")
    with stop_signals() as told:
        robot.serve(lambda: not told())
    _say(robot.words())


def serve_ur(settings: UrControllerSettings) -> None:
    """Run `retorque fake ur`."""
    controller = UrController(settings)
    _say(f"listening: {settings.host} (a simulated {settings.robot}, seed {settings.seed}); stop it with Ctrl-C")
    with stop_signals() as told:
        controller.serve(lambda: not told())
    _say(controller.words())


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """Learn for a robot that `retorque drive --learn HOST:PORT` drives."""

    robot: str
    """A robot on board, or the path of a card, URDF or MJCF: the same as there."""
    adapter: str = "default"
    """The same as there."""
    rate: float = 1000.0
    """Control rate of the robot [Hz]."""
    seed: int = 0
    """The same as there."""
    listen: str = "127.0.0.1:5750"
    """HOST:PORT, or zenoh:tcp/HOST:PORT; any address but a loopback one needs --key."""
    key: str = ""
    """Secret shared with the control process."""


def learner(settings: LearnerSettings) -> None:
    """Run `retorque learner`."""
    robot = load(settings.robot)
    spec = LearnerSpec(adapter=settings.adapter, timestep=1.0 / settings.rate, seed=settings.seed)
    server = learner_at(lambda: spec.make(robot), robot, settings.listen, settings.key.encode())
    _say(f"listening: {server.address} ({settings.adapter} for {robot.name}); stop it with Ctrl-C")
    with stop_signals() as told:
        server.serve(lambda: not told())


def _say(line: str) -> None:
    print(line, flush=True)
