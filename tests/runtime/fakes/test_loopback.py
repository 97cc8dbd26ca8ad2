"""Doors of the fakes: on this machine only, and none is left open where another was taken."""

from __future__ import annotations

import pytest

from retorque.runtime.drivers import franka_protocol, ur_protocol
from retorque.runtime.fakes.dynamixel_bus import DynamixelBus, DynamixelBusSettings
from retorque.runtime.fakes.franka_box import FrankaBox, FrankaBoxSettings
from retorque.runtime.fakes.loopback import check_loopback, listen
from retorque.runtime.fakes.ur_controller import UrController, UrControllerSettings
from retorque.work.errors import RetorqueError

HOST = "127.0.77.3"


def test_only_this_machine() -> None:
    check_loopback("127.0.0.2")
    for host in ("0.0.0.0", "192.168.1.1", "", "localhost"):
        with pytest.raises(RetorqueError, match="this machine only"):
            listen(host, 0, 1)


def test_a_door_that_is_taken_leaves_no_other_open() -> None:
    with listen(HOST, ur_protocol.EXCHANGE, 1):  # the last of three
        with pytest.raises(RetorqueError, match=f"cannot listen on {HOST}:{ur_protocol.EXCHANGE}"):
            UrController(UrControllerSettings(host=HOST))
        for port in (ur_protocol.DASHBOARD, ur_protocol.SCRIPT):
            listen(HOST, port, 1).close()
    with listen(HOST, franka_protocol.PORT, 1), pytest.raises(RetorqueError, match="another --host"):
        FrankaBox(FrankaBoxSettings(host=HOST))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: FrankaBox(FrankaBoxSettings(host=HOST, robot="z1")), "a Franka arm has 7 joints, 'z1' has 6"),
        (lambda: UrController(UrControllerSettings(host=HOST, robot="panda")), "a UR arm has 6 joints"),
        (lambda: FrankaBox(FrankaBoxSettings(host=HOST, faults=("refleks@1",))), "did you mean 'reflex'"),
        (lambda: UrController(UrControllerSettings(host=HOST, faults=("silent",))), "NAME@SECONDS"),
        (lambda: DynamixelBus(DynamixelBusSettings(faults=("reflex@1",))), "unknown fault 'reflex'"),
        (lambda: DynamixelBus(DynamixelBusSettings(lockstep=1.0)), "--lockstep"),
    ],
    ids=range(6),
)
def test_what_cannot_be_is_refused(make, says: str) -> None:
    with pytest.raises(RetorqueError, match=says):
        make()
