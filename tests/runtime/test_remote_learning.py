"""`learn` elsewhere: the same corrections as here, and every belief that cannot be trusted is refused."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from waiting import within

from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.robot import Robot
from retorque.runtime.drive import DriveSettings, run_drive
from retorque.runtime.learning.learner_process import LearnerSpec, ProcessLink
from retorque.runtime.learning.packets import BELIEF, identity, sealed
from retorque.runtime.learning.remote_learning import RemoteLearning, Twin, decode_belief, encode_belief, inner_of
from retorque.runtime.learning.udp_link import UdpLearner, UdpLink, address_of
from retorque.runtime.realtime import Pacer
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

SPEC = LearnerSpec(adapter="recursive")


class TwinLink:
    """A learner in this very process, without any delay."""

    def __init__(self, twin: Twin):
        self.twin, self.refused = twin, Counter[str]()
        self._data: bytes | None = None

    def send(self, row: Array) -> None:
        self._data = self.twin.take(row[None])

    def newest(self) -> bytes | None:
        data, self._data = self._data, None
        return data

    def close(self) -> None:
        pass


class OneBelief:
    """A link over which a test sends what it likes."""

    def __init__(self) -> None:
        self.refused = Counter[str]()
        self.data: bytes | None = None

    def send(self, row: Array) -> None:
        pass

    def newest(self) -> bytes | None:
        data, self.data = self.data, None
        return data

    def close(self) -> None:
        pass


@pytest.mark.parametrize("name", ["recursive", "recursive-contact"])
def test_a_twin_gives_the_very_corrections_of_learning_here(
    name: str, panda: Robot, simulated: Callable[..., Loop]
) -> None:
    """All that a correction needs of what was learnt is in the belief."""
    spec = LearnerSpec(adapter=name)
    here = simulated(Supervisor(spec.make(panda)))
    remote = RemoteLearning(spec.make(panda), TwinLink(Twin(spec.make(panda))))
    there = simulated(Supervisor(remote))
    for _ in range(700):
        ours, theirs = here.tick().command.torque, there.tick().command.torque
        assert ours is not None and theirs is not None
        assert np.array_equal(ours, theirs)
    assert remote.beliefs > 40 and not remote.refused


def test_a_belief_travels_as_it_is() -> None:
    belief = Belief.of("Recursive", 1.25, mean=np.arange(4.0), count=np.array([3]))
    found, health = decode_belief(encode_belief(belief, int(Health.SURPRISED)))
    assert (found.kind, found.time, health) == ("Recursive", 1.25, Health.SURPRISED)
    assert np.array_equal(found.arrays["mean"], belief.arrays["mean"])
    with pytest.raises(RetorqueError, match="no record of arrays"):
        decode_belief(b"nothing of the kind")


def test_late_repeated_foreign_altered_and_infinite_beliefs_are_refused(
    panda: Robot, simulated: Callable[..., Loop]
) -> None:
    link, adapter = OneBelief(), SPEC.make(panda)
    remote = RemoteLearning(adapter, link)
    loop = simulated(Supervisor(remote))
    own: Belief = inner_of(adapter).belief
    for _ in range(300):
        now = loop.tick().state.time

    def sent(kind: str = "Recursive", at: float = now, **changed: Array) -> Belief | None:
        link.data = encode_belief(Belief.of(kind, at, **{**{k: v.copy() for k, v in own.arrays.items()}, **changed}))
        return remote.learn()

    name = next(key for key, array in own.arrays.items() if array.dtype.kind == "f" and array.size > 1)
    assert sent() is not None
    assert sent() is None and remote.refused["repeated"] == 1
    assert sent(at=now + 10.0) is None and remote.refused["late"] == 1  # from a clock that is not the robot's
    remote._last = -np.inf
    assert sent(at=now - 0.2) is None and remote.refused["late"] == 2
    assert sent(kind="TamAdapter") is None and remote.refused["foreign"] == 1
    assert sent(**{name: np.zeros(3)}) is None and remote.refused["foreign"] == 2
    assert sent(**{name: np.full_like(own.arrays[name], np.nan)}) is None and remote.refused["not finite"] == 1
    link.data = b"\0" * 100
    assert remote.learn() is None and remote.refused["altered"] == 1
    assert sent() is not None and remote.beliefs == 2


def test_a_learner_in_another_process_helps_and_its_death_is_seen_within_100_ms(
    panda: Robot, simulated: Callable[..., Loop]
) -> None:
    link = ProcessLink(SPEC, panda)
    remote = RemoteLearning(SPEC.make(panda), link, longest_delay=0.5)
    supervisor = Supervisor(remote, SupervisorSettings(stale_after=0.08))
    loop, pacer = simulated(supervisor), Pacer(1e-3)
    try:
        for _ in range(20_000):  # a busy machine takes longer than the robot's 1.2 s
            pacer.wait()
            loop.tick()
            if loop.plant.time >= 1.2 and remote.beliefs > 20:
                break
        assert remote.beliefs > 20
        os.kill(link.process.pid, signal.SIGKILL)
        link.process.wait()
        ticks = 0
        while not supervisor.health & Health.STALE and ticks < 400:
            loop.tick()
            ticks += 1
        assert ticks * loop.plant.timestep <= 0.1
        for _ in range(200):  # the correction has faded out: what goes out is the nominal torque
            done = loop.tick()
        assert done.command.torque is not None and done.nominal.torque is not None
        assert np.allclose(done.command.torque, done.nominal.torque)
    finally:
        remote.close()


def test_a_learner_that_cannot_start_says_why(panda: Robot) -> None:
    with pytest.raises(RetorqueError, match="unknown adapter 'recursiv'"):
        ProcessLink(LearnerSpec(adapter="recursiv"), panda)


def test_only_learning_adapters_for_one_robot_can_learn_elsewhere(panda: Robot) -> None:
    from retorque.adapt import make

    with pytest.raises(RetorqueError, match="does not learn"):
        RemoteLearning(make("direct", panda), OneBelief())
    with pytest.raises(RetorqueError, match="one robot"):
        RemoteLearning(make("recursive", panda, 2), OneBelief())


def test_a_learner_over_udp_helps_and_what_is_lost_repeated_altered_or_foreign_does_no_harm(
    panda: Robot, simulated: Callable[..., Loop]
) -> None:
    over = threading.Event()
    server = UdpLearner(lambda: SPEC.make(panda), panda, "127.0.0.1", 0, b"secret")
    thread = threading.Thread(target=server.serve, args=(lambda: not over.is_set(),))
    thread.start()
    adapter = SPEC.make(panda)
    link = UdpLink(adapter, "127.0.0.1", server.port, b"secret")
    remote = RemoteLearning(adapter, link, longest_delay=1.0)
    loop = simulated(Supervisor(remote))
    own = encode_belief(inner_of(adapter).belief)
    attacker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        for k in range(20_000):
            loop.tick()
            if k % 10 == 9:
                time.sleep(0.004)  # the answer's way
            if k >= 600 and remote.beliefs > 10:
                break
        assert remote.beliefs > 10
        attacker.sendto(b"noise", ("127.0.0.1", server.port))
        assert within(30.0, lambda: server.refused["altered"] == 1)  # and all that came before it has been answered
        remote.learn()
        taken = remote.beliefs
        ours = link._socket.getsockname()
        who = identity(adapter)
        # a UDP socket that is connected only hears its peer, so an attacker must forge that too: the server's does here
        for packet in (
            sealed(BELIEF, link._session, 10**6, who, own, b"guess"),
            sealed(BELIEF, link._session + 1, 10**6, who, own, b"secret"),
            sealed(BELIEF, link._session, 10**6, b"\0" * 8, own, b"secret"),
            sealed(BELIEF, link._session, 1, who, own, b"secret"),
            b"short",
        ):
            server._socket.sendto(packet, ours)
        good = sealed(BELIEF, link._session, 10**6, who, own, b"secret")
        server._socket.sendto(good[:60] + bytes([good[60] ^ 1]) + good[61:], ours)

        def refused() -> bool:
            assert remote.learn() is None
            return remote.refused["altered"] == 3

        assert within(30.0, refused)  # the last packet is one of these
        assert remote.refused["foreign"] == 2 and remote.refused["repeated"] >= 1 and remote.beliefs == taken
    finally:
        over.set()
        thread.join()
        remote.close()
        attacker.close()
    supervisor = loop.adapter
    assert isinstance(supervisor, Supervisor)
    for _ in range(600):  # the learner has gone: nothing raises, and the belief grows old
        loop.tick()
    assert supervisor.health & Health.STALE


def test_addresses_and_open_doors_are_checked(panda: Robot) -> None:
    assert address_of("127.0.0.1:5750") == ("127.0.0.1", 5750)
    for wrong in ("5750", "host:", "host:99999", "host:x"):
        with pytest.raises(RetorqueError, match="HOST:PORT"):
            address_of(wrong)
    with pytest.raises(RetorqueError, match="key"):
        UdpLearner(lambda: SPEC.make(panda), panda, "0.0.0.0", 0)


@pytest.mark.slow  # the client's own clock runs on: a busy machine cannot hold it
def test_the_command_line_drives_with_a_learner_elsewhere(fake: Callable, loopback: Callable[[], str]) -> None:
    """`retorque learner` beside `retorque drive --learn HOST:PORT`, with a fake arm between."""
    pytest.importorskip("pylibfranka", reason="this needs the real client: pip install 'retorque[franka]'")
    command = [sys.executable, "-m", "retorque", "learner", "--robot", "panda", "--listen", "127.0.0.1:0"]
    learner = subprocess.Popen([*command, "--key", "k"], stdout=subprocess.PIPE, text=True)
    assert learner.stdout is not None
    try:
        address = learner.stdout.readline().split()[1]
        box = fake("franka", "--host", loopback(), "--lockstep")
        settings = DriveSettings(driver="franka", robot="panda", host=box.address, act=True, duration=0.6)
        settings.learn, settings.key, settings.motion = address, "k", "sines"
        report = run_drive(settings)
        assert report.ended == "done" and report.beliefs > 3
        settings.key = "another"
        assert run_drive(settings).beliefs == 0
    finally:
        learner.send_signal(signal.SIGINT)
        learner.stdout.close()
        assert learner.wait() == 0
