"""Any robot that ROS 2 speaks to: joint states in, efforts out, over DDS and without ROS itself."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.drivers.driver import Driver, RobotStopped
from retorque.runtime.drivers.wiring import read_wiring
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

LOOK = 0.0002
"""Time between two looks for a joint state [s]."""
FIRST = 5.0
"""How long to wait for the first joint state: discovery takes its time [s]."""


@dataclass(frozen=True, kw_only=True)
class Ros2Wiring:
    """A wiring file of the ros2 driver."""

    names: tuple[str, ...] = ()
    """ROS name of each joint, in the card's order; default: the card's names."""
    state_topic: str = "/joint_states"
    """sensor_msgs/JointState; joints may come in any order, and others beside them."""
    effort_topic: str = "/effort_controller/commands"
    """std_msgs/Float64MultiArray, in the order of `controller_joints`."""
    controller_joints: tuple[str, ...] = ()
    """ROS names in the order of the effort controller's own list; default: `names`."""
    rate: float = 500.0
    """How often joint states come [Hz]."""
    adds_gravity: bool = False
    """Whether the robot adds gravity compensation of its own to the efforts."""
    silence: float = 0.2
    """Time without joint states after which the robot counts as gone [s]."""


class Ros2(Driver):
    """Joint states and efforts over DDS. `read` waits for the next joint state; the robot's own stamps are its time.

    At the end the torque of gravity alone is sent once (nothing where the robot adds it); then nothing more: what the
    controller does without commands is its own matter.

    Args:
        robot: the ideal robot.
        domain: ROS_DOMAIN_ID; default 0.
        wiring: TOML file; default: the card's joint names and the usual topics.
    """

    keeps_time = True
    met_hardware = "tried with cyclonedds 11.0.1 against the fake; has met neither a robot nor ROS 2 itself"

    def __init__(self, robot: Robot, domain: str = "", *, wiring: Path | None = None):
        super().__init__(robot)
        self.wiring = w = read_wiring(wiring, Ros2Wiring)
        self.names = list(w.names or robot.joint_names)
        if len(self.names) != robot.n or len(set(self.names)) != robot.n:
            raise RetorqueError(f"'names' in the wiring must be {robot.n} different names, one a joint")
        order = list(w.controller_joints or self.names)
        if sorted(order) != sorted(self.names):
            raise RetorqueError("'controller_joints' in the wiring must be the names of all joints, in another order")
        self._order = [self.names.index(name) for name in order]
        if not 10.0 <= w.rate <= 1000.0:
            raise RetorqueError(f"'rate' in the wiring must be between 10 and 1000 Hz, not {w.rate}")
        self.timestep, self.adds_gravity = 1.0 / w.rate, w.adds_gravity
        if domain and not domain.isdigit():
            raise RetorqueError(f"--host is the ROS domain of this driver, a number such as 0, not '{domain}'")
        self._open(int(domain or 0))
        self._picked: tuple[list[str], list[int]] = ([], [])
        self._goal = np.zeros(robot.n)
        self._first_state = True

    def _open(self, domain: int) -> None:
        try:
            from cyclonedds.core import Policy, Qos
            from cyclonedds.domain import DomainParticipant
            from cyclonedds.pub import DataWriter
            from cyclonedds.sub import DataReader
            from cyclonedds.topic import Topic
        except ModuleNotFoundError as error:
            raise RetorqueError("the ros2 driver needs cyclonedds; run: pip install 'retorque[ros2]'") from error
        from retorque.runtime.drivers.ros2_messages import Float64MultiArray, JointState, efforts

        try:
            participant: Any = DomainParticipant(domain)
        except Exception as error:  # its exceptions share no base
            raise RobotStopped(f"cannot join the DDS domain {domain}: {error}; check the network") from error
        newest = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(1))
        sure = Qos(Policy.Reliability.Reliable(100_000_000), Policy.History.KeepLast(1))
        self._reader: Any = DataReader(
            participant, Topic(participant, f"rt{self.wiring.state_topic}", JointState), newest
        )
        self._writer: Any = DataWriter(
            participant, Topic(participant, f"rt{self.wiring.effort_topic}", Float64MultiArray), sure
        )
        self._message, self._participant = efforts, participant

    def _begin(self, act: bool) -> None:
        if act:
            end = time.monotonic() + FIRST
            while not self._writer.get_matched_subscriptions():
                if time.monotonic() > end:
                    raise RobotStopped(
                        f"nobody listens to {self.wiring.effort_topic}; start the effort controller, or name its topic "
                        "in the wiring"
                    )
                time.sleep(0.02)

    def _report(self) -> State:
        end = time.monotonic() + (FIRST if self._first_state else self.wiring.silence)
        while True:
            samples = [sample for sample in self._reader.take(8) if hasattr(sample, "position")]
            if samples:
                self._first_state = False
                return self._state_of(samples[-1])
            if time.monotonic() > end:
                raise RobotStopped(
                    f"no joint states on {self.wiring.state_topic}; check the domain (--host), the topic and the robot"
                )
            time.sleep(LOOK)

    def _state_of(self, sample: Any) -> State:
        """A message in our joint order."""
        if sample.name != self._picked[0]:
            missing = [name for name in self.names if name not in sample.name]
            if missing:
                raise RobotStopped(
                    f"{self.wiring.state_topic} has no joint '{missing[0]}', only {', '.join(sample.name)}; give "
                    "'names' in the wiring"
                )
            self._picked = (list(sample.name), [sample.name.index(name) for name in self.names])
        pick = self._picked[1]
        stamp = sample.header.stamp
        now = stamp.sec + 1e-9 * stamp.nanosec
        if not len(sample.position) == len(sample.velocity) == len(sample.name):
            raise RobotStopped(f"{self.wiring.state_topic} lacks positions or velocities; both are needed")
        position, velocity = np.array(sample.position)[pick], np.array(sample.velocity)[pick]
        given = len(sample.effort) == len(sample.name) and not self.acting
        torque = np.array(sample.effort)[pick] if given else self._goal
        return State(now or time.monotonic(), position, velocity, torque)

    def _first(self) -> Array:
        return self._gravity_alone()

    def _send(self, torque: Array) -> None:
        self._goal = torque
        self._writer.write(self._message(torque[self._order].tolist()))

    def _gravity_alone(self) -> Array:
        if self.adds_gravity or self._position is None:
            return np.zeros(self.robot.n)
        return np.clip(self._body.gravity(self._position), -self._limit, self._limit)

    def _end(self) -> None:
        if self._sent is not None:
            with contextlib.suppress(Exception):
                self._send(self._gravity_alone())
            self._sent = None
        self._writer = None  # one after the other: DDS wants its parts gone before the whole
        self._reader = None
        self._participant = None
