"""The Franka driver through the real libfranka client, against the fake control box."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from retorque.cli.main import main
from retorque.logs.formats.mcap_log import read_recording
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.runtime.drive import DriveSettings, run_drive
from retorque.runtime.drive_report import DriveReport
from retorque.runtime.drivers import franka_protocol as wire
from retorque.runtime.drivers.driver import RobotStopped
from retorque.runtime.drivers.franka import Franka
from retorque.runtime.fakes.franka_box import FrankaBox, FrankaBoxSettings
from retorque.work.errors import RetorqueError

pytest.importorskip("pylibfranka", reason="these tests need the real client: pip install 'retorque[franka]'")


def _drive(host: str, adapter: str, duration: float = 3.0, **options: object) -> DriveReport:
    given = {"act": True, "motion": "sines", "learn": "inline", **options}
    return run_drive(
        DriveSettings(driver="franka", robot="panda", host=host, adapter=adapter, duration=duration, **given)
    )


def test_recursive_moves_the_arm_as_the_ideal_one_where_direct_is_degrees_off(
    fake: Callable, loopback: Callable[[], str], tmp_path: Path
) -> None:
    """The long version of this test, and the figures in real time, are in docs/hardware.md."""
    box = fake("franka", "--host", loopback(), "--lockstep", "--seed", "0")
    direct = _drive(box.address, "direct", record=tmp_path / "direct.mcap")
    learning = _drive(box.address, "recursive", record=tmp_path / "run.mcap")
    assert direct.error_deg is not None and learning.error_deg is not None
    assert direct.error_deg["last_second"] > 1.0
    assert learning.error_deg["last_second"] < 0.2
    assert direct.ended == learning.ended == "done" and learning.missed == 0
    assert learning.beliefs > 200 and learning.health.keys() <= {"RAMP", "SKIPPED", "SURPRISED"}
    said = box.end()
    assert said.count("finished by the client") == 2 and "0 commands missed" in said
    found = read_recording(tmp_path / "run.mcap")
    assert found.whole and len(found.ticks) == 3000 and found.about["driver"] == "franka"
    assert np.abs(np.diff(found.ticks["command"], axis=0)).max() < 2.0  # nothing jumped


def test_watching_sends_nothing_and_scores_what_the_robot_reports(
    fake: Callable, loopback: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    box = fake("franka", "--host", loopback())
    options = ["--driver", "franka", "--host", box.address, "--robot", "panda", "--duration", "0.3"]
    assert main(["drive", *options, "--learn", "inline"]) == 0
    said = capsys.readouterr().out
    assert "300 ticks; ended: done" in said and "has not met an arm" in said
    assert "0 states in motion" in box.end()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("reflex@0.2", "joint_reflex.*acknowledge"),
        ("user-stop@0.2", "User Stop.*pull the user stop"),
        ("silent@0.2", "Timeout.*cable"),
        ("hang-up@0.2", "the arm has stopped"),
    ],
)
def test_whatever_stops_the_arm_ends_in_one_sentence(
    fault: str, words: str, fake: Callable, loopback: Callable[[], str], capsys: pytest.CaptureFixture[str]
) -> None:
    box = fake("franka", "--host", loopback(), "--lockstep", "--faults", fault)
    options = ["--driver", "franka", "--host", box.address, "--robot", "panda", "--duration", "1", "--act"]
    assert main(["drive", *options, "--learn", "inline"]) == 2
    said = capsys.readouterr()
    assert "ticks; ended: the arm has stopped" in said.out
    error = [line for line in said.err.splitlines() if line.startswith("retorque: ")]
    assert len(error) == 1 and "Traceback" not in said.err
    import re

    assert re.search(words, error[0], re.DOTALL)


def test_lost_repeated_and_broken_states_become_codes_and_no_jumps(
    fake: Callable, loopback: Callable[[], str], tmp_path: Path
) -> None:
    box = fake("franka", "--host", loopback(), "--lockstep", "--loss", "0.02", "--repeat", "0.1", "--faults", "nan@0.4")
    report = _drive(box.address, "recursive", 1.5, record=tmp_path / "run.mcap")
    assert report.ended == "done"
    assert report.missed > 5 and report.health["GAP"] > 5 and report.health["BAD_STATE"] == 1
    assert report.health.get("BAD_CLOCK", 0) == 0  # libfranka itself drops what is repeated or late
    command = read_recording(tmp_path / "run.mcap").ticks["command"]
    assert np.isfinite(command).all()
    assert "finished by the client" in box.end()


def test_a_wrong_host_or_another_version_or_a_poor_urdf_is_one_sentence(
    fake: Callable, loopback: Callable[[], str], panda: Robot
) -> None:
    with pytest.raises(RobotStopped, match=r"no Franka arm at.*refused.*check --host"):
        Franka(panda, loopback())
    with pytest.raises(RobotStopped, match=r"no Franka arm at 'nowhere.invalid'.*check --host"):
        Franka(panda, "nowhere.invalid")
    old = fake("franka", "--host", loopback(), "--version", "9")
    with pytest.raises(RobotStopped, match=r"server version: 9, library version: 10.*install the libfranka"):
        Franka(panda, old.address)
    poor = fake("franka", "--host", loopback(), "--plain-urdf")
    with pytest.raises(RobotStopped, match=r"position_based_velocity_limits.*update the arm"):
        Franka(panda, poor.address)
    with pytest.raises(RetorqueError, match=r"7 joints"):
        Franka(load("ur10e"), old.address)


def test_a_start_far_from_the_motion_is_refused_before_anything_is_sent(
    fake: Callable, loopback: Callable[[], str], tmp_path: Path
) -> None:
    box = fake("franka", "--host", loopback(), "--lockstep")
    motion = tmp_path / "motion.csv"
    head = ",".join(["time", *(f"q{k}" for k in range(1, 8)), *(f"qd{k}" for k in range(1, 8))])
    start = load("panda").home + np.array([0.0, 0.5, 0, 0, 0, 0, 0])
    rows = [",".join(map(str, [t, *start, *np.zeros(7)])) for t in (0.0, 1.0)]
    motion.write_text("\n".join([head, *rows]) + "\n")
    with pytest.raises(RetorqueError, match=r"begins 0.50 rad from where joint2 is"):
        _drive(box.address, "direct", motion=str(motion))
    assert "0 states in motion" in box.end()


def test_what_is_sent_is_finite_within_limits_and_changes_slowly(
    fake: Callable, loopback: Callable[[], str], panda: Robot
) -> None:
    box = fake("franka", "--host", loopback(), "--lockstep", "--seed", "-1")
    with Franka(panda, box.address) as arm:
        arm.start(act=True)
        rng = np.random.default_rng(0)
        torques = []
        for k in range(60):
            state = arm.read()
            assert np.allclose(state.torque - arm._gravity, arm._sent if k else 0.0, atol=1e-4)
            wanted = arm._held() + rng.normal(0.0, 5.0, 7)
            if k % 7 == 3:
                wanted[2] = np.nan
            arm.write(Command(torque=wanted))
            torques.append(arm._sent)
        assert arm.refused == 9
        assert np.abs(np.diff(torques, axis=0)).max() <= 0.99 + 1e-12
        assert np.isfinite(torques).all()
    arm.stop()  # once more does no harm
    assert "reflex" not in box.end()


def test_the_box_guards_the_arm_against_a_client_that_jumps_or_falls_silent(
    fake: Callable, loopback: Callable[[], str]
) -> None:
    import pylibfranka

    box = fake("franka", "--host", loopback())
    for torque, count, words in ((5.0, 1, "controller_torque_discontinuity"), (0.0, 0, "communication_constraints")):
        arm = pylibfranka.Robot(box.address, pylibfranka.RealtimeConfig.kIgnore)
        arm.automatic_error_recovery()
        control = arm.start_torque_control()
        with pytest.raises(pylibfranka.ControlException, match=words):
            control.readOnce()
            for _ in range(count):
                control.writeOnce(pylibfranka.Torques([torque] * 7))
            for _ in range(3000):
                control.readOnce()
        del control, arm
    assert "reflex (error 25)" in box.end()


@pytest.mark.slow  # the client's own clock runs on: a busy machine cannot hold it
def test_the_box_survives_whoever_is_no_libfranka(fake: Callable, loopback: Callable[[], str]) -> None:
    box = fake("franka", "--host", loopback())
    for noise in (b"GET / HTTP/1.0\r\n\r\n", b"\0" * 7, wire.message(1, 0, b"\0" * 8), b"\xff" * 40):
        with socket.create_connection((box.address, wire.PORT)) as connection:
            connection.sendall(noise)
    with Franka(load("panda"), box.address) as arm:
        arm.start()
        assert np.allclose(arm.read().position, load("panda").home, atol=1e-6)
    box.end()


def test_settings_of_the_box_are_checked(loopback: Callable[[], str]) -> None:
    with pytest.raises(RetorqueError, match=r"this machine only"):
        FrankaBox(FrankaBoxSettings(host="0.0.0.0"))
    with pytest.raises(RetorqueError, match=r"unknown fault 'reflexx'; did you mean 'reflex'"):
        FrankaBox(FrankaBoxSettings(host=loopback(), faults=("reflexx@1",)))
    with pytest.raises(RetorqueError, match=r"NAME@SECONDS"):
        FrankaBox(FrankaBoxSettings(host=loopback(), faults=("reflex",)))
    with pytest.raises(RetorqueError, match=r"7 joints"):
        FrankaBox(FrankaBoxSettings(host=loopback(), robot="ur10e"))


def test_a_report_is_written_as_json(fake: Callable, loopback: Callable[[], str], tmp_path: Path) -> None:
    box = fake("franka", "--host", loopback(), "--lockstep")
    options = ["--driver", "franka", "--host", box.address, "--robot", "panda", "--adapter", "direct"]
    file = tmp_path / "report.json"
    code = main(["drive", *options, "--act", "--shadow", "--duration", "0.3", "--json", str(file)])
    assert code == 0
    report = json.loads(file.read_text())["report"]
    assert report["ticks"] == 300 and report["settings"]["shadow"] and "key" not in report["settings"]
    assert report["error_deg"]["all"] > 0.0 and report["microseconds"]["driver_p50"] > 0.0
