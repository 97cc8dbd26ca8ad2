"""A robot as ROS 2 sees it: joint states published and efforts taken over DDS, with a simulated robot behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.runtime.fakes.hidden_robot import FakeSettings, hidden_target
from retorque.work.errors import RetorqueError

PATIENCE = 10.0
"""How long a fake in lockstep waits for an answer [s]."""
FAULTS = ("silent", "nan", "repeat", "backwards")


@dataclass(frozen=True, kw_only=True)
class Ros2RobotSettings(FakeSettings):
    """A fake robot on DDS; faults: silent, and one joint state that is nan, a repeat, or from the past (backwards)."""

    domain: int = 0
    """ROS_DOMAIN_ID."""
    rate: float = 500.0
    """Joint states a second [Hz]."""
    state_topic: str = "/joint_states"
    """Where joint states go."""
    effort_topic: str = "/effort_controller/commands"
    """Where efforts come from."""
    reverse: bool = False
    """List the joints in the opposite order, with a stranger among them."""
    lockstep: bool = False
    """Once an effort has come, wait for one after every joint state instead of keeping real time."""


class Ros2Robot:
    """Holds itself by gravity compensation until the first effort comes.

    Args:
        settings: what it is like.
    """

    def __init__(self, settings: Ros2RobotSettings):
        settings.check_faults(FAULTS)
        if not 10.0 <= settings.rate <= 1000.0:
            raise RetorqueError(f"--rate must be between 10 and 1000 Hz, not {settings.rate}")
        try:
            from cyclonedds.core import Policy, Qos
            from cyclonedds.domain import DomainParticipant
            from cyclonedds.pub import DataWriter
            from cyclonedds.sub import DataReader
            from cyclonedds.topic import Topic
        except ModuleNotFoundError as error:
            raise RetorqueError("the fake needs cyclonedds; run: pip install 'retorque[ros2]'") from error
        from retorque.runtime.drivers import ros2_messages as messages

        self.settings, self._messages = settings, messages
        self.robot = load(settings.robot)
        self.target = hidden_target(settings, self.robot, 1.0 / settings.rate)
        self._gravity = RigidBody(self.robot).gravity
        participant = DomainParticipant(settings.domain)
        states = Topic(participant, f"rt{settings.state_topic}", messages.JointState)
        efforts = Topic(participant, f"rt{settings.effort_topic}", messages.Float64MultiArray)
        sure = Qos(Policy.Reliability.Reliable(100_000_000), Policy.History.KeepLast(1))
        self._writer: Any = DataWriter(participant, states, sure)
        self._reader: Any = DataReader(participant, efforts, sure)
        self._participant = participant
        self._faults = settings.due()
        self.commands = 0
        """Efforts that were taken."""
        self._torque: np.ndarray | None = None

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Publish and listen while `goes_on`."""
        due, period = time.monotonic(), self.target.timestep
        while goes_on():
            fault = self._fault()
            if fault == "silent":
                while goes_on():
                    time.sleep(0.01)
                return
            self._writer.write(self._joint_state(fault))
            due = max(due + period, time.monotonic() - period)
            if self.settings.lockstep and self.commands:
                until = time.monotonic() + PATIENCE
                while not self._listen() and goes_on() and time.monotonic() < until:
                    time.sleep(2e-4)
            else:
                time.sleep(max(0.0, due - time.monotonic()))
                self._listen()
            torque = self._gravity(self.target.position) if self._torque is None else self._torque
            self.target.write(Command(torque=torque))

    def words(self) -> str:
        """One line."""
        return f"{self.commands} efforts taken in {self.target.time:.2f} s of simulated time"

    def _fault(self) -> str:
        if self.commands and self._faults and self._faults[0][0] <= self.target.time:
            return self._faults.pop(0)[1]
        return ""

    def _listen(self) -> bool:
        samples = [sample for sample in self._reader.take(8) if hasattr(sample, "data")]
        for sample in samples:
            if len(sample.data) == self.robot.n and np.isfinite(sample.data).all():
                self._torque = np.array(sample.data)
                self.commands += 1
        return bool(samples)

    def _joint_state(self, fault: str) -> Any:
        state, messages = self.target.read(), self._messages
        names, position = list(self.robot.joint_names), state.position.tolist()
        velocity, effort = state.velocity.tolist(), state.torque.tolist()
        if fault == "nan":
            position[0] = float("nan")
        now = self.target.time - {"repeat": self.target.timestep, "backwards": 0.1}.get(fault, 0.0)
        if self.settings.reverse:
            names, position, velocity, effort = (
                [*values[::-1], extra]
                for values, extra in ((names, "gripper"), (position, 0.5), (velocity, 0.0), (effort, 0.0))
            )
        return messages.joint_state(1.0 + now, names, position, velocity, effort)
