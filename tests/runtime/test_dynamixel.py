"""The Dynamixel driver through the maker's SDK, against fake servos on a pseudo-terminal."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from retorque.cli.main import main
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.robots.motor import load_motor
from retorque.runtime.drive import DriveSettings, run_drive
from retorque.runtime.drivers import dynamixel_protocol as wire
from retorque.runtime.drivers.driver import RobotStopped
from retorque.runtime.drivers.dynamixel import Dynamixel, DynamixelWiring
from retorque.runtime.drivers.dynamixel_motors import servo_motors, with_rotors
from retorque.runtime.drivers.dynamixel_protocol import Address, Instruction
from retorque.runtime.drivers.wiring import read_wiring
from retorque.runtime.fakes.dynamixel_bus import DynamixelBus, DynamixelBusSettings
from retorque.work.errors import RetorqueError

sdk = pytest.importorskip("dynamixel_sdk", reason="these tests need the SDK: pip install 'retorque[dynamixel]'")

WAITS = 'stamps = "count"\ntimeout = 2.0\n'
"""Wiring for fakes in lockstep: slow machines lose nothing."""


@pytest.fixture
def waits(tmp_path: Path) -> Path:
    path = tmp_path / "wiring.toml"
    path.write_text(WAITS)
    return path


@pytest.fixture
def bus() -> Iterator[Callable[..., DynamixelBus]]:
    """Buses in a thread of this process: the SDK gives way whenever it reads."""
    over, threads = threading.Event(), []

    def start(**settings: object) -> DynamixelBus:
        made = DynamixelBus(DynamixelBusSettings(**{"lockstep": 0.005, **settings}))
        threads.append(threading.Thread(target=made.serve, args=(lambda: not over.is_set(),)))
        threads[-1].start()
        return made

    yield start
    over.set()
    for thread in threads:
        thread.join()


def test_packets_are_those_of_the_sdk() -> None:
    """Checksum and byte stuffing against the SDK's own, over random content with many header bytes."""
    theirs = sdk.PacketHandler(2.0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        content = rng.choice([0xFF, 0xFF, 0xFD, 0x00, 0x55], size=int(rng.integers(0, 40))).astype(np.uint8).tobytes()
        ours = wire.packet(7, Instruction.WRITE, content)
        assert theirs.updateCRC(0, list(ours), len(ours) - 2) == int.from_bytes(ours[-2:], "little")
        noise = bytes(rng.integers(0, 255, 5, dtype=np.uint8))
        buffer = bytearray(noise + ours[:9])
        assert list(wire.packets(buffer)) == []
        buffer += ours[9:]
        assert list(wire.packets(buffer)) == [(7, Instruction.WRITE, content)]
    broken = bytearray(ours)
    broken[8] ^= 1
    assert list(wire.packets(broken)) == []


@pytest.mark.slow  # the client's own clock runs on: a busy machine cannot hold it
def test_recursive_beats_direct_on_sixteen_servos(fake: Callable, waits: Path) -> None:
    errors = {}
    for adapter in ("direct", "recursive"):
        servos = fake("dynamixel", "--seed", "0", "--lockstep", "0.005")
        report = run_drive(
            DriveSettings(
                driver="dynamixel",
                robot="leap_hand",
                host=servos.address,
                wiring=waits,
                adapter=adapter,
                act=True,
                motion="sines",
                duration=2.0,
                learn="inline",
            )
        )
        assert report.ended == "done" and report.ticks == 400 and report.error_deg is not None
        errors[adapter] = report.error_deg["last_second"]
        assert "reads of all servos" in servos.end()
    assert errors["direct"] > 1.0 and errors["recursive"] < 0.2 * errors["direct"]


def test_a_run_begins_with_what_the_last_one_had_learnt(fake: Callable, waits: Path, tmp_path: Path) -> None:
    errors, learnt = [], tmp_path / "learnt.safetensors"
    for _ in range(2):
        servos = fake("dynamixel", "--seed", "0", "--lockstep", "0.005")
        settings = DriveSettings(
            driver="dynamixel", robot="leap_hand", host=servos.address, wiring=waits, learnt=learnt
        )
        settings.adapter, settings.act, settings.motion, settings.duration = "recursive", True, "sines", 1.0
        settings.learn = "inline"
        report = run_drive(settings)
        assert report.ended == "done" and report.error_deg is not None and learnt.exists()
        errors.append(report.error_deg["all"])
    assert errors[1] < 0.8 * errors[0]
    settings.learn = "process"
    with pytest.raises(RetorqueError, match="--learnt needs --learn inline"):
        run_drive(settings)
    servos.end()


def test_what_the_servos_say_is_in_our_order_signs_and_units(bus: Callable[..., DynamixelBus], tmp_path: Path) -> None:
    servos = bus(seed=-1, first_id=20)
    n = servos.robot.n
    order = np.random.default_rng(1).permutation(n)
    sign = np.where(np.arange(n) % 2, -1.0, 1.0)
    path = tmp_path / "wiring.toml"
    path.write_text(
        WAITS
        + f"ids = {[int(20 + k) for k in order]}\nsigns = {sign.tolist()}\nzeros = {[3.0] * n}\n"
        + f"torque_constants = {[0.333] * n}\nat_end = 'limp'\n"
    )
    robot = load("leap_hand")
    with Dynamixel(robot, servos.path, wiring=path) as hand:
        hand.start()
        state = hand.read()
        expected = sign * (servos.target.position[order] + np.pi - 3.0)
        assert np.allclose(state.position, expected, atol=wire.POSITION_UNIT)
        assert state.motor is not None and state.motor.current is not None
        hand.write(Command(torque=np.full(n, 0.1)))  # nothing is sent yet
        assert not any(servos._get(k, Address.GOAL_CURRENT, 2) for k in range(n))
        hand.start(act=True)
        hand.read()
        torque = np.linspace(-0.05, 0.05, n)
        hand.write(Command(torque=torque))
        hand.read()
        told = np.array([servos._get(int(k), Address.GOAL_CURRENT, 2) for k in order])
        assert np.allclose(sign * told * 0.001 * 0.333, torque, atol=0.0005 * 0.333 + 1e-12)
        assert np.allclose(hand.read().torque, torque, atol=0.0005 * 0.333 + 1e-12)
    assert not any(table[Address.TORQUE_ENABLE] for table in servos.tables)


def test_a_killed_process_stops_the_servos_by_their_own_watchdog(bus: Callable[..., DynamixelBus], waits: Path) -> None:
    servos = bus(seed=-1)
    hand = Dynamixel(load("leap_hand"), servos.path, wiring=waits)
    hand.start(act=True)
    for _ in range(3):
        hand.read()
        hand.write(Command(torque=np.full(16, 0.02)))
    assert all(table[Address.WATCHDOG] == 5 for table in servos.tables)
    hand.read()  # the answer says that the last torque has been taken
    hand._port.closePort()  # as the system does for a process that is killed
    begin = servos.target.time
    while servos.target.time < begin + 0.15:
        servos._step()
    assert all(table[Address.WATCHDOG] == 255 for table in servos.tables) and not servos._current.any()


def test_at_the_end_the_servos_hold_where_they_are(bus: Callable[..., DynamixelBus], waits: Path) -> None:
    servos = bus(seed=0)
    with Dynamixel(load("leap_hand"), servos.path, wiring=waits) as hand:
        hand.start(act=True)
        for _ in range(20):
            hand.write(Command(torque=0.0 * hand.read().position))
    where = servos.target.position.copy()
    assert all(table[Address.OPERATING_MODE] == wire.POSITION_MODE for table in servos.tables)
    for _ in range(400):
        servos._step()
    assert np.abs(servos.target.position - where).max() < 0.2
    assert np.abs(servos.target.velocity).max() < 0.5
    hand.stop()  # once more does no harm


@pytest.mark.parametrize("old_firmware", [False, True])
def test_corrupt_packets_become_codes_and_the_run_goes_on(old_firmware: bool, fake: Callable, tmp_path: Path) -> None:
    wiring = tmp_path / "wiring.toml"
    wiring.write_text('stamps = "count"\ntimeout = 0.1\n')
    old = ["--old-firmware"] if old_firmware else []
    servos = fake("dynamixel", "--lockstep", "0.005", "--corrupt", "0.01", *old)
    settings = DriveSettings(
        driver="dynamixel", robot="leap_hand", host=servos.address, wiring=wiring, adapter="direct"
    )
    settings.act, settings.duration, settings.motion = True, 1.0, "sines"
    report = run_drive(settings)
    assert report.ended == "done" and report.health["BAD_STATE"] >= 1 and report.health["BAD_STATE"] < 120


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("silent@0.2", "servo 9 fell silent; check power and cable"),
        ("noise@0.2", "cannot be read|fell silent"),
    ],
)
def test_a_silent_servo_or_a_dead_bus_ends_in_one_sentence(
    fault: str, words: str, fake: Callable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wiring = tmp_path / "wiring.toml"
    wiring.write_text('stamps = "count"\ntimeout = 0.2\n')
    servos = fake("dynamixel", "--lockstep", "0.005", "--faults", fault)
    options = ["--driver", "dynamixel", "--robot", "leap_hand", "--host", servos.address, "--wiring", str(wiring)]
    assert main(["drive", *options, "--adapter", "direct", "--act", "--duration", "2"]) == 2
    said = capsys.readouterr()
    assert re.search(words, said.err) and "Traceback" not in said.err and "bad_state" in said.out


def test_an_overheated_servo_refuses_to_start(bus: Callable[..., DynamixelBus], waits: Path) -> None:
    servos = bus(faults=("overheat@0.0",))
    with (
        pytest.raises(RobotStopped, match=r"servo 9 reports a hardware error"),
        Dynamixel(load("leap_hand"), servos.path, wiring=waits) as hand,
    ):
        hand.read()
        hand.start(act=True)


def test_wrong_ports_ids_and_wirings_are_one_sentence(
    bus: Callable[..., DynamixelBus], tmp_path: Path, waits: Path
) -> None:
    hand = load("leap_hand")
    with pytest.raises(RobotStopped, match=r"no servos at '/dev/nothing'"):
        Dynamixel(hand, "/dev/nothing")
    servos = bus(first_id=2)
    quick = tmp_path / "quick.toml"
    quick.write_text("timeout = 0.1\n")
    with pytest.raises(RobotStopped, match=r"no answer from servo 1 at"):
        Dynamixel(hand, servos.path, wiring=quick)
    for text, words in (
        ("idz = [1]", "did you mean 'ids'"),
        ("ids = [1, 2]", "16 different numbers"),
        (f"ids = {[1] * 16}", "16 different numbers"),
        (f"signs = {[2.0] * 16}", "1 or -1"),
        ("zeros = [0.0]", "16 finite numbers"),
        ("rate = 1.0", "between 10 and 1000"),
        ("motor = 'XL320'", "unknown motor"),
        (f"torque_constants = {[-1.0] * 16}", "above 0"),
        ("ids = [", "cannot be read"),
    ):
        quick.write_text(text)
        with pytest.raises(RetorqueError, match=words):
            Dynamixel(hand, servos.path, wiring=quick)
    with pytest.raises(RetorqueError, match="names no motor"):
        Dynamixel(load("panda"), servos.path)
    assert read_wiring(None, DynamixelWiring) == DynamixelWiring()


def test_rotors_are_added_where_a_card_has_none() -> None:
    hand = load("leap_hand")
    known = with_rotors(hand, servo_motors(hand))
    assert np.all(known.armature == load_motor("XC330-M288").armature) and not hand.armature.any()
    assert np.array_equal(with_rotors(known, servo_motors(hand, "XM430-W210")).armature, known.armature)


def test_a_slow_joint_moves_between_the_encoders_steps(bus: Callable[..., DynamixelBus], waits: Path) -> None:
    servos = bus(seed=-1)
    with Dynamixel(load("leap_hand"), servos.path, wiring=waits) as hand:
        step = wire.POSITION_UNIT
        seen = [hand._between(np.full(16, step * round(k / 12)), np.full(16, step / 12 / 0.005)) for k in range(60)]
        seen = np.array(seen)[:, 0]
        assert np.all(np.diff(seen) > 0.0)
        assert np.abs(seen - step * np.arange(60) / 12).max() <= 0.51 * step
        stuck = [hand._between(np.zeros(16), np.full(16, 1.0)) for _ in range(8)]
        assert np.array_equal(stuck[-1], stuck[-2])  # one that has stopped reporting still looks frozen


def test_a_bus_survives_noise_and_unknown_instructions(bus: Callable[..., DynamixelBus]) -> None:
    servos = bus()
    end = os.open(servos.path, os.O_RDWR | os.O_NOCTTY)
    try:
        os.write(
            end, bytes(range(256)) + wire.packet(1, 0x77, b"") + wire.packet(1, Instruction.READ, b"\xff\x00\x09\x00")
        )
        buffer, answers = bytearray(), []
        while len(answers) < 2:
            buffer += os.read(end, 4096)
            answers += wire.packets(buffer)
        assert [(servo, content[0]) for servo, _, content in answers] == [(1, 2), (1, 4)]
    finally:
        os.close(end)
    with pytest.raises(RetorqueError, match="unknown fault"):
        DynamixelBus(DynamixelBusSettings(faults=("fire@1",)))
    with pytest.raises(RetorqueError, match="unknown motor"):
        DynamixelBus(DynamixelBusSettings(motor="XL320"))
