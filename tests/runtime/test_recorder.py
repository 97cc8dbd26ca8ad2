"""The recorder: nothing is lost when a process is killed, and a damaged file is read as far as it goes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from waiting import within

from retorque.adapt import make
from retorque.identify.commands import LogOptions, open_log
from retorque.logs.formats.mcap_log import RobotRecording, parts_of, read_recording
from retorque.logs.motion import Motion
from retorque.loop.loop import Loop, Tick
from retorque.loop.supervisor import Supervisor
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.runtime.recording.recorder import Recorder
from retorque.runtime.recording.recording_export import write_bag, write_parquet
from retorque.runtime.recording.replay import ReplaySettings, replay, replay_recording
from retorque.work.errors import RetorqueError

pytest.importorskip("mcap", reason="recordings need mcap: pip install 'retorque[record]'")


def _recorded(loop: Loop, path: Path, ticks: int) -> list[Tick]:
    supervisor = loop.adapter
    assert isinstance(supervisor, Supervisor)
    kept = []
    with Recorder(path, supervisor.robot, loop.plant.timestep, {"adapter": "recursive"}) as recorder:
        for k in range(ticks):
            kept.append(loop.tick())
            recorder.add(kept[-1], int(supervisor.health), k // 10, supervisor.correction)
    assert recorder.lost == 0 and not recorder.failure
    return kept


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[RobotRecording, list[Tick]]:
    """Six seconds of a Panda under `recursive`."""
    from retorque.control.joint_impedance import JointImpedance
    from retorque.physics.default_profile import profile_of
    from retorque.physics.parameters import Parameters
    from retorque.runtime.drive_motions import make_motion
    from retorque.simulate.target import Target

    panda = load("panda")
    profile = profile_of(panda)
    assert profile.tracking_damping is not None
    target = Target(panda, Parameters.sample(panda, profile, 1, 5)[0], threads=1)
    motion = make_motion("sines", panda, panda.home, 6.0, 3, 1.0)
    controller = JointImpedance(panda, profile.tracking_stiffness, profile.tracking_damping)
    loop = Loop(target, motion, controller, Supervisor(make("recursive", panda)))
    path = tmp_path_factory.mktemp("recording") / "run.mcap"
    ticks = _recorded(loop, path, 3000)
    return read_recording(path), ticks


def test_every_tick_comes_back_as_it_was(recording: tuple[RobotRecording, list[Tick]], panda: Robot) -> None:
    found, ticks = recording
    assert found.whole and found.lost == 0 and len(found.ticks) == len(ticks)
    assert (found.robot, found.joints, found.timestep) == ("panda", panda.joint_names, 1e-3)
    assert found.about["adapter"] == "recursive" and "numpy" in found.about["versions"]
    for name, of in (
        ("position", lambda tick: tick.state.position),
        ("velocity", lambda tick: tick.state.velocity),
        ("torque", lambda tick: tick.state.torque),
        ("nominal", lambda tick: tick.nominal.torque),
        ("command", lambda tick: tick.command.torque),
    ):
        assert np.array_equal(found.ticks[name], np.array([of(tick) for tick in ticks])), name
    assert np.array_equal(found.ticks["time"], [tick.state.time for tick in ticks])
    assert np.array_equal(found.ticks["belief"], np.arange(3000) // 10)
    assert np.all(np.diff(found.ticks["stamp"].astype(np.int64)) > 0) and np.any(found.ticks["health"])


def test_other_programs_can_read_the_file(recording: tuple[RobotRecording, list[Tick]]) -> None:
    """The schema inside is enough: the indexed reader of `mcap`, and rosbags' own decoder, give the same numbers."""
    from mcap.reader import make_reader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    found, _ = recording
    store = get_typestore(Stores.EMPTY)
    with open(found.path, "rb") as file:
        messages = list(make_reader(file, validate_crcs=True).iter_messages())
    assert len(messages) == len(found.ticks)
    schema, channel, _ = messages[0]
    assert schema is not None and (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr")
    store.register(get_types_from_msg(schema.data.decode(), schema.name))
    for k in (0, 1234, 2999):
        message = store.deserialize_cdr(messages[k][2].data, schema.name)
        assert message.sequence == k and message.time == found.ticks["time"][k]
        assert np.array_equal(message.position, found.ticks["position"][k])
        assert np.array_equal(message.command, found.ticks["command"][k])
        assert message.health == found.ticks["health"][k]


def test_replaying_the_adapter_that_ran_gives_its_own_corrections(recording: tuple[RobotRecording, list[Tick]]) -> None:
    found, _ = recording
    panda = load("panda")
    report, correction = replay_recording(found, panda, "recursive")
    assert np.abs(correction - found.ticks["correction"]).max() < 1e-12
    assert sum(report.corrected) < 0.2 * sum(report.without)
    direct, nothing = replay_recording(found, panda, "direct")
    assert not nothing.any() and direct.corrected == direct.without
    assert direct.without == pytest.approx(report.without)  # what went missing does not depend on who watches


def test_identify_reads_a_recording_and_its_parquet_alike(
    recording: tuple[RobotRecording, list[Tick]], tmp_path: Path
) -> None:
    found, _ = recording
    panda = load("panda")
    parquet = write_parquet(found, tmp_path / "run.parquet")
    motions = []
    for path in (found.path, parquet):
        motion = open_log(LogOptions(robot="panda"), panda, (path,), ":").load()
        assert isinstance(motion, Motion) and len(motion) > 100
        motions.append(motion)
    assert np.array_equal(motions[0].torque, motions[1].torque)
    for other in ("iiwa14", "ur10e"):  # the first has joints of the same number and names
        with pytest.raises(RetorqueError, match=r"recording of 'panda'.*not of"):
            open_log(LogOptions(robot=other), load(other), (found.path,), ":").load()


def test_a_ros_2_bag_holds_the_joint_states(recording: tuple[RobotRecording, list[Tick]], tmp_path: Path) -> None:
    from rosbags.highlevel import AnyReader

    found, _ = recording
    write_bag(found, tmp_path / "bag")
    with AnyReader([tmp_path / "bag"]) as reader:
        rows = {
            topic: [
                reader.deserialize(data, connection.msgtype)
                for connection, _, data in reader.messages()
                if connection.topic == topic
            ]
            for topic in ("/joint_states", "/command", "/health")
        }
    assert [len(found) for found in rows.values()] == [3000] * 3
    assert list(rows["/joint_states"][7].name) == list(found.joints)
    assert np.array_equal(rows["/joint_states"][7].effort, found.ticks["torque"][7])
    assert np.array_equal(rows["/command"][2999].effort, found.ticks["command"][2999])
    with pytest.raises(RetorqueError, match=r"there already"):
        replay(ReplaySettings(recording=found.path, ros2=tmp_path / "bag"))


PROGRAM = """
import os, signal, sys, time
import numpy as np
from retorque.loop.loop import Tick
from retorque.control.action import Action
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.robots.state import State
from retorque.runtime.recording.recorder import Recorder
zeros = np.zeros(7)
recorder = Recorder(sys.argv[1], load("panda"), 1e-3)
for k in range(1500):
    command = Command(torque=zeros)
    recorder.add(Tick(State(k * 1e-3, zeros, zeros, zeros), Action(), command, command), belief=k)
    time.sleep(2e-4)
    if k == 1234:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killing_the_control_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "killed.mcap"
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert within(60.0, lambda: read_recording(path).whole)  # the writer goes on by itself
    found = read_recording(path)
    assert found.ticks["belief"].tolist() == list(range(1235))


def test_killing_the_writer_loses_nothing_either_and_the_loop_goes_on(
    tmp_path: Path, simulated: Callable[..., Loop], panda: Robot
) -> None:
    loop = simulated(Supervisor(make("direct", panda)))
    path = tmp_path / "run.mcap"
    with Recorder(path, panda, 1e-3) as recorder:
        for k in range(2000):
            recorder.add(loop.tick())
            if k == 700:  # this loop outruns a robot's clock, and the writer too: 150 ticks of a robot are 0.15 s
                assert within(60.0, lambda: len(read_recording_of_one_file(path)) >= 700 - 150)
                os.kill(recorder.writer, signal.SIGKILL)
    assert recorder.restarts == 1 and len(parts_of(path)) == 2
    first = len(read_recording_of_one_file(path))
    assert 700 - 150 <= first <= 701  # what the killed writer's own file has
    found = read_recording(path)
    assert found.lost == 0 and len(found.ticks) == 2000 and not found.whole


def test_a_writer_that_is_killed_while_it_finishes_loses_nothing(
    tmp_path: Path, simulated: Callable[..., Loop], panda: Robot
) -> None:
    loop = simulated(Supervisor(make("direct", panda)))
    path = tmp_path / "run.mcap"
    with Recorder(path, panda, 1e-3) as recorder:
        os.kill(recorder.writer, signal.SIGSTOP)
        for _ in range(300):
            recorder.add(loop.tick())
        killer = threading.Timer(0.3, os.kill, (recorder.writer, signal.SIGKILL))
        killer.start()
    killer.join()
    found = read_recording(path)
    assert recorder.restarts == 1 and found.lost == 0 and len(found.ticks) == 300


def read_recording_of_one_file(path: Path) -> np.ndarray:
    """The ticks in the first file alone."""
    alone = path.with_name("alone.mcap")
    alone.write_bytes(path.read_bytes())
    return read_recording(alone).ticks


@pytest.mark.parametrize("keep", [0.05, 0.5, 0.93, 0.999])
def test_a_truncated_recording_is_read_as_far_as_it_goes(
    keep: float, recording: tuple[RobotRecording, list[Tick]], tmp_path: Path
) -> None:
    data = recording[0].path.read_bytes()
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(data[: int(keep * len(data))])
    found = read_recording(cut)
    assert not found.whole and len(found.ticks) >= max(0, int(keep * 2900) - 200)
    assert np.array_equal(found.ticks["sequence"], np.arange(len(found.ticks)))


def test_a_damaged_piece_is_left_out_and_counted(recording: tuple[RobotRecording, list[Tick]], tmp_path: Path) -> None:
    data = bytearray(recording[0].path.read_bytes())
    for k in range(40):
        data[len(data) // 2 + k] ^= 0x5A
    bad = tmp_path / "bad.mcap"
    bad.write_bytes(data)
    found = read_recording(bad)
    assert found.damaged == 1 and 50 <= found.lost <= 150 and not found.whole
    report, correction = replay_recording(found, load("panda"), "recursive")
    assert report.health["GAP"] == 1 and np.isfinite(correction).all()


@pytest.mark.parametrize("content", [b"", b"no MCAP at all", b"\x89MCAP0\r\n" + b"\xff" * 50])
def test_what_is_no_recording_is_refused_in_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    path.write_bytes(content)
    with pytest.raises(RetorqueError, match=r"MCAP|recording"):
        read_recording(path)
    with pytest.raises(RetorqueError, match=r"there is no recording"):
        read_recording(tmp_path / "nowhere.mcap")


def test_a_full_disk_stops_the_recording_and_not_the_loop(
    tmp_path: Path, simulated: Callable[..., Loop], panda: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that may write 64 kB only meets the same error as on a full disk."""
    start = subprocess.Popen

    def limited(*args: object, **kwargs: object) -> object:
        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))

        return start(*args, **kwargs, preexec_fn=limit)

    monkeypatch.setattr(subprocess, "Popen", limited)
    loop = simulated(Supervisor(make("direct", panda)))
    path = tmp_path / "full.mcap"
    with Recorder(path, panda, 1e-3) as recorder:
        for _ in range(2000):
            recorder.add(loop.tick())
    assert "could not be written any further" in recorder.failure and recorder.restarts == 0
    found = read_recording(path)
    assert 100 <= len(found.ticks) < 2000 and found.lost == 0


def test_names_and_places_are_checked(tmp_path: Path, panda: Robot) -> None:
    with pytest.raises(RetorqueError, match=r"ends in \.mcap"):
        Recorder(tmp_path / "run.bag", panda, 1e-3)
    with pytest.raises(RetorqueError, match=r"cannot write"):
        Recorder(Path("/proc/nowhere/run.mcap"), panda, 1e-3)
