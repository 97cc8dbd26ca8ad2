"""The loop: order of calls, switches, policies at their own rate, what is recorded, and that there is only one."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make as make_adapter
from retorque.control.action import JointAction, TorqueAction
from retorque.control.computed_torque import ComputedTorque
from retorque.control.controller import Controller
from retorque.control.direct_torque import DirectTorque
from retorque.control.joint_impedance import JointImpedance
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Loop, run
from retorque.loop.plant import GravityCompensated, plant_for
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")
SOURCE = Path(__file__).resolve().parents[2] / "src" / "retorque"


class Hold:
    """The gravity torque at home plus a constant."""

    def __init__(self, extra: float = 0.0, period: float = 0.0):
        self.period = period
        self.times: list[float] = []
        self.torque = np.broadcast_to(RigidBody(PANDA).gravity(PANDA.home) + extra, (2, 7))

    def reset(self, state: State) -> None:
        self._start = state.time

    def act(self, state: State) -> TorqueAction:
        self.times.append(state.time - self._start)
        return TorqueAction(self.torque)


class Noting(Adapter):
    """Changes nothing and notes what is called."""

    learn_every = 20

    def __init__(self, timestep: float = 1e-3) -> None:
        super().__init__(PANDA, 2, timestep)
        self.calls: list[str] = []

    def reset(self) -> None:
        self.calls.append("reset")

    def carry(self) -> None:
        self.calls.append("carry")

    def observe(self, state) -> None:
        self.calls.append("observe")

    def learn(self) -> None:
        self.calls.append("learn")

    def correct(self, state, nominal_torque):
        self.calls.append("correct")
        return nominal_torque


def _target() -> Target:
    return Target(PANDA, Parameters.ideal(PANDA, 2), threads=1)


def test_a_tick_is_observe_then_learn_then_correct() -> None:
    adapter = Noting()
    run(Loop(_target(), Hold(), DirectTorque(), adapter), 0.1)
    assert adapter.calls.count("observe") == adapter.calls.count("correct") == 100
    assert adapter.calls.count("learn") == 5
    assert adapter.calls[:3] == ["observe", "learn", "correct"]
    assert adapter.calls[3:5] == ["observe", "correct"]


def test_a_switch_starts_the_policys_clock_and_carries_or_forgets() -> None:
    adapter, first, second, third = Noting(), Hold(), Hold(), Hold()
    loop = Loop(_target(), first, DirectTorque(), adapter)
    run(loop, 0.05)
    loop.switch(second, DirectTorque(), forget=True)
    trace = run(loop, 0.03)
    loop.switch(third, DirectTorque())
    assert first.times[0] == second.times[0] == 0.0
    assert (len(first.times), len(second.times)) == (50, 30)
    assert [call for call in adapter.calls if call in ("reset", "carry")] == ["reset", "carry"]
    assert adapter.calls[: adapter.calls.index("reset")].count("correct") == 50
    np.testing.assert_allclose(trace.time, np.arange(1, 4) * 0.01)


def test_a_policy_acts_at_its_own_period_and_its_action_holds() -> None:
    slow = Hold(period=0.02)
    run(Loop(_target(), slow, DirectTorque()), 0.1)
    np.testing.assert_allclose(slow.times, [0.0, 0.02, 0.04, 0.06, 0.08], atol=1e-12)


def test_trace_holds_true_positions_commands_and_counts_progress() -> None:
    done: list[int] = []
    target, hold = _target(), Hold()
    trace = run(Loop(target, hold, DirectTorque(), Noting()), 0.1, progress=done.append, every=5)
    assert trace.position.shape == trace.torque.shape == (20, 2, 7)
    assert sum(done) == 100
    np.testing.assert_array_equal(trace.position[-1], target.position)
    np.testing.assert_allclose(trace.torque[0], hold.torque)


def test_pushes_and_events_come_at_their_time() -> None:
    happened: list[float] = []
    target = _target()

    def before(tick: int) -> None:
        target.push(np.full((2, 7), 5.0 if tick >= 50 else 0.0))
        if tick == 30:
            happened.append(target.time)

    trace = run(Loop(target, Hold(), DirectTorque()), 0.1, before=before)
    np.testing.assert_allclose(happened, [0.03])
    moved = np.abs(trace.position - PANDA.home).max(axis=(1, 2))
    assert moved[4] < 1e-9 and moved[-1] > 1e-3


def test_what_does_not_fit_is_refused_when_the_loop_is_made() -> None:
    class Servo(Controller):
        gives = "position"

        def command(self, state, action):
            return Command(position=state.position)

    with pytest.raises(RetorqueError, match="takes torques"):
        Loop(_target(), Hold(), Servo())
    with pytest.raises(RetorqueError, match="500 Hz"):
        Loop(_target(), Hold(), DirectTorque(), Noting(timestep=2e-3))


class AddsGravity:
    """A simulated robot whose interface adds gravity compensation, as a Franka's does."""

    takes = "torque"

    def __init__(self, target: Target):
        self.target, self.timestep = target, target.timestep
        self.body = RigidBody(PANDA)

    def read(self) -> State:
        state = self.target.read()
        self.gravity = self.body.gravity(state.position)
        state.torque = state.torque - self.gravity
        return state

    def write(self, command: Command) -> None:
        self.target.write(Command(torque=command.torque + self.gravity))


