"""A learnt inverse-dynamics model tick by tick, in NumPy alone: the feed-forward term of a 1 kHz loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import WeightsHeader, check_weights, load_network, save_network, weights_header
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK = "inverse-dynamics"
FORMAT = 2
WARM_UP = 500
"""Ticks that a memory is run at the first state before its torque is used."""
NETWORKS: dict[str, tuple[str, ...]] = {
    "lstm": (
        *("inward.weight", "inward.bias", "norm_before.weight", "norm_before.bias", "bend.weight"),
        *("norm_after.weight", "norm_after.bias", "memory.weight_ih_l0", "memory.weight_hh_l0"),
        *("memory.bias_ih_l0", "memory.bias_hh_l0", "outward.weight", "outward.bias"),
    ),
    "mlp": (
        *("first.weight", "first.bias", "second.weight", "second.bias"),
        *("bend.weight", "outward.weight", "outward.bias"),
    ),
    "none": (),
}
"""The arrays of each kind of network."""


def header_of(robot: Robot, shape: dict[str, Any], made: dict[str, Any]) -> WeightsHeader:
    """What a weights file says about itself.

    Args:
        robot: whose dynamics the model knows.
        shape: the parts of the model and their sizes.
        made: where the weights come from (command, seed, losses).
    """
    return weights_header([robot], shape, made, only=robot.name)


def save_model(path: str | Path, arrays: dict[str, Array], header: WeightsHeader) -> Path:
    """Write a model's arrays and header, whole or not at all."""
    return save_network(path, arrays, NETWORK, FORMAT, header)


def read_model(path: str | Path) -> tuple[dict[str, Array], WeightsHeader]:
    """The arrays and the header of a weights file."""
    return load_network(path, NETWORK, FORMAT)


