"""Runs `retorque learner` until it is interrupted."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.robots.library import load
from retorque.runtime.drive import stop_signals
from retorque.runtime.learning.learner_process import LearnerSpec
from retorque.runtime.learning.udp_link import UdpLearner, address_of


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """Learn for a robot that `retorque drive --learn HOST:PORT` drives."""

    robot: str
    """A robot on board, or the path of a card, URDF or MJCF: the same as there."""
    adapter: str = "recursive"
    """The same as there."""
    rate: float = 1000.0
    """Control rate of the robot [Hz]."""
    seed: int = 0
    """The same as there."""
    listen: str = "127.0.0.1:5750"
    """HOST:PORT; any address but a loopback one needs --key."""
    key: str = ""
    """Secret shared with the control process."""


def learner(settings: LearnerSettings) -> None:
    """Run `retorque learner`."""
    robot = load(settings.robot)
    spec = LearnerSpec(adapter=settings.adapter, timestep=1.0 / settings.rate, seed=settings.seed)
    host, port = address_of(settings.listen)
    server = UdpLearner(lambda: spec.make(robot), robot, host, port, settings.key.encode())
    print(f"listening: {host}:{server.port} ({settings.adapter} for {robot.name}); stop it with Ctrl-C", flush=True)
    with stop_signals() as told:
        server.serve(lambda: not told())
