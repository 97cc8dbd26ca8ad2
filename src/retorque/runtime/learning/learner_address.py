"""Where a learner is: HOST:PORT over UDP, or zenoh:PROTOCOL/HOST:PORT."""

from __future__ import annotations

from collections.abc import Callable

from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.runtime.learning.udp_link import UdpLearner, UdpLink, address_of
from retorque.runtime.learning.zenoh_link import PREFIX, ZenohLearner, ZenohLink


def link_to(adapter: Adapter, address: str, key: bytes) -> UdpLink | ZenohLink:
    """The way to a learner at an address."""
    if address.startswith(PREFIX):
        return ZenohLink(adapter, address, key)
    return UdpLink(adapter, *address_of(address), key=key)


def learner_at(make: Callable[[], Adapter], robot: Robot, address: str, key: bytes) -> UdpLearner | ZenohLearner:
    """A learner that listens at an address."""
    if address.startswith(PREFIX):
        return ZenohLearner(make, robot, address, key)
    return UdpLearner(make, robot, *address_of(address), key=key)
