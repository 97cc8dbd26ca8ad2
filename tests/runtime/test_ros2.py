"""The ROS 2 driver over DDS, against the fake robot; everything stays on the loopback interface."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retorque.robots.library import load
from retorque.runtime.drive import DriveSettings, run_drive
from retorque.runtime.drive_report import DriveReport
from retorque.runtime.drivers.driver import RobotStopped
from retorque.work.errors import RetorqueError

pytest.importorskip("cyclonedds", reason="these tests need DDS: pip install 'retorque[ros2]'")

from retorque.runtime.drivers.ros2 import Ros2
from retorque.runtime.drivers.ros2_messages import JointState, efforts, joint_state
from retorque.runtime.fakes.ros2_robot import Ros2Robot, Ros2RobotSettings

LOOPBACK = (
    '<CycloneDDS><Domain><General><Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces></General>'
    "<Discovery><ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>100</MaxAutoParticipantIndex>"
    '<Peers><Peer address="localhost"/></Peers></Discovery></Domain></CycloneDDS>'
)
DOMAINS = itertools.count(20 + 40 * (int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % 4))
"""Domains that no other worker's tests use; there are 232."""


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CYCLONEDDS_URI", LOOPBACK)


def _drive(domain: str, adapter: str, **options: object) -> DriveReport:
    given = {"act": True, "motion": "sines", "duration": 3.0, "learn": "inline", **options}
    return run_drive(DriveSettings(driver="ros2", robot="panda", host=domain, adapter=adapter, **given))


@pytest.mark.slow  # the client's own clock runs on: a busy machine cannot hold it
def test_recursive_moves_the_robot_as_the_ideal_one_whatever_the_order_of_joints(fake: Callable) -> None:
    errors = {}
    for adapter in ("direct", "recursive"):
        robot = fake("ros2", "--domain", str(next(DOMAINS)), "--lockstep", "--reverse")
        report = _drive(robot.address, adapter)
        assert report.ended == "done" and report.error_deg is not None
        errors[adapter] = report.error_deg["last_second"]
        taken = re.search(r"(\d+) efforts taken", robot.end())
        assert taken is not None and int(taken[1]) >= 1500
    assert errors["direct"] > 1.0 and errors["recursive"] < 0.2 * errors["direct"]


def test_broken_repeated_and_backward_states_become_codes(fake: Callable) -> None:
    faults = ["--faults", "nan@0.5", "repeat@0.7", "backwards@0.9"]
    robot = fake("ros2", "--domain", str(next(DOMAINS)), "--lockstep", *faults)
    report = _drive(robot.address, "direct", duration=1.5)
    assert report.ended == "done"
    assert report.health["BAD_STATE"] == 1 and report.health["BAD_CLOCK"] == 2


def test_a_robot_that_falls_silent_is_one_sentence(fake: Callable) -> None:
    robot = fake("ros2", "--domain", str(next(DOMAINS)), "--lockstep", "--faults", "silent@0.3")
    report = _drive(robot.address, "direct", duration=1.5)
    assert report.failed and "no joint states on /joint_states" in report.ended


def test_wrong_names_topics_and_domains_are_one_sentence(fake: Callable, tmp_path: Path) -> None:
    panda = load("panda")
    robot = fake("ros2", "--domain", str(next(DOMAINS)))
    wiring = tmp_path / "wiring.toml"
    wiring.write_text('names = ["a", "b", "c", "d", "e", "f", "g"]\n')
    with pytest.raises(RobotStopped, match="has no joint 'a'"), Ros2(panda, robot.address, wiring=wiring) as driver:
        driver.start()
        driver.read()
    for text, words in (
        ('names = ["a"]', "7 different names"),
        ('controller_joints = ["a"]', "names of all joints"),
        ("rate = 1.0", "between 10 and 1000"),
        ("topic = 1", "unknown entry"),
    ):
        wiring.write_text(text)
        with pytest.raises(RetorqueError, match=words):
            Ros2(panda, robot.address, wiring=wiring)
    with pytest.raises(RetorqueError, match="a number such as 0"):
        Ros2(panda, "localhost")
    with pytest.raises(RetorqueError, match="unknown fault"):
        Ros2Robot(Ros2RobotSettings(faults=("fire@1",)))


def test_the_effort_controllers_own_order_is_kept(fake: Callable, tmp_path: Path) -> None:
    panda = load("panda")
    domain = str(next(DOMAINS))
    robot = fake("ros2", "--domain", domain)
    wiring = tmp_path / "wiring.toml"
    order = list(panda.joint_names)[::-1]
    wiring.write_text(f"controller_joints = {order}\n")
    with Ros2(panda, robot.address, wiring=wiring) as driver:
        written: list[list[float]] = []
        driver._writer = type("Writer", (), {"write": lambda self, message: written.append(message.data)})()
        driver._send(np.arange(7.0))
    assert written[0] == [6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]


def test_messages_bear_the_names_and_the_layout_of_ros_2() -> None:
    """The same bytes as rosbags' own encoder of the published message definitions gives."""
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    ours = joint_state(7.25, ["a", "bc"], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0])
    ours.header.frame_id = "world"
    theirs = store.deserialize_cdr(ours.serialize(), "sensor_msgs/msg/JointState")
    assert (theirs.header.stamp.sec, theirs.header.stamp.nanosec, theirs.header.frame_id) == (7, 250_000_000, "world")
    assert list(theirs.name) == ["a", "bc"] and theirs.effort.tolist() == [5.0, 6.0]
    sent = store.deserialize_cdr(efforts([1.5, -2.5]).serialize(), "std_msgs/msg/Float64MultiArray")
    assert sent.data.tolist() == [1.5, -2.5]
    assert JointState.__idl_typename__ == "sensor_msgs.msg.dds_.JointState_"
