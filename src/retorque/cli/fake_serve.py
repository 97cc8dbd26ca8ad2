"""Runs the fakes of `retorque fake` until they are interrupted, and says where they listen."""

from __future__ import annotations

from retorque.runtime.drive import stop_signals
from retorque.runtime.fakes.dynamixel_bus import DynamixelBus, DynamixelBusSettings
from retorque.runtime.fakes.franka_box import FrankaBox, FrankaBoxSettings


def serve_franka(settings: FrankaBoxSettings) -> None:
    """Run `retorque fake franka`."""
    box = FrankaBox(settings)
    _say(f"listening: {settings.host} (a simulated {settings.robot}, seed {settings.seed}); stop it with Ctrl-C")
    with stop_signals() as told:
        box.serve(lambda: not told(), _say)


def serve_dynamixel(settings: DynamixelBusSettings) -> None:
    """Run `retorque fake dynamixel`."""
    bus = DynamixelBus(settings)
    _say(f"listening: {bus.path} ({len(bus.ids)} servos of a simulated {settings.robot}); stop it with Ctrl-C")
    with stop_signals() as told:
        bus.serve(lambda: not told())
    _say(bus.words())


def _say(line: str) -> None:
    print(line, flush=True)
