"""A Panda under MPC with an adapter beneath: who should know the robot, the plan, the adapter, or both?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.adapt import make
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.default_profile import profile_of
from retorque.physics.dynamics import make_dynamics
from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.plan.cost import QuadraticCost
from retorque.plan.feedback import PlanFeedback
from retorque.plan.ilqr import ILQR, PlannerSettings
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.information import Information, InformationSettings
from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.window import Samples
from retorque.plan.modelling.window_fit import WindowFit
from retorque.plan.mpc_policy import MpcPolicy
from retorque.plan.planner import Planner
from retorque.plan.start_time import StartTime
from retorque.plan.workers import Durations, VirtualWorkers
from retorque.robots.robot import Robot
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.work.array import Array

PERIOD = 0.01
"""Of plans and samples [s]; the loop and the adapter run ten times as fast."""
NOISE = (5e-4, 5e-3)
"""Standard deviation of positions [rad] and velocities [rad/s]."""


class IdealModel(Modeller):
    """Keeps the first guess: plans with the ideal model."""

    name = "ideal"

    def update(self, samples: Samples) -> Model:
        return self.model


@dataclass(frozen=True, kw_only=True)
class ReachTrace:
    """What happened in a series of reaches."""

    distance: Array
    """(reaches,) of the joints from their target in the last quarter of each reach, RMS [rad]."""
    effort: float
    """Mean square of the torque as a share of its limit."""


def reach(plan_with: str, adapter: str, seed: int, *, reaches: int = 4, time: float = 1.5) -> ReachTrace:
    """Reach for random poses around home, one after the other, on a Panda with hidden parameters and a payload.

    Args:
        plan_with: "ideal" or "identified": what the planner's model is.
        adapter: what corrects torques beneath it.
        seed: of everything.
        reaches: how many.
        time: of each [s].
    """
    robot = Robot.load("panda")
    profile = profile_of(robot)
    truth = Parameters.sample(robot, profile, 1, seed)[0]
    rng = np.random.default_rng([seed, 3])
    goals = robot.home + rng.uniform(-0.35, 0.35, (reaches, robot.n))
    sensors = SensorSettings(
        position_noise=np.array(NOISE[0]),
        velocity_noise=np.array(NOISE[1]),
        velocity_delay=np.array(0),
        torque_delay=np.array(0),
    )
    target = Target(robot, truth, sensors=sensors, seed=seed, threads=1)
    policy, cost = _planner(robot, plan_with)
    corrector = Supervisor(make(adapter, robot, seed=seed), SupervisorSettings())
    loop = Loop(target, policy, PlanFeedback(robot), corrector)
    ticks = round(time / target.timestep)
    distance, effort = [], []
    for goal in goals:
        cost.target[: robot.n] = goal
        errors = []
        for tick in range(ticks):
            sent = loop.tick().command.torque
            assert sent is not None
            if tick > 0.75 * ticks:
                errors.append(np.linalg.norm(target.position - goal))
            effort.append(float(np.mean(np.square(sent / robot.torque_limit))))
        distance.append(float(np.sqrt(np.mean(np.square(errors)))))
    return ReachTrace(distance=np.array(distance), effort=float(np.mean(effort)))


def _planner(robot: Robot, plan_with: str) -> tuple[MpcPolicy, QuadraticCost]:
    base = Parameters.ideal(robot)
    n = robot.n
    selection = Selection(robot, ["damping", "coulomb", "payload_mass"], base)
    guess = selection.to_vector(base)
    upper = np.concatenate([np.full(n, 3.0), np.full(n, 4.0), [4.0]])
    free = FreeParameters(selection, lower=np.full(2 * n + 1, -1e-6), upper=upper, guess=guess)
    dynamics = make_dynamics(robot, PERIOD, selection=selection)
    fit = WindowFit(dynamics, free, np.repeat(NOISE, n))
    start = np.concatenate([robot.home, np.zeros(n)])
    weights = np.concatenate([np.full(n, 200.0), np.full(n, 2.0)])
    cost = QuadraticCost(robot, start, running=0.05 * weights, final=weights, effort=1e-4)
    planner = Planner(ILQR(dynamics, PlannerSettings(horizon=40, iterations=3)), cost)
    modeller: Modeller = IdealModel(free)
    if plan_with == "identified":
        modeller = Information(free, fit, InformationSettings(longest=60, prior=0.3))
    rule = StartTime("quantile", iteration_time=2e-3, fixed=PERIOD)
    workers = VirtualWorkers(planner, modeller, rule, Durations())
    policy = MpcPolicy(dynamics, fit, workers, length=61, smoothed=5)
    policy.period = PERIOD
    return policy, cost
