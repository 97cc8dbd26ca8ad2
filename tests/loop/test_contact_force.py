"""The promise of force: an adapter that winds up against a wall presses no harder than promised."""

from __future__ import annotations

import numpy as np
import pytest
from walls import ARMS, free_place

from retorque.loop.adapter import Adapter
from retorque.loop.guard.contact_force import default_force
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.scene import Scene, Wall
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

PUSH = {"hand": 4.0, "elbow": 12.0}
"""What the nominal command presses with, before its own stiffness [N]."""


class WindsUp(Adapter):
    """Adds more and more of the torque that moves nothing, in the second trial only: the first shows the nominal."""

    def __init__(self, robot: Robot):
        super().__init__(robot, 2)
        self.body = RigidBody(robot)
        self.wound = np.zeros((2, robot.n))

    def correct(self, state: State, nominal_torque: Array) -> Array:
        self.wound[1] += self.timestep / 0.08 * (nominal_torque - self.body.bias(state.position, state.velocity))[1]
        return nominal_torque + self.wound


def press(name: str, where: str, settings: SupervisorSettings) -> tuple[Array, Supervisor]:
    """Forces of both trials at the end (2,) [N], and the supervisor."""
    robot = Robot.load(name)
    body = RigidBody(robot)
    middle = robot.n // 2
    links = [robot.end_effector.link] if where == "hand" else [robot.moving_links[middle + k].name for k in (0, 1, -1)]
    half = 0.12 if where == "hand" else 0.03
    wall = Wall(stiffness=5000.0, size=(0.02, half, half))
    frame, normal, pose = free_place(robot, body, links, wall)
    target = Target(robot, Parameters.ideal(robot, 2), scene=Scene(objects=[wall]), threads=1)
    target.place("wall", pose)
    stiffness = profile_of(robot).tracking_stiffness
    damping = critical_damping(robot, stiffness)
    supervisor = Supervisor(WindsUp(robot), settings)
    push = -PUSH[where] * (normal @ body.jacobian(frame, robot.home)[:3])
    forces = []
    for tick in range(1600):
        state = target.read()
        nominal = stiffness * (robot.home - state.position) - damping * state.velocity + body.gravity(state.position)
        supervisor.observe(state)
        target.write(Command(torque=supervisor.correct(state, nominal + push * min(1.0, tick / 300.0))))
        forces.append(target.contact_force("robot", by="wall") @ normal)
    assert not target.diverged.any()
    return np.mean(forces[-200:], axis=0), supervisor


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("where", ("hand", "elbow"))
def test_an_adapter_that_winds_up_presses_no_harder_than_promised(name: str, where: str) -> None:
    promise = 8.0
    force, supervisor = press(name, where, SupervisorSettings(max_contact_force=promise, enable_ramp=0.0))
    assert force[0] > 0.3  # it touches
    assert force[1] < force[0] + 1.05 * promise
    assert supervisor.counts[Health.FORCE_LIMIT] > 0


def test_without_a_promise_it_presses_much_harder() -> None:
    settings = SupervisorSettings(max_contact_force=np.inf, enable_ramp=0.0, trip_after=np.inf)
    force, _ = press("panda", "hand", settings)
    assert force[1] > force[0] + 30.0


def test_the_default_is_the_weight_of_a_few_of_the_largest_payloads() -> None:
    robot = Robot.load("panda")
    assert default_force(robot) == pytest.approx(4.5 * 1.5 * 9.81)
    assert Supervisor(WindsUp(robot)).max_contact_force == default_force(robot)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
def test_a_promise_that_is_no_force_is_refused(value: float) -> None:
    with pytest.raises(RetorqueError, match="max_contact_force"):
        Supervisor(WindsUp(Robot.load("panda")), SupervisorSettings(max_contact_force=value))