class Told:
    """A plant that remembers what it was told."""

    timestep, takes = 1e-3, "torque"

    def read(self) -> State:
        return State(0.0, PANDA.home, np.zeros(7), np.zeros(7))

    def write(self, command: Command) -> None:
        self.command = command


@pytest.mark.parametrize("adapter", ["", "direct"])
def test_a_gripper_is_told_whatever_stands_before_the_plant(adapter: str) -> None:
    told = Told()
    made = make_adapter(adapter, PANDA) if adapter else None
    still = JointAction(PANDA.home, np.zeros(7), gripper=np.array(0.03))

    class Grip:
        period = 0.0

        def reset(self, state: State) -> None:
            pass

        def act(self, state: State) -> JointAction:
            return still

    for controller in (
        JointImpedance(PANDA, np.full(7, 50.0), np.full(7, 5.0)),
        ComputedTorque(PANDA, RigidBody(PANDA), np.full(7, 50.0)),
    ):
        Loop(GravityCompensated(told, PANDA), Grip(), controller, made).tick()
        assert told.command.gripper == 0.03
        np.testing.assert_allclose(told.command.torque, 0.0, atol=1e-9)  # at rest all of it was gravity


def test_a_robot_that_adds_gravity_itself_moves_as_any_other() -> None:
    plain, franka = _target(), _target()
    run(Loop(plain, Hold(2.0), DirectTorque()), 0.2)
    loop = Loop(GravityCompensated(AddsGravity(franka), PANDA), Hold(2.0), DirectTorque())
    for _ in range(200):
        reported = loop.tick().state.torque
    np.testing.assert_allclose(franka.position, plain.position, atol=1e-12)
    np.testing.assert_allclose(reported, Hold(2.0).torque, atol=1e-9)
    assert PANDA.hardware_adds_gravity and isinstance(plant_for(PANDA, AddsGravity(franka)), GravityCompensated)
    other = Robot.load("ur10e")
    assert not other.hardware_adds_gravity and plant_for(other, plain) is plain  # its torques include gravity already


def test_there_is_one_control_loop() -> None:
    """A loop that writes to a plant, or steps it, and also asks a controller, policy or adapter is a second one."""
    asks = {"correct", "command", "observe", "act", "at", "bias"}
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.name == "loop.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.For | ast.While):
                calls = [c.func for c in ast.walk(node) if isinstance(c, ast.Call)]
                called = {f.attr for f in calls if isinstance(f, ast.Attribute)}
                if called & {"write", "step"} and called & asks:
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not found, found
