"""Settings of the supervisor that cannot hold are refused."""

import pytest

from retorque.adapt import make
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError


@pytest.mark.parametrize("name", ["residual_limit", "rate_limit"])
def test_limits_for_another_robot_are_refused(name):
    with pytest.raises(RetorqueError, match=name):
        Supervisor(make("direct", Robot.load("panda"), 1), SupervisorSettings(**{name: (1.0, 2.0)}))


def test_codes_in_words():
    assert Health.names(int(Health.SURPRISED | Health.GAP)) == ["gap", "surprised"]
