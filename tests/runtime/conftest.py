"""A simulated robot, its loop, and motions for the tests of the runtime."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from retorque.control.joint_impedance import JointImpedance
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Loop
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.runtime.drive_motions import make_motion
from retorque.simulate.target import Target


@pytest.fixture(scope="session")
def panda() -> Robot:
    return load("panda")


@pytest.fixture
def simulated(panda: Robot) -> Callable[..., Loop]:
    """A loop around a Panda with hidden parameters that follows sines."""

    def make(adapter: Adapter | None, seed: int = 5, duration: float = 4.0) -> Loop:
        profile = profile_of(panda)
        target = Target(panda, Parameters.sample(panda, profile, 1, seed)[0], threads=1)
        motion = make_motion("sines", panda, panda.home, duration, 3, 1.0)
        assert profile.tracking_damping is not None
        controller = JointImpedance(panda, profile.tracking_stiffness, profile.tracking_damping)
        return Loop(target, motion, controller, adapter)

    return make


class Fake:
    """A fake robot in a process of its own."""

    def __init__(self, kind: str, *options: str):
        command = [sys.executable, "-m", "retorque", "fake", kind, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()
        assert self.said.startswith("listening: "), self.said
        self.address = self.said.split()[1]

    def end(self) -> str:
        """Stop it; what it said since the start."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.stdout is not None
        said = self.process.stdout.read()
        self.process.stdout.close()
        assert self.process.wait() == 0, said
        return said


@pytest.fixture
def fake() -> Iterator[Callable[..., Fake]]:
    """Starts fakes, and stops those that are left."""
    started: list[Fake] = []

    def start(kind: str, *options: str) -> Fake:
        started.append(Fake(kind, *options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
        if one.process.stdout is not None:
            one.process.stdout.close()


@pytest.fixture
def loopback() -> Callable[[], str]:
    """Loopback addresses that no other test uses: boxes that share a port need one each."""

    def fresh() -> str:
        own = os.getpid() % 50_000
        return f"127.{own // 250 + 20}.{own % 250}.{next(NUMBERS) % 250 + 1}"

    return fresh


NUMBERS = itertools.count()
