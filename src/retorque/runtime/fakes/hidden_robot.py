"""The robot inside a fake: a simulated target whose parameters nobody outside knows."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError, unknown


@dataclass(frozen=True, kw_only=True)
class FakeSettings:
    """What every fake has."""

    robot: str = "panda"
    """A robot on board, or the path of a card, URDF or MJCF."""
    seed: int = 0
    """Of what is hidden; a negative one hides nothing."""
    faults: tuple[str, ...] = ()
    """What goes wrong and when, NAME@SECONDS, such as reflex@2.5."""

    def check_faults(self, known: tuple[str, ...]) -> None:
        """Refuse a fault that the fake does not know."""
        for _, name in self.due():
            if name not in known:
                raise unknown("fault", name, known)

    def due(self) -> list[tuple[float, str]]:
        """The faults in the order of their times [s]."""
        found = []
        for fault in self.faults:
            name, _, time = fault.partition("@")
            try:
                found.append((float(time), name))
            except ValueError:
                raise RetorqueError(f"a fault is written NAME@SECONDS, such as reflex@2.5, not '{fault}'") from None
        return sorted(found)


def arm(settings: FakeSettings, joints: int, maker: str, on_board: str) -> Robot:
    """The robot of a maker's fake, which has so many joints."""
    robot = load(settings.robot)
    if robot.n != joints:
        raise RetorqueError(f"a {maker} arm has {joints} joints, '{robot.name}' has {robot.n}; use {on_board}")
    return robot


def hidden_target(settings: FakeSettings, robot: Robot | None = None, timestep: float = 1e-3) -> Target:
    """One robot at home, with parameters drawn from its profile."""
    robot = robot or load(settings.robot)
    if settings.seed < 0:
        parameters = Parameters.ideal(robot)
    else:
        parameters = Parameters.sample(robot, profile_of(robot), 1, settings.seed)[0]
    return Target(robot, parameters, timestep=timestep, threads=1)
