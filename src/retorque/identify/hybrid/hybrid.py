"""Hybrid inverse dynamics in PyTorch: a rigid body, Sign friction and a residual network, alone or together."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from retorque.identify.methods.newton_euler import NewtonEuler
from retorque.identify.methods.virtual import barycentric, barycentric_virtual
from retorque.physics.friction import limited_sign, preset
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

Tensor = torch.Tensor
Residual = Literal["lstm", "mlp", "none"]

SIGN = preset("sign")
"""The friction of every rigid part (equation 13)."""
SIGN_LIMIT = SIGN.limit
"""Velocity below which it is linear [rad/s]."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Which parts a model has and how large they are; the defaults are the paper's Table IV."""

    rigid: bool = True
    """A rigid body with Sign friction; without it the network is a black box."""
    residual: Residual = "lstm"
    """The network: with memory, without, or none."""
    linear: int = 100
    """Width of the layer before the LSTM."""
    hidden: int = 50
    """Memory cells of the LSTM."""
    width: int = 200
    """Width of the two layers of the MLP."""
    separate: bool = True
    """Each joint has its own share of every layer of a residual network and listens to itself alone: friction belongs
    to a joint, and a network that sees the whole arm learns the few recorded paths by heart."""
    stride: int = 10
    """The memory sees every so manyth tick, so that 100 steps are a second and not a tenth of one; as many memories
    take turns, and there is a new torque every tick."""

    rotors: bool = True
    """The rigid body has rotors, which the paper's does not."""

    def __post_init__(self) -> None:
        if not self.rigid and self.residual == "none":
            raise RetorqueError("a model needs a rigid body or a network; this one has neither")

    @classmethod
    def published(cls, *, rigid: bool = True, residual: Residual = "lstm") -> Shape:
        """As the paper has it: one network for the whole arm that sees every tick, links without rotors."""
        return cls(rigid=rigid, residual=residual, separate=False, stride=1, rotors=False)

    def as_dict(self) -> dict[str, int | bool | str]:
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Scaling:
    """What the networks see and say in units of the training data."""

    mean: Array
    """(3n,) of what the network sees: positions, velocities and accelerations on their knee's scale."""
    deviation: Array
    """(3n,)"""
    knee: Array
    """(2n,) velocities and accelerations are shown as asinh(x / knee): friction turns within hundredths of a rad/s, far
    below what a fast motion spans."""
    torque_range: Array
    """(n,) largest minus smallest torque [N·m]: the unit of the published losses."""
    residual: Array
    """(n,) what a rigid body with friction leaves over [N·m]: the unit of a residual network, in which every joint
    counts alike."""


class RigidSign(torch.nn.Module):
    """Rigid body with rotors and Sign friction, in unbounded parameters: physically consistent whatever they are."""

    def __init__(self, robot: Robot, inertial: Array, armature: Array, coulomb: Array):
        super().__init__()
        self.robot = robot
        self.tree = NewtonEuler(robot, torch.float32)
        self.virtual = torch.nn.Parameter(torch.tensor(barycentric_virtual(inertial), dtype=torch.float32))
        self.rotor_root = torch.nn.Parameter(torch.tensor(np.sqrt(np.maximum(armature, 1e-6)), dtype=torch.float32))
        self.coulomb = torch.nn.Parameter(torch.tensor(coulomb, dtype=torch.float32))

    def forward(self, q: Tensor, qd: Tensor, qdd: Tensor) -> tuple[Tensor, Tensor]:
        """Torque of the rigid body and of friction, (..., n) each [N·m]."""
        body = self.tree(barycentric(self.virtual), q, qd, qdd) + torch.square(self.rotor_root) * qdd
        return body, self.coulomb * limited_sign(qd, SIGN_LIMIT)

    def read(self) -> Parameters:
        """Links, rotors and Coulomb friction, in double precision."""
        inertial = barycentric(self.virtual.detach().double())
        rotor = torch.square(self.rotor_root.detach().double())
        coulomb = self.coulomb.detach().double().numpy()
        return dataclasses.replace(
            Parameters.ideal(self.robot, friction=SIGN),
            inertial=inertial.numpy(),
            armature=rotor.numpy(),
            friction_coefficients=coulomb[:, None],
        )


