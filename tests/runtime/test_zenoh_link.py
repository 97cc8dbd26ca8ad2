"""`learn` over zenoh: a learner helps, a forged or foreign packet does not, and nobody there is no error."""

from __future__ import annotations

import builtins
import socket
import threading
import time
from collections.abc import Callable

import pytest
from waiting import within

from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Robot
from retorque.runtime.learning.learner_address import learner_at, link_to
from retorque.runtime.learning.learner_process import LearnerSpec
from retorque.runtime.learning.packets import BELIEF, sealed
from retorque.runtime.learning.remote_learning import RemoteLearning, encode_belief, inner_of
from retorque.runtime.learning.udp_link import UdpLearner, UdpLink
from retorque.runtime.learning.zenoh_link import ZenohLearner, ZenohLink, endpoint_of
from retorque.work.errors import RetorqueError

SPEC = LearnerSpec(adapter="recursive")


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"zenoh:tcp/127.0.0.1:{probe.getsockname()[1]}"


def test_a_learner_over_zenoh_helps_and_forgeries_do_no_harm(panda: Robot, simulated: Callable[..., Loop]) -> None:
    pytest.importorskip("zenoh", reason="this needs zenoh: pip install 'retorque[zenoh]'")
    over, address = threading.Event(), free_address()
    server = learner_at(lambda: SPEC.make(panda), panda, address, b"secret")
    assert isinstance(server, ZenohLearner) and server.address == address
    thread = threading.Thread(target=server.serve, args=(lambda: not over.is_set(),))
    thread.start()
    adapter = SPEC.make(panda)
    link = link_to(adapter, address, b"secret")
    assert isinstance(link, ZenohLink)
    remote = RemoteLearning(adapter, link, longest_delay=1.0)
    loop = simulated(Supervisor(remote))
    try:
        for k in range(2000):
            loop.tick()
            if k % 10 == 9:
                time.sleep(0.004)  # the answer's way
            if remote.beliefs > 10:
                break
        assert remote.beliefs > 10
        own = encode_belief(inner_of(adapter).belief)
        for key, session, number in ((b"guess", link._session, 10**6), (b"secret", 7, 10**6)):
            server._mail.put(sealed(BELIEF, session, number, link._who, own, key))

        def refused() -> bool:
            remote.learn()
            return bool(remote.refused["altered"] and remote.refused["foreign"])

        assert within(30.0, refused)
        assert remote.refused["altered"] == 1 and remote.refused["foreign"] == 1
        link._post(b"noise")
        assert within(30.0, lambda: server.refused["altered"] > 0)
        assert server.refused["altered"] == 1
    finally:
        over.set()
        thread.join()
        remote.close()


def test_nobody_there_is_no_error(panda: Robot, simulated: Callable[..., Loop]) -> None:
    pytest.importorskip("zenoh", reason="this needs zenoh: pip install 'retorque[zenoh]'")
    adapter = SPEC.make(panda)
    remote = RemoteLearning(adapter, link_to(adapter, free_address(), b""))
    loop = simulated(Supervisor(remote))
    for _ in range(30):
        loop.tick()
    assert remote.beliefs == 0
    remote.close()


def test_addresses_are_checked(panda: Robot) -> None:
    assert endpoint_of("zenoh:tcp/127.0.0.1:7447") == "tcp/127.0.0.1:7447"
    for wrong in ("zenoh:7447", "zenoh:tcp/7447", "zenoh:tcp/host:x", "tcp/127.0.0.1:7447", "zenoh:/host:1"):
        with pytest.raises(RetorqueError, match="zenoh:tcp/HOST:PORT"):
            endpoint_of(wrong)
    with pytest.raises(RetorqueError, match="key"):
        learner_at(lambda: SPEC.make(panda), panda, "zenoh:tcp/0.0.0.0:7447", b"")


def test_other_addresses_are_udp(panda: Robot) -> None:
    server = learner_at(lambda: SPEC.make(panda), panda, "127.0.0.1:0", b"")
    assert isinstance(server, UdpLearner)
    link = link_to(SPEC.make(panda), server.address, b"")
    assert isinstance(link, UdpLink)
    link.close()
    server._socket.close()


def test_without_the_extra_it_says_what_to_install(panda: Robot, monkeypatch) -> None:
    found = builtins.__import__

    def without(name: str, *rest, **more):
        if name == "zenoh":
            raise ImportError(name)
        return found(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(RetorqueError, match=r"retorque\[zenoh\]"):
        link_to(SPEC.make(panda), "zenoh:tcp/127.0.0.1:7447", b"")


def test_a_port_that_is_taken(panda: Robot) -> None:
    pytest.importorskip("zenoh", reason="this needs zenoh: pip install 'retorque[zenoh]'")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RetorqueError, match="zenoh cannot listen"):
            learner_at(lambda: SPEC.make(panda), panda, f"zenoh:tcp/127.0.0.1:{taken.getsockname()[1]}", b"")