class StreamingModel:
    """Torque for one tick after another, (n,) for one robot or (trials, n) for a batch.

    A memory that was trained on every k-th tick is kept k times, and the copies take turns.

    Args:
        robot: the tree the model was trained for.
        arrays: weights, as `save_model` takes them.
        header: what the weights file says about itself.
    """

    def __init__(self, robot: Robot, arrays: dict[str, Array], header: WeightsHeader):
        _refuse_mismatch(robot, arrays, header)
        self.robot, self.header = robot, header
        shape = header["shape"]
        self.kind: str = shape["residual"]
        self._stride = int(shape["stride"])
        self.body: RigidBody | None = None
        if shape["rigid"]:
            self.body = RigidBody(robot, arrays["rigid.inertial"], arrays["rigid.armature"])
            self._coulomb = arrays["rigid.coulomb"]
            self._limit = float(arrays["rigid.limit"].item())
        self._mean = arrays["mean"].astype(np.float32)
        self._slope = (1.0 / arrays["knee"]).astype(np.float32)
        self._scale = (1.0 / arrays["deviation"]).astype(np.float32)
        self._range = arrays["output_scale"].astype(float)
        self._network = {name: arrays[f"network.{name}"].astype(np.float32) for name in NETWORKS[self.kind]}
        if self.kind == "lstm":
            self._prepare_memory()
        self.reset()

    @classmethod
    def load(cls, path: str | Path, robot: Robot) -> StreamingModel:
        """The model of a weights file, if it is for this robot."""
        return cls(robot, *read_model(path))

    def reset(self) -> None:
        """Forget everything."""
        self._memories: Array | None = None
        self._turn = 0

    def warm_up(self, q: Array, qd: Array, qdd: Array, ticks: int = WARM_UP) -> None:
        """Settle the memory at a state before its torque is used."""
        if self.kind == "lstm":
            for _ in range(ticks):
                self.residual(q, qd, qdd)

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """This tick's torque for a state and a wanted acceleration, (..., n) [N·m]; once a tick."""
        out = self.residual(q, qd, qdd)
        return out if self.body is None else out + self.stateless(q, qd, qdd)

    def stateless(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque of rigid body and friction, (..., n) [N·m]; zero without a rigid body."""
        if self.body is None:
            return np.zeros(np.shape(q))
        friction = self._coulomb * np.clip(qd / self._limit, -1.0, 1.0)
        return self.body.inverse_dynamics(q, qd, qdd) + friction

    def residual(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque of the network, (..., n) [N·m]; advances its memory by one tick."""
        if self.kind == "none":
            return np.zeros(np.shape(q))
        x = np.concatenate([q, qd, qdd], axis=-1, dtype=np.float32, casting="same_kind")
        n = self.robot.n
        x[..., n:] = np.arcsinh(x[..., n:] * self._slope)
        x = (x - self._mean) * self._scale
        return self._range * (self._recall(x) if self.kind == "lstm" else self._perceive(x))

    def _prepare_memory(self) -> None:
        w = self._network
        self._gates = np.concatenate([w["memory.weight_ih_l0"], w["memory.weight_hh_l0"]], axis=1).T.copy()
        self._bias = w["memory.bias_ih_l0"] + w["memory.bias_hh_l0"]
        cells = len(self._bias) // 4
        # sigmoid(x) = (1 + tanh(x / 2)) / 2, so that one tanh serves all four gates
        half = np.full(4 * cells, 0.5, dtype=np.float32)
        half[2 * cells : 3 * cells] = 1.0
        self._gates *= half
        self._bias *= half
        self._inward, self._outward = w["inward.weight"].T.copy(), w["outward.weight"].T.copy()

    def _recall(self, x: Array) -> Array:
        w, cells = self._network, self._outward.shape[0]
        x = _normalised(x @ self._inward + w["inward.bias"], w["norm_before.weight"], w["norm_before.bias"])
        x = np.where(x >= 0.0, x, w["bend.weight"] * x)
        x = _normalised(x, w["norm_after.weight"], w["norm_after.bias"])
        if self._memories is None or self._memories.shape[2:-1] != x.shape[:-1]:
            self._memories = np.zeros((self._stride, 2, *x.shape[:-1], cells), dtype=np.float32)
        hidden, cell = memory = self._memories[self._turn]
        self._turn = (self._turn + 1) % self._stride
        gates = np.tanh(np.concatenate([x, hidden], axis=-1) @ self._gates + self._bias)
        enter, keep, new, leave = (gates[..., i * cells : (i + 1) * cells] for i in range(4))
        memory[1] = (0.5 + 0.5 * keep) * cell + (0.5 + 0.5 * enter) * new
        memory[0] = (0.5 + 0.5 * leave) * np.tanh(memory[1])
        return memory[0] @ self._outward + w["outward.bias"]

    def _perceive(self, x: Array) -> Array:
        w = self._network
        for layer in ("first", "second"):
            x = x @ w[f"{layer}.weight"].T + w[f"{layer}.bias"]
            x = np.where(x >= 0.0, x, w["bend.weight"] * x)
        return x @ w["outward.weight"].T + w["outward.bias"]


def _normalised(x: Array, weight: Array, bias: Array) -> Array:
    """Layer norm over the last axis."""
    centred = x - np.add.reduce(x, axis=-1, keepdims=True) / np.float32(x.shape[-1])
    square = np.add.reduce(centred * centred, axis=-1, keepdims=True) / np.float32(x.shape[-1])
    return centred / np.sqrt(square + np.float32(1e-5)) * weight + bias


def _refuse_mismatch(robot: Robot, arrays: dict[str, Array], header: WeightsHeader) -> None:
    check_weights(header, "the model's weights", robot, 1e-3)
    shape = header["shape"]
    if shape.get("residual") not in NETWORKS:
        raise RetorqueError(
            f"the weights' network '{shape.get('residual')}' is unknown; on board: {', '.join(NETWORKS)}"
        )
    if not isinstance(shape.get("stride"), int) or shape["stride"] < 1:
        raise RetorqueError(f"the weights' stride {shape.get('stride')} is not a number of ticks; train again")
    needed = {"mean", "deviation", "knee", "output_scale", *(f"network.{name}" for name in NETWORKS[shape["residual"]])}
    if shape.get("rigid"):
        needed |= {"rigid.inertial", "rigid.armature", "rigid.coulomb", "rigid.limit"}
    missing = sorted(needed - set(arrays))
    if missing:
        raise RetorqueError(f"the weights lack {', '.join(missing)}; copy or train the file again")
    odd = [key for key, value in arrays.items() if not np.all(np.isfinite(value))]
    if odd or arrays["mean"].shape != (3 * robot.n,) or arrays["output_scale"].shape != (robot.n,):
        raise RetorqueError("the weights are not finite or not of this robot's size; copy or train the file again")
