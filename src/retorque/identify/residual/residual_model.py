"""An identified model with a learnt residual on top, tick by tick in NumPy: the feed-forward term of a 1 kHz loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retorque.identify.residual.residual_features import COUNT, features
from retorque.learn.weights import WeightsHeader, check_weights, load_network, save_network, weights_header
from retorque.physics.actuator import command_for
from retorque.physics.parameters import Parameters
from retorque.physics.presliding import SlipState
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK = "residual"
FORMAT = 1
CONTROL_PERIOD = 1e-3
"""What weights files are stamped with [s]; a residual itself runs at any rate."""
ARRAYS = {
    "mlp": ("first.weight", "first.bias", "second.weight", "second.bias", "last.weight", "last.bias"),
    "lstm": ("inward.weight", "inward.bias", "gates.weight", "gates.bias", "last.weight", "last.bias"),
}
"""The weights of each kind: one network a joint, so that each has a leading axis of joints."""
COMMON = ("mean", "deviation", "load", "scale", "gain", "period")


class ResidualModel:
    """Torque of an identified robot, friction with its memory included, plus a residual network.

    Args:
        robot: the identified robot: its card's links, rotors and friction are the model.
        arrays: the network's weights, as `save_residual` takes them.
        header: what the weights file says about itself.
        timestep: between two calls of `torque` [s].
    """

    def __init__(self, robot: Robot, arrays: dict[str, Array], header: WeightsHeader, timestep: float = 1e-3):
        check_weights(header, "the residual's weights", robot, CONTROL_PERIOD)
        self.kind = str(header["shape"].get("residual"))
        if self.kind not in ARRAYS:
            raise RetorqueError(f"the weights' network '{self.kind}' is unknown; on board: {', '.join(ARRAYS)}")
        missing = sorted({*COMMON, *ARRAYS[self.kind]} - set(arrays))
        if missing or arrays["mean"].shape != (robot.n, COUNT):
            raise RetorqueError(f"the residual's weights lack {', '.join(missing) or 'joints'}; train them again")
        if not all(np.all(np.isfinite(value)) for value in arrays.values()):
            raise RetorqueError("the residual's weights are not finite; copy or train the file again")
        self.robot, self.header = robot, header
        self._w = {name: np.asarray(value, dtype=float) for name, value in arrays.items()}
        self._body = RigidBody(robot)
        self._parameters = Parameters.of_robot(robot)
        self._hold = max(1, round(float(self._w["period"]) / timestep))
        self.reset()

    @classmethod
    def load(cls, path: str | Path, robot: Robot, timestep: float = 1e-3) -> ResidualModel:
        """The model of a weights file on an identified robot's card."""
        return cls(robot, *load_network(path, NETWORK, FORMAT), timestep=timestep)

    def reset(self) -> None:
        """Forget the path and the memory."""
        self._slip: SlipState | None = None
        self._memory: tuple[Array, Array] | None = None
        self._said: Array | None = None
        self._tick = 0

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """This tick's torque for a state and a wanted acceleration, (..., n) [N·m]; once a tick."""
        q, qd, qdd = (np.asarray(x, dtype=float) for x in (q, qd, qdd))
        model = self.stateless(q, qd, qdd)
        return model + self.residual(q, qd, qdd, model)

    def stateless(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque of the identified model alone, (..., n) [N·m]; its presliding friction follows the path."""
        if self._slip is None or self._slip.value.shape[:-1] != q.shape:
            self._slip = SlipState(q)
        self._slip.advance(q)
        moved = self._body.inverse_dynamics(q, qd, qdd)
        return command_for(moved, qd, self._parameters, q, self._slip.value)

    def residual(self, q: Array, qd: Array, qdd: Array, model: Array) -> Array:
        """Torque of the network, (..., n) [N·m]; a memory moves on as often as it was trained to."""
        w = self._w
        if self.kind == "lstm" and self._said is not None and self._tick % self._hold and self._said.shape == q.shape:
            self._tick += 1
            return self._said
        x = (features(q, qd, qdd, model / w["load"]) - w["mean"]) / w["deviation"]
        out = self._perceive(x) if self.kind == "mlp" else self._recall(x)
        self._tick += 1
        self._said = w["gain"] * w["scale"] * out
        return self._said

    def _perceive(self, x: Array) -> Array:
        w = self._w
        for layer in ("first", "second"):
            x = np.tanh(np.einsum("...jf,jfh->...jh", x, w[f"{layer}.weight"]) + w[f"{layer}.bias"])
        return np.einsum("...jh,jh->...j", x, w["last.weight"]) + w["last.bias"]

    def _recall(self, x: Array) -> Array:
        w = self._w
        x = np.tanh(np.einsum("...jf,jfh->...jh", x, w["inward.weight"]) + w["inward.bias"])
        cells = w["last.weight"].shape[-1]
        if self._memory is None or self._memory[0].shape[:-1] != x.shape[:-1]:
            self._memory = (np.zeros((*x.shape[:-1], cells)), np.zeros((*x.shape[:-1], cells)))
        hidden, cell = self._memory
        gates = np.einsum("...ji,jig->...jg", np.concatenate([x, hidden], axis=-1), w["gates.weight"]) + w["gates.bias"]
        enter, keep, leave = (1.0 / (1.0 + np.exp(-gates[..., k * cells : (k + 1) * cells])) for k in range(3))
        cell = keep * cell + enter * np.tanh(gates[..., 3 * cells :])
        hidden = leave * np.tanh(cell)
        self._memory = (hidden, cell)
        return np.einsum("...jh,jh->...j", hidden, w["last.weight"]) + w["last.bias"]


def save_residual(
    path: str | Path, arrays: dict[str, Array], robot: Robot, shape: dict[str, Any], made: dict[str, Any]
) -> Path:
    """Write a residual's weights, whole or not at all."""
    return save_network(path, arrays, NETWORK, FORMAT, weights_header([robot], shape, made, only=robot.name))
