"""UP-OSI (Yu et al. 2017): a policy that is told the parameters, and a network that reads them off samples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import check_only, load_network, save_network, weights_header
from retorque.physics.dynamics import Dynamics
from retorque.plan.feedback import PlanAction
from retorque.plan.modelling.model import Model
from retorque.robots.state import State
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

NETWORK, FORMAT = "UP-OSI", 1
WEIGHTS = Path(__file__).parent / "weights"
UP_OSI_TASKS = ("cartpole", "double-pendulum")
"""Tasks that it can be trained for, those of the paper; weights of both are on board."""
HOLD = 4
"""Samples for which an input is kept: noise that is tried for one sample of 5 or 10 ms moves no pole."""
HISTORY = 30
"""Samples that the parameters are read off: over the 5 or 10 of the planners' window nobody can tell masses apart."""
Layers = list[tuple[Array, Array]]


def observation(task: MpcTask, states: Array) -> Array:
    """What networks see of states (..., 2 n): the cart from its target, cosine and sine of hinges, speeds."""
    n = task.robot.n
    x, q, v = states[..., :1] - task.cost.target[0], states[..., 1:n], states[..., n:]
    return np.concatenate([x, np.cos(q), np.sin(q), v * SPEED], axis=-1)


SPEED = 0.2
"""What speeds are multiplied by, so that they are about 1 [s/rad, s/m]."""


class UpOsiNetwork:
    """Policy and identification as perceptrons in NumPy.

    Args:
        tensors: weights by name: `policy.N.weight`, `identification.N.weight`, biases.
        task: what they were trained for.
    """

    def __init__(self, tensors: dict[str, Array], task: MpcTask):
        self._policy, self._identification = _layers(tensors, "policy"), _layers(tensors, "identification")
        self.task = task
        seen = observation(task, np.zeros(2 * task.robot.n)).size
        motors = int(np.sum(task.robot.torque_limit > 0.0))
        wide = (seen + task.free.size, (HISTORY + 1) * seen + HISTORY * motors)
        narrow = (motors, task.free.size)
        for part, layers, i, o in zip(("policy", "identification"), self._both, wide, narrow, strict=True):
            if not layers or layers[0][0].shape[0] != i or layers[-1][0].shape[1] != o:
                raise RetorqueError(f"the {part} of UP-OSI takes {i} numbers and gives {o} for '{task.name}'")

    @property
    def _both(self) -> tuple[Layers, Layers]:
        return self._policy, self._identification

    def act(self, states: Array, p: Array) -> Array:
        """Inputs (..., motors) as shares of their limits, at states (..., 2 n), for parameters (..., size)."""
        free = self.task.free
        share = 2.0 * (p - free.lower) / free.span - 1.0
        return np.clip(_through(self._policy, np.concatenate([observation(self.task, states), share], axis=-1)), -1, 1)

    def identify(self, states: Array, shares: Array) -> Array:
        """Parameters (size,) from the newest states (T+1, 2 n) and inputs between them (T, motors), as shares."""
        free = self.task.free
        rows = np.concatenate([observation(self.task, states).ravel(), shares.ravel()])
        return np.asarray(free.clip(free.lower + 0.5 * free.span * (_through(self._identification, rows) + 1.0)))


def up_osi_file(task: MpcTask) -> Path:
    """Where the weights of a task are."""
    return WEIGHTS / f"up-osi-{task.name}.safetensors"


def load_up_osi(task: MpcTask, path: Path | None = None) -> UpOsiNetwork:
    """The networks of a task."""
    if path is None and task.name not in UP_OSI_TASKS:
        raise unknown("task of UP-OSI", task.name, UP_OSI_TASKS)
    path = path or up_osi_file(task)
    tensors, header = load_network(path, NETWORK, FORMAT)
    check_only(header, path, task.robot)
    return UpOsiNetwork(tensors, task)


def save_up_osi(path: Path, tensors: dict[str, Array], task: MpcTask, made: dict[str, Any]) -> Path:
    """Write the networks of a task whole."""
    shape = {"samples": HISTORY, "parameters": list(task.free.labels)}
    header = weights_header([task.robot], shape, made, only=task.robot.name, rate=1.0 / task.timestep)
    return save_network(path, tensors, NETWORK, FORMAT, header)


class UpOsiPolicy:
    """The two networks as a policy of the loop: no plan, no model, nothing smoothed.

    Args:
        task: its target and bounds.
        dynamics: which joints have motors.
        network: the weights.
    """

    period = 0.0
    late = 0
    """Plans that came too late: it makes none."""

    def __init__(self, task: MpcTask, dynamics: Dynamics, network: UpOsiNetwork):
        self.task, self.dynamics, self.network = task, dynamics, network
        self.age = 0.0
        self.truth: Array | None = None
        """(2 n,) true state, where the paper's leak is wanted."""
        self._unknown = np.full(task.free.size, np.nan)

    def reset(self, state: State) -> None:
        self.estimate = np.concatenate([state.position, state.velocity])
        self.model = Model(self.task.free.guess, self._unknown, -np.inf)
        self._states: list[Array] = []
        self._shares: list[Array] = []
        self._share = np.zeros(len(self.dynamics.input_limit))
        self._ticks = 0

    def act(self, state: State) -> PlanAction:
        measured = np.concatenate([state.position, state.velocity])
        if np.isfinite(measured).all():
            self.estimate = measured if self.truth is None else self.truth
        sent = np.asarray(state.torque, dtype=float)[self.dynamics.actuated]
        self._states = [*self._states, self.estimate][-HISTORY - 1 :]
        self._shares = [*self._shares, sent / self.dynamics.input_limit][-HISTORY:]
        if len(self._states) > HISTORY:
            p = self.network.identify(np.array(self._states), np.array(self._shares))
            self.model = replace(self.model, p=p, time=state.time, window=HISTORY, version=self.model.version + 1)
        if self._ticks % HOLD == 0:
            self._share = self.network.act(self.estimate, self.model.p)
        self._ticks += 1
        still = np.zeros((len(self._share), len(self.estimate)))
        return PlanAction(self._share * self.dynamics.input_limit, still, self.estimate, self.estimate)


def _layers(tensors: dict[str, Array], part: str) -> Layers:
    numbers = sorted({int(name.split(".")[1]) for name in tensors if name.startswith(f"{part}.")})
    return [(tensors[f"{part}.{k}.weight"].T.astype(float), tensors[f"{part}.{k}.bias"].astype(float)) for k in numbers]


def _through(layers: Layers, x: Array) -> Array:
    for weight, bias in layers[:-1]:
        x = np.tanh(x @ weight + bias)
    weight, bias = layers[-1]
    return np.asarray(x @ weight + bias)