def _share(outputs: int, inputs: int, n: int) -> Tensor:
    """(outputs, inputs) ones where both belong to the same joint, when each side is dealt out to `n` joints in order.

    Gates of an LSTM (four times the cells) and inputs (three times the joints) repeat their order.
    """

    def owner(size: int, repeats: int) -> Tensor:
        return (torch.arange(size // repeats) * n // (size // repeats)).repeat(repeats)

    rows = owner(outputs, 1)
    columns = owner(inputs, 3 if inputs == 3 * n else 1)
    return (rows[:, None] == columns).float()


class LSTMResidual(torch.nn.Module):
    """Linear layer with PReLU between layer norms, one LSTM, linear output: 33358 weights at the paper's sizes."""

    def __init__(self, inputs: int, outputs: int, shape: Shape):
        super().__init__()
        self.inward = torch.nn.Linear(inputs, shape.linear)
        self.norm_before = torch.nn.LayerNorm(shape.linear)
        self.bend = torch.nn.PReLU()
        self.norm_after = torch.nn.LayerNorm(shape.linear)
        self.memory = torch.nn.LSTM(shape.linear, shape.hidden, batch_first=True)
        self.outward = torch.nn.Linear(shape.hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, inputs) to (batch, time, outputs), the memory starting empty."""
        x = self.norm_after(self.bend(self.norm_before(self.inward(x))))
        return self.outward(self.memory(x)[0])

    def shares(self, n: int) -> list[tuple[Tensor, Tensor]]:
        """Every weight matrix with the mask that keeps the joints apart."""
        cells, linear = self.memory.hidden_size, self.inward.out_features
        memory = dict(self.memory.named_parameters())
        return [
            (self.inward.weight, _share(linear, 3 * n, n)),
            (memory["weight_ih_l0"], _share(cells, linear, n).repeat(4, 1)),
            (memory["weight_hh_l0"], _share(cells, cells, n).repeat(4, 1)),
            (self.outward.weight, _share(n, cells, n)),
        ]


class MLPResidual(torch.nn.Module):
    """Two layers of PReLU and a linear output: 46008 weights at the paper's sizes."""

    def __init__(self, inputs: int, outputs: int, shape: Shape):
        super().__init__()
        self.first = torch.nn.Linear(inputs, shape.width)
        self.second = torch.nn.Linear(shape.width, shape.width)
        self.bend = torch.nn.PReLU()
        self.outward = torch.nn.Linear(shape.width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., outputs)."""
        return self.outward(self.bend(self.second(self.bend(self.first(x)))))

    def shares(self, n: int) -> list[tuple[Tensor, Tensor]]:
        """Every weight matrix with the mask that keeps the joints apart."""
        width = self.second.out_features
        return [
            (self.first.weight, _share(width, 3 * n, n)),
            (self.second.weight, _share(width, width, n)),
            (self.outward.weight, _share(n, width, n)),
        ]


class InverseDynamics(torch.nn.Module):
    """tau = rigid body + Sign friction + network (equation 11); parts may be missing.

    Args:
        robot: the tree.
        shape: the parts and their sizes.
        scaling: of inputs and torques.
        start: the rigid part's first parameters (links, rotors and the friction "sign"); needed when the shape has one.
        frozen: keep the rigid part as it starts (the second of two steps).
    """

    mean: Tensor
    deviation: Tensor
    knee: Tensor
    torque_range: Tensor
    output_scale: Tensor

    def __init__(
        self, robot: Robot, shape: Shape, scaling: Scaling, start: Parameters | None = None, *, frozen: bool = False
    ):
        super().__init__()
        self.robot, self.shape = robot, shape
        self.frozen = frozen or not shape.rigid
        self.rigid: RigidSign | None = None
        if shape.rigid:
            if start is None:
                raise RetorqueError("a model with a rigid body needs the parameters it starts from")
            if start.friction != SIGN:
                raise RetorqueError("a rigid part starts from parameters whose friction is the preset 'sign'")
            self.rigid = RigidSign(robot, start.inertial, start.armature, start.friction_coefficients[:, 0])
            self.rigid.requires_grad_(not frozen)
            if not shape.rotors:
                self.rigid.rotor_root.requires_grad_(False).zero_()
        self.network: LSTMResidual | MLPResidual | None = None
        if shape.residual == "lstm":
            self.network = LSTMResidual(3 * robot.n, robot.n, shape)
        elif shape.residual == "mlp":
            self.network = MLPResidual(3 * robot.n, robot.n, shape)
        said = scaling.residual if shape.rigid else 0.2 * scaling.torque_range
        buffers = {"mean": scaling.mean, "deviation": scaling.deviation, "knee": scaling.knee}
        for name, value in {**buffers, "torque_range": scaling.torque_range, "output_scale": said}.items():
            self.register_buffer(name, torch.tensor(value, dtype=torch.float32))

        self._shares: list[tuple[Tensor, Tensor]] = []
        if self.network is not None and shape.rigid and shape.separate:
            self._shares = self.network.shares(robot.n)
            with torch.no_grad():
                for weight, mask in self._shares:
                    # Fewer weights meet in a unit, so they start larger.
                    weight.mul_(mask * np.sqrt(robot.n))

    @torch.no_grad()
    def keep_apart(self) -> None:
        """Undo what an optimiser's step did to weights between joints."""
        for weight, mask in self._shares:
            weight.mul_(mask)

    def forward(self, motion: Tensor) -> Tensor:
        """Torque (batch, time, n) [N·m] of positions, velocities, accelerations (batch, time, 3n)."""
        out = self.residual(motion)
        return out if self.rigid is None else out + self.stateless(motion)

    def stateless(self, motion: Tensor) -> Tensor:
        """Torque of rigid body and friction, zero where there is none [N·m]."""
        if self.rigid is None:
            return torch.zeros(*motion.shape[:-1], self.robot.n)
        body, friction = self.rigid(*motion.split(self.robot.n, dim=-1))
        return body + friction

    def residual(self, motion: Tensor) -> Tensor:
        """Torque of the network, zero where there is none [N·m]; time runs in steps of `shape.stride` ticks."""
        if self.network is None:
            return torch.zeros(*motion.shape[:-1], self.robot.n)
        n = self.robot.n
        seen = torch.cat([motion[..., :n], torch.asinh(motion[..., n:] / self.knee)], dim=-1)
        return self.output_scale * self.network((seen - self.mean) / self.deviation)

    def arrays(self) -> dict[str, Array]:
        """All that streaming needs, by name; see `retorque.identify.hybrid.streaming`."""
        names = ("mean", "deviation", "knee", "output_scale")
        out = {name: getattr(self, name).numpy().copy() for name in names}
        if self.rigid is not None:
            read = self.rigid.read()
            out |= {"rigid.inertial": read.inertial, "rigid.armature": read.armature}
            out["rigid.coulomb"] = read.friction_coefficients[:, 0].copy()
            out["rigid.limit"] = np.array(SIGN_LIMIT)
        if self.network is not None:
            out |= {f"network.{key}": value.detach().numpy().copy() for key, value in self.network.state_dict().items()}
        return out
