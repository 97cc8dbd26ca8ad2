"""The UR driver through the real ur_rtde client, against the fake controller."""

from __future__ import annotations

import itertools
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from retorque.robots.library import load
from retorque.runtime.drive import DriveSettings, run_drive
from retorque.runtime.drivers import ur_protocol as wire
from retorque.runtime.drivers.driver import Driver, RobotStopped
from retorque.runtime.drivers.ur import UniversalRobot
from retorque.runtime.fakes.ur_controller import UrController, UrControllerSettings
from retorque.work.errors import RetorqueError

pytest.importorskip("rtde_control", reason="these tests need the real client: pip install 'retorque[ur]'")


def test_recursive_moves_the_arm_as_the_ideal_one_where_direct_is_degrees_off(
    fake: Callable, loopback: Callable[[], str]
) -> None:
    errors = {}
    for adapter in ("direct", "recursive"):
        arm = fake("ur", "--host", loopback(), "--lockstep")
        report = run_drive(
            DriveSettings(
                driver="ur",
                robot="ur10e",
                host=arm.address,
                adapter=adapter,
                act=True,
                motion="sines",
                duration=3.0,
                learn="inline",
            )
        )
        assert report.ended == "done" and report.error_deg is not None
        errors[adapter] = report.error_deg["last_second"]
        assert "1500 torques taken" in arm.end()
    assert errors["direct"] > 1.0 and errors["recursive"] < 0.1 * errors["direct"]


def test_watching_sends_nothing(fake: Callable, loopback: Callable[[], str]) -> None:
    arm = fake("ur", "--host", loopback(), "--polyscope", "5.11.0")
    robot = load("ur10e")
    with UniversalRobot(robot, arm.address) as driver:
        driver.start()
        stamps = []
        for _ in range(50):
            state = driver.read()
            stamps.append(state.time)
        assert np.all(np.diff(stamps) > 0.0) and np.allclose(state.position, robot.home, atol=1e-9)
        assert np.allclose(state.torque, driver._body.gravity(state.position), atol=1e-9)
        with pytest.raises(RobotStopped, match=r"PolyScope 5.11 takes no direct torque.*5.26"):
            driver.start(act=True)
    assert "0 torques taken" in arm.end()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("protective@0.2", "protective stop; clear the cause"),
        ("emergency@0.2", "emergency stop; release it"),
        ("program@0.2", "program (no longer runs|has ended)"),
        ("silent@0.2", "fallen silent|no longer runs"),
    ],
)
def test_whatever_stops_the_arm_ends_in_one_sentence(
    fault: str, words: str, fake: Callable, loopback: Callable[[], str]
) -> None:
    """In a process of its own: ur_rtde cannot be taken down once its robot has gone."""
    arm = fake("ur", "--host", loopback(), "--lockstep", "--faults", fault)
    options = ["--driver", "ur", "--host", arm.address, "--robot", "ur10e", "--duration", "2", "--act"]
    command = [sys.executable, "-m", "retorque", "drive", *options, "--adapter", "direct"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    error = [line for line in done.stderr.splitlines() if line.startswith("retorque: ")]
    said = done.stdout + done.stderr
    assert len(error) == 1 and re.search(words, error[0]) and "Traceback" not in done.stderr, said


class Torn:
    """Reports as ur_rtde hands them over: a field at a time, whoever looks meanwhile.

    Args:
        begun: fields of the first report in which the arm has stopped that are there already.
        later: reports before that one.
        looks: in the time that a field takes.
    """

    def __init__(self, begun: int, later: int, looks: int):
        self._fields, self._looks = Fraction(begun - 3 * later), looks

    def _look(self, field: int) -> int:
        """The report that a field is of: 0 for the first after the stop."""
        newest = (int(self._fields // 1) - field - 1) // 3
        self._fields += Fraction(1, self._looks)
        return newest

    def getTimestamp(self) -> float:
        return 1.0 + 0.002 * self._look(0)

    def getRobotStatus(self) -> int:
        return wire.POWER_ON | (wire.RUNNING if self._look(1) < 0 else 0)

    def getSafetyStatusBits(self) -> int:
        return wire.NORMAL if self._look(2) < 0 else wire.EMERGENCY

    def isConnected(self) -> bool:
        return True

    def directTorque(self, *_: object) -> bool:
        return False


@pytest.mark.parametrize("later", [0, 1, 20])
@pytest.mark.parametrize("begun", [0, 1, 2, 3])
def test_the_cause_of_a_stop_is_found_in_reports_that_come_in_pieces(
    begun: int, later: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    before = (0.0, 0.998, 1.0)  # the report that was seen last: long ago, the last before the stop, that of it
    for stamp, looks, refused in itertools.product(before, (1, 2, 5), (False, True)):
        arm = UniversalRobot.__new__(UniversalRobot)
        Driver.__init__(arm, load("ur10e"))
        arm.acting, arm._stamp = True, stamp
        arm._receive = arm._control = Torn(begun, later, looks)
        with pytest.raises(RobotStopped, match="emergency stop"):
            if refused:
                arm._send(np.zeros(6))
            for _ in range(100):
                arm._check()
                arm._await()


def test_wrong_hosts_and_robots_are_one_sentence(fake: Callable, loopback: Callable[[], str]) -> None:
    with pytest.raises(RobotStopped, match=r"no UR controller at.*check --host"):
        UniversalRobot(load("ur10e"), loopback())
    with pytest.raises(RetorqueError, match="6 joints"):
        UniversalRobot(load("panda"), loopback())
    for settings, words in (
        (UrControllerSettings(host="0.0.0.0"), "this machine only"),
        (UrControllerSettings(host=loopback(), robot="panda"), "6 joints"),
        (UrControllerSettings(host=loopback(), faults=("fire@1",)), "unknown fault"),
    ):
        with pytest.raises(RetorqueError, match=words):
            UrController(settings)


def test_the_controller_survives_whoever_is_no_client(fake: Callable, loopback: Callable[[], str]) -> None:
    arm = fake("ur", "--host", loopback())
    for port, noise in (
        (wire.EXCHANGE, b"\0\0\0\0"),
        (wire.EXCHANGE, wire.package(wire.DATA, b"\x09" + b"\0" * 8)),
        (wire.SCRIPT, b"nothing"),
        (wire.DASHBOARD, b"make coffee\n"),
    ):
        with socket.create_connection((arm.address, port)) as connection:
            connection.sendall(noise)
    with UniversalRobot(load("ur10e"), arm.address) as driver:
        driver.start()
        assert np.isfinite(driver.read().position).all()
    arm.end()


def test_packages_come_out_whole_and_in_order() -> None:
    data = wire.package(wire.VERSION, b"\0\2") + wire.package(wire.START, b"")
    buffer = bytearray()
    found = []
    for byte in data:
        buffer.append(byte)
        found += list(wire.packages(buffer))
    assert found == [(wire.VERSION, b"\0\2"), (wire.START, b"")]
    assert wire.recipe_layout(["timestamp", "actual_q", "robot_mode", "input_double_register_3"]).size == 8 + 48 + 4 + 8
