"""Franka arms (Panda, FR3) over libfranka: joint torques at 1 kHz, without gravity on the wire."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.drivers.driver import Driver, RobotStopped
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

JOINTS = 7
RATE = 990.0
"""Fastest change of a torque [N·m/s]: what the arm allows, less a margin."""
CLASHES = ("franky", "panda_py")
"""Packages that bring another libfranka, which cannot be in one process with this one."""
TORQUE_THRESHOLD, FORCE_THRESHOLD = 60.0, 60.0
"""Contact torques [N·m] and forces [N] at which the arm stops by itself."""


class Franka(Driver):
    """A Franka arm. `read` waits for its next report; lost ones are seen by their time.

    Its torques are without gravity, which the arm adds from its own model; friction it does not compensate.

    Args:
        robot: the ideal robot, of 7 joints.
        host: address of the control box.
        enforce_realtime: refuse to run without a real-time kernel, as libfranka does by default.
    """

    timestep = 1e-3
    adds_gravity = True
    torque_rate = RATE
    keeps_time = True
    met_hardware = "tried with libfranka 0.21.3 against the fake control box; has not met an arm"

    def __init__(self, robot: Robot, host: str, *, enforce_realtime: bool = False):
        super().__init__(robot)
        if robot.n != JOINTS:
            raise RetorqueError(f"a Franka arm has {JOINTS} joints, '{robot.name}' has {robot.n}; name a Franka's card")
        other = [name for name in CLASHES if name in sys.modules]
        if other:
            raise RetorqueError(f"{other[0]} brings another libfranka; drive the arm in a process without it")
        try:
            import pylibfranka
        except ModuleNotFoundError as error:
            raise RetorqueError("the franka driver needs pylibfranka; run: pip install 'retorque[franka]'") from error
        self._library = pylibfranka
        self._control: Any = None
        config = pylibfranka.RealtimeConfig
        try:
            self._arm: Any = pylibfranka.Robot(host, config.kEnforce if enforce_realtime else config.kIgnore)
        except Exception as error:  # its exceptions derive from RuntimeError, and some from nothing common
            raise RobotStopped(f"no Franka arm at '{host}': {_words(error)}") from error

    def _begin(self, act: bool) -> None:
        try:
            mode = self._arm.read_once().robot_mode.name
            if act and mode != "Idle":
                raise RobotStopped(f"the arm is in mode {mode}, not Idle; {CURES.get(mode, 'look at its own page')}")
            if act:
                self._arm.set_collision_behavior(
                    [TORQUE_THRESHOLD] * 7, [TORQUE_THRESHOLD] * 7, [FORCE_THRESHOLD] * 6, [FORCE_THRESHOLD] * 6
                )
                self._control = self._arm.start_torque_control()
        except RuntimeError as error:
            raise RobotStopped(f"the arm does not start: {_words(error)}") from error

    def _report(self) -> State:
        begin = time.thread_time()
        try:
            state = self._arm.read_once() if self._control is None else self._control.readOnce()[0]
        except RuntimeError as error:
            self._control = None  # the motion is over
            raise RobotStopped(f"the arm has stopped: {_words(error)}") from error
        self.client_time += time.thread_time() - begin
        report = np.array(state.q + state.dq + state.tau_J_d)  # one list of numbers: three lists take twice the time
        return State(state.time.to_sec(), report[:JOINTS], report[JOINTS : 2 * JOINTS], report[2 * JOINTS :])

    def _send(self, torque: Array) -> None:
        begin = time.thread_time()
        try:
            self._control.writeOnce(self._library.Torques(torque.tolist()))
        except RuntimeError as error:
            self._control = None
            raise RobotStopped(f"the arm has stopped: {_words(error)}") from error
        self.client_time += time.thread_time() - begin

    def _end(self) -> None:
        control, self._control = self._control, None
        if control is not None:
            with contextlib.suppress(Exception):
                last = self._library.Torques((np.zeros(JOINTS) if self._sent is None else self._sent).tolist())
                last.motion_finished = True
                control.writeOnce(last)
        arm, self._arm = self._arm, None
        if arm is not None:
            with contextlib.suppress(Exception):
                arm.stop()


CURES = {
    "Reflex": "acknowledge the error at the arm (Desk, or automatic_error_recovery), then start again",
    "UserStopped": "pull the user stop out again",
    "Guiding": "let go of the guiding buttons",
    "Other": "unlock the joints and activate FCI in Desk",
}
"""What to do about a mode in which the arm takes no torques."""


def _words(error: BaseException) -> str:
    """What libfranka says, in one line, with what to do where that is not said."""
    text = " ".join(str(error).split()).removeprefix("libfranka: ").removeprefix("libfranka: ").rstrip(".")
    hints = {
        "version": "install the libfranka that goes with the arm's system version",
        "refused": "check --host, and activate FCI in Desk",
        "timed out": "check --host and the cable",
        "Timeout": "check the cable: no reports come",
        "not found": "check --host",
        "No route": "check --host and the cable",
        "User Stop": "pull the user stop out again",
        "reflex": "acknowledge the error at the arm, then start again",
        "position_based_velocity_limits": "the arm's URDF lacks an element that this libfranka needs; update the arm",
    }
    hint = next((words for key, words in hints.items() if key.lower() in text.lower()), "")
    return f"{text}; {hint}" if hint else f"{text}; start it anew"
