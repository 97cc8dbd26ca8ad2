"""Two checks of wrench estimates without motors in the way: a pure force, and an arm that moves fast."""

from __future__ import annotations

import numpy as np

from retorque.bench.report import Row
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.loop.loop import Loop
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.public_code import separate_solves
from retorque.sense.torque_report import TorqueReport
from retorque.sense.wrench_solve import WrenchPrior, WrenchSolve
from retorque.simulate.target import Target
from retorque.tasks.embodiments import embodiment
from retorque.work.array import Array

PURE = 10.0
"""Force of the first check [N]."""
NOISE = 0.2
"""Standard deviation of the torque report in the second [N·m]."""


def phantom_moment(trials: int, seed: int) -> list[Row]:
    """The moment that a full wrench solve sees in a pure force at ARX's hand, without friction or noise."""
    body = embodiment("arx_x5")
    robot = body.load()
    rng = np.random.default_rng([seed, 18])
    q = body.position(robot) + rng.uniform(-0.2, 0.2, (trials, robot.n))
    tree = CompiledTree(robot, (robot.end_effector,), trials)
    tree.update(q)
    direction = rng.standard_normal((trials, 3))
    force = PURE * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    torque = np.einsum("tin,ti->tn", tree.jacobian[:, 0, :3], force)
    solve = WrenchSolve(tree.on_chain, WrenchPrior(force=20.0, moment=2.0), trials)
    ours = solve(tree.jacobian, torque, np.full(torque.shape, 1e-6))
    theirs = separate_solves(tree.jacobian, torque, tree.on_chain)
    rows = []
    for name, wrench in (("retorque", ours), ("public-code", theirs)):
        moment = np.linalg.norm(wrench[:, 0, 3:], axis=-1)
        off = np.linalg.norm(wrench[:, 0, :3] - force, axis=-1)
        extra = {"signal": "torque", "norm": float(off.mean()), "friction": 0.0, "motion": "pure 10 N"}
        rows.append(Row.of(moment, robot="arx_x5", method=name, metric="phantom moment", unit="N·m", extra=extra))
    return rows


def moving_arm(trials: int, seed: int, speed: float = 0.9) -> list[Row]:
    """A Panda by torque, every joint up to `speed`, pushed at the hand with pulses of 10 N."""
    robot = Robot.load("panda")
    parameters = Parameters.ideal(robot, trials)
    target = Target(robot, parameters, threads=1)
    profile = WindowedSines.sample(robot.home, np.full(robot.n, 0.5), trials, 8.0, seed, cycles=(2.0, 3.0))
    scale = speed / np.max(np.abs([profile.at(t).velocity for t in np.linspace(0.0, 8.0, 200)]))
    reference = WindowedSines.sample(robot.home, np.full(robot.n, 0.5 * scale), trials, 8.0, seed, cycles=(2.0, 3.0))
    stiffness = np.full(robot.n, 400.0)
    controller = JointImpedance(robot, stiffness, 2.0 * np.sqrt(stiffness))
    loop = Loop(target, reference, controller)
    tree = CompiledTree(robot, (robot.end_effector,), trials)
    rng = np.random.default_rng([seed, 19])
    push = rng.standard_normal((trials, 3))
    push *= PURE / np.linalg.norm(push, axis=1, keepdims=True)
    estimators = {name: TorqueReport(RigidBody(robot), trials, 1e-3, kind) for name, kind in KINDS.items()}
    solve = WrenchSolve(tree.on_chain, WrenchPrior(force=10.0, moment=0.0), trials)
    errors: dict[str, list[Array]] = {name: [] for name in estimators}
    for tick in range(8000):
        time = tick * 1e-3
        force = push * max(0.0, np.sin(2.0 * np.pi * time)) ** 2
        target.push_frame("end_effector", force)
        state = loop.tick().state
        shaken = state.torque + NOISE * rng.standard_normal((trials, robot.n))
        noisy = State(state.time, state.position, state.velocity, shaken)
        due = tick % 20 == 0
        if due:
            tree.at(state)
        for name, estimator in estimators.items():
            external = estimator.update(noisy)
            if due and time > 0.5:
                wrench = solve(tree.jacobian, external, np.full(external.shape, NOISE**2))
                errors[name].append(np.linalg.norm(wrench[:, 0, :3] - force, axis=-1))
    extra = {"signal": "torque", "friction": 0.0, "motion": f"{speed:g}"}
    return [
        Row.of(np.mean(found, axis=0), robot="panda", method=name, metric="force error norm", unit="N", extra=extra)
        for name, found in errors.items()
    ]


KINDS: dict[str, bool] = {"momentum": True, "quasi-static": False}
"""Whether inertia is taken into account."""
