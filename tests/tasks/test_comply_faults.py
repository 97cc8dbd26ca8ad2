"""Faults in the closed loop: an arm presses while motors lie or the bus sags; it stays gentle and recovers."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from retorque.control.comply.compliance import Compliance
from retorque.control.comply.comply_code import ComplyCode
from retorque.loop.loop import Loop
from retorque.robots.command import Command
from retorque.robots.state import MotorReport, State
from retorque.simulate.motor_target import MotorTarget
from retorque.tasks.comply.draw_task import DrawSettings, DrawTask
from retorque.tasks.comply.stroke_plan import StrokePolicy
from retorque.work.array import Array

FAULTS = {
    "sound": ComplyCode.OK,
    "missing": ComplyCode.MISSING,
    "stuck": ComplyCode.UNEXPLAINED,  # FROZEN while the joint moves; at rest a report may well stand still
    "swapped sign": ComplyCode.UNEXPLAINED,
    "sagging": ComplyCode.SAG,
}
"""One a trial, with the code that names it."""
BEGIN, END, LAST = 200, 250, 400
"""Ticks of 20 ms: pressing since tick 150, a fault for a second, then time to recover."""


class LyingMotors:
    """The plant, its third joint's motor misreported in some trials."""

    takes: Literal["torque", "position"] = "position"

    def __init__(self, target: MotorTarget):
        self.target, self.timestep = target, target.timestep
        self.faulty = False

    def read(self) -> State:
        state = self.target.read()
        assert isinstance(state.motor, MotorReport) and state.motor.current is not None
        assert state.motor.voltage is not None
        if self.faulty:
            for trial, fault in enumerate(FAULTS):
                current = state.motor.current[trial]
                if fault == "missing":
                    current[2] = np.nan
                elif fault == "stuck":
                    current[2] = 0.4
                elif fault == "swapped sign":
                    current[2] *= -1.0
                elif fault == "sagging":
                    state.motor.voltage[trial] *= 0.7
        return state

    def write(self, command: Command) -> None:
        self.target.write(command)


@pytest.fixture(scope="module")
def pressed() -> tuple[Array, Array, Array]:
    """Forces on the board (ticks, trials), codes (ticks, trials) and speeds of the references (ticks, trials)."""
    task = DrawTask(DrawSettings(robot="arx_x5", shape="circle", trials=len(FAULTS), seed=1000, wrong=0.0))
    strokes = replace(task.site.strokes, pause=20.0)
    task.site = replace(task.site, strokes=strokes)
    target, controller = task.target(), task.controller("retorque")
    assert isinstance(target, MotorTarget) and isinstance(controller, Compliance)
    position, rotation = (np.tile(x, (len(FAULTS), *(1,) * x.ndim)) for x in task.poses)
    plant = LyingMotors(target)
    loop = Loop(plant, StrokePolicy(task.plan(), 0, position, rotation), controller)
    force, codes, speed = [], [], []
    for tick in range(LAST):
        plant.faulty = BEGIN <= tick < END
        loop.tick()
        force.append(np.einsum("ti,ti->t", target.contact_force("tip", by="whiteboard"), task.normals))
        codes.append(np.array(controller.codes))
        speed.append(np.linalg.norm(controller.admittance.velocity[:, 0, :3], axis=-1))
    return np.array(force), np.array(codes), np.array(speed)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_bounded_and_got_over(pressed: tuple[Array, Array, Array], fault: str) -> None:
    force, codes, speed = (rows[:, list(FAULTS).index(fault)] for rows in pressed)
    assert force[BEGIN - 25 : BEGIN].mean() == pytest.approx(5.0, abs=1.5)  # it presses before
    named = np.bitwise_or.reduce(codes[BEGIN:END])
    assert named & FAULTS[fault] == FAULTS[fault]
    assert force.max() < 12.0 and speed.max() <= 0.1 + 1e-9
    assert force[-50:].mean() == pytest.approx(5.0, abs=1.5)  # and after
    assert force[-50:].min() > 2.0


def test_a_sound_arm_beside_them_notices_nothing(pressed: tuple[Array, Array, Array]) -> None:
    named = int(np.bitwise_or.reduce(pressed[1][:, 0]))
    assert not named & (ComplyCode.MISSING | ComplyCode.FROZEN | ComplyCode.UNEXPLAINED | ComplyCode.SAG)
