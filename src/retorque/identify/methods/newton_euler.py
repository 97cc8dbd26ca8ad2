"""Newton-Euler inverse dynamics in PyTorch: batched, and differentiable in the inertial parameters."""

from __future__ import annotations

import numpy as np
import torch
from scipy.spatial.transform import Rotation

from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Tensor = torch.Tensor


class NewtonEuler(torch.nn.Module):
    """Torque of a tree of revolute joints as a function of motion and of the ten parameters of every link.

    The recursion is written with mass, first moment and inertia about the link's origin, in which it is linear; motion
    needs no gradient, so only the sweep from the tips to the base is recorded.
    """

    rotation: Tensor
    position: Tensor
    axis: Tensor
    cross: Tensor
    gravity: Tensor

    def __init__(self, robot: Robot, dtype: torch.dtype = torch.float64):
        super().__init__()
        moving = robot.moving_links
        if robot.floating or any(link.joint is None or link.joint.kind != "revolute" for link in moving):
            raise RetorqueError(
                f"'{robot.name}' has joints that do not turn; the differentiable model needs revolute ones"
            )
        self.parent: list[int] = []
        weld: dict[str, tuple[int, np.ndarray, np.ndarray]] = {"world": (-1, np.eye(3), np.zeros(3))}
        rotations, positions, axes = [], [], []
        for link in robot.links:
            index, rotation, position = weld[link.parent]
            position = position + rotation @ np.array(link.position)
            rotation = rotation @ Rotation.from_quat(link.quaternion, scalar_first=True).as_matrix()
            if link.joint is None:
                weld[link.name] = (index, rotation, position)
                continue
            self.parent.append(index)
            rotations.append(rotation)
            positions.append(position)
            axes.append(np.array(link.joint.axis) / np.linalg.norm(link.joint.axis))
            weld[link.name] = (len(self.parent) - 1, np.eye(3), np.zeros(3))
        self.n = len(self.parent)
        for name, value in (("rotation", rotations), ("position", positions), ("axis", axes)):
            self.register_buffer(name, torch.tensor(np.array(value), dtype=dtype), persistent=False)
        cross = np.zeros((self.n, 3, 3))
        cross[:, [2, 0, 1], [1, 2, 0]] = np.array(axes)
        cross[:, [1, 2, 0], [2, 0, 1]] = -np.array(axes)
        self.register_buffer("cross", torch.tensor(cross, dtype=dtype), persistent=False)
        self.register_buffer("gravity", torch.tensor(robot.gravity, dtype=dtype), persistent=False)

    def forward(self, inertial: Tensor, q: Tensor, qd: Tensor, qdd: Tensor) -> Tensor:
        """Torque (..., n) [N·m] of motions (..., n) for parameters (n, 10); see `retorque.physics.inertia`."""
        lead = q.shape[:-1]
        with torch.no_grad():
            turns, omega, alpha, lift = self._outward(*(x.reshape(-1, self.n) for x in (q, qd, qdd)))
        mass, moment = inertial[:, :1], inertial[:, 1:4]
        xx, xy, yy, xz, yz, zz = inertial[:, 4:].unbind(-1)
        inertia = torch.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], dim=-1).reshape(self.n, 3, 3)
        moments = moment.expand_as(omega)
        spin = torch.linalg.cross(omega, moments)
        force = mass * lift + torch.linalg.cross(alpha, moments) + torch.linalg.cross(omega, spin)
        rate = torch.einsum("lij,blj->bli", inertia, omega)
        torque = (
            torch.einsum("lij,blj->bli", inertia, alpha)
            + torch.linalg.cross(omega, rate)
            + torch.linalg.cross(moments, lift)
        )
        forces, torques = list(force.unbind(1)), list(torque.unbind(1))
        out: list[Tensor] = [torch.empty(0)] * self.n
        for i in reversed(range(self.n)):
            out[i] = torques[i] @ self.axis[i]
            parent = self.parent[i]
            if parent >= 0:
                push = (turns[i] @ forces[i][..., None])[..., 0]
                forces[parent] = forces[parent] + push
                arm = torch.linalg.cross(self.position[i].expand_as(push), push)
                torques[parent] = torques[parent] + (turns[i] @ torques[i][..., None])[..., 0] + arm
        return torch.stack(out, dim=-1).reshape(*lead, self.n)

    def _outward(self, q: Tensor, qd: Tensor, qdd: Tensor) -> tuple[list[Tensor], Tensor, Tensor, Tensor]:
        """Rotation of each link in its parent, and each link's angular velocity, its rate and its origin's lift.

        All in the link's own axes, (batch, n, 3); lift is acceleration minus gravity.
        """
        identity = torch.eye(3, dtype=q.dtype, device=q.device)
        turns: list[Tensor] = []
        omegas: list[Tensor] = []
        alphas: list[Tensor] = []
        lifts: list[Tensor] = []
        zero = torch.zeros(len(q), 3, dtype=q.dtype, device=q.device)
        for i, parent in enumerate(self.parent):
            s, c = torch.sin(q[:, i])[:, None, None], torch.cos(q[:, i])[:, None, None]
            turn = self.rotation[i] @ (identity + s * self.cross[i] + (1.0 - c) * (self.cross[i] @ self.cross[i]))
            omega = omegas[parent] if parent >= 0 else zero
            alpha = alphas[parent] if parent >= 0 else zero
            lift = lifts[parent] if parent >= 0 else zero - self.gravity
            arm = self.position[i].expand_as(zero)
            moved = lift + torch.linalg.cross(alpha, arm) + torch.linalg.cross(omega, torch.linalg.cross(omega, arm))
            back = turn.transpose(-1, -2)
            omega, alpha, lift = ((back @ x[..., None])[..., 0] for x in (omega, alpha, moved))
            along = self.axis[i] * qd[:, i, None]
            alphas.append(alpha + self.axis[i] * qdd[:, i, None] + torch.linalg.cross(omega, along))
            omegas.append(omega + along)
            lifts.append(lift)
            turns.append(turn)
        return turns, torch.stack(omegas, 1), torch.stack(alphas, 1), torch.stack(lifts, 1)
