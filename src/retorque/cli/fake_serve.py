"""Runs the fakes of `retorque fake` until they are interrupted, and says where they listen."""

from __future__ import annotations

from retorque.runtime.drive import stop_signals
from retorque.runtime.fakes.dynamixel_bus import DynamixelBus, DynamixelBusSettings
from retorque.runtime.fakes.franka_box import FrankaBox, FrankaBoxSettings
from retorque.runtime.fakes.ros2_robot import Ros2Robot, Ros2RobotSettings
from retorque.runtime.fakes.ur_controller import UrController, UrControllerSettings


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


def _say(line: str) -> None:
    print(line, flush=True)
