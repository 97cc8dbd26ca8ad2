"""`default` in the compiled core on a simulated robot whose reports and controller fail in every way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from faults import DT, ROBOT, TRIALS, Mess, N

from retorque.adapt import make
from retorque.control.action import JointAction
from retorque.control.joint_impedance import JointImpedance
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import gains

OWN = Health.SURPRISED | Health.SKIPPED
"""What the estimator says of itself: no fault."""
OF_ADAPTERS = ("adapter raises", "adapter nan", "adapter huge", "observe raises", "learn raises", "learn stops")
"""Faults that a compiled adapter cannot be told to have."""


class FaultyRobot:
    """Hidden parameters, sines, an impedance law that knows where the robot is, and reports that are a mess."""

    def __init__(self, core: Path, seed: int):
        profile = profile_of(ROBOT)
        self.target = Target(ROBOT, Parameters.sample(ROBOT, profile, TRIALS, seed), threads=1)
        self.target.reset(np.broadcast_to(ROBOT.home, (TRIALS, N)))
        self.controller = JointImpedance(ROBOT, *gains(ROBOT, profile))
        settings = SupervisorSettings(enable_ramp=0.05, rearm=2.0)
        self.supervisor = CompiledSupervisor(Supervisor(make("default", ROBOT, TRIALS), settings), core)
        self.mess, self.sent = Mess(seed), np.zeros((TRIALS, N))

    def tick(self, faults: set[str]) -> None:
        """One tick, checked."""
        target, supervisor, mess = self.target, self.supervisor, self.mess
        true = State(mess.tick * DT, target.position.copy(), target.velocity.copy(), self.sent)
        state = mess.report(self.sent, faults, (true.position, true.velocity))
        supervisor.observe(state)
        if mess.tick % supervisor.learn_every == 0:
            belief = supervisor.learn()
            if belief is not None:
                supervisor.adopt(belief)
        wanted = self.controller.command(true, JointAction(*mess.swings())).torque
        self.sent = supervisor.correct(state, mess.nominal(faults, wanted))
        assert np.isfinite(self.sent).all() and np.all(np.abs(self.sent) <= ROBOT.torque_limit)
        gain = supervisor.gain
        assert np.all((gain >= 0.0) & (gain <= 1.0))
        if np.any(gain < 1.0):
            assert supervisor.health.any()  # coded
        target.write(Command(torque=self.sent))
        mess.tick += 1

    def play(self, ticks: int) -> None:
        """So many ticks of faults, then clean ones until it has recovered.

        A slip that began or ended while reports were missing looks like one that lasts: it is coded, its joint stays
        off until a reset, and nothing but it may.
        """
        for _ in range(ticks):
            self.tick(self.mess.draw() - set(OF_ADAPTERS))
        self.mess.until.clear()
        self._rest()
        if not self.recovered:
            faults = self.supervisor.health & ~int(OWN)
            assert np.all((faults == 0) | (faults & int(Health.SLIPPED) > 0))
            self.supervisor.reset()
            self._rest()
        assert self.recovered, [Health.names(int(code)) for code in self.supervisor.health]
        assert not np.any(self.target.diverged)

    def _rest(self) -> None:
        """Clean ticks, half a second at least, until it has recovered or should have."""
        for k in range(20_000):
            self.tick(set())
            if k > 500 and self.recovered:
                break

    @property
    def recovered(self) -> bool:
        """Whether the whole correction goes out again, and no fault is coded."""
        return bool(np.all(self.supervisor.gain == 1.0) and not np.any(self.supervisor.health & ~int(OWN)))


def test_a_robot_whose_reports_fail_stays_within_limits_and_recovers(core: Path) -> None:
    robot = FaultyRobot(core, 0)
    robot.play(1500)
    assert sum(count > 0 for count in robot.supervisor.counts.values()) > 5


@pytest.mark.slow
def test_a_million_ticks_of_faults(core: Path) -> None:
    robot = FaultyRobot(core, 100)
    robot.play(1_000_000)
    assert sum(count > 0 for count in robot.supervisor.counts.values()) > 12
