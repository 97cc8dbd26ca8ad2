"""How a robot moves from one time step to the next, and how that depends on its state, its inputs and its parameters.

A state x is (q, v): Pinocchio's coordinates (nq) and velocities (nv), with a free base first. A small change of state
dx is (dq, dv), 2 nv numbers. An input u is the torque of the joints that have a motor. One step of h seconds is

    (M(q) + armature + h D(v)) a = u - bias(q, v) - losses(q, v),    v' = v + h a,    q' = q + h v'

with D the slope of friction, which acts implicitly as it does in the simulator (`simulate.target`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from typing import Literal

import numpy as np
import pinocchio as pin

from retorque.physics.backends.kernel_cache import compile_beside, ready
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

Backend = Literal["tree", "pinocchio", "mujoco"]
BACKENDS: tuple[Backend, ...] = ("tree", "pinocchio", "mujoco")


class Dynamics(ABC):
    """The discrete dynamics of one robot; a backend knows accelerations, and all else follows.

    Args:
        robot: the tree; a joint of torque limit zero has no motor.
        timestep: h [s].
        selection: the parameters that are free; its base is where they start.
        parameters: those of a robot without free ones; default: the selection's base, or all that the card says.
    """

    def __init__(
        self,
        robot: Robot,
        timestep: float,
        *,
        selection: Selection | None = None,
        parameters: Parameters | None = None,
    ):
        if not (np.isfinite(timestep) and 0.0 < timestep <= 1.0):
            raise RetorqueError(f"a time step must be between 0 and 1 s, not {timestep}")
        if selection is not None and selection.robot.joint_names != robot.joint_names:
            raise RetorqueError("the selected parameters are another robot's; make the selection with this robot")
        self.robot, self.timestep, self.selection = robot, timestep, selection
        if parameters is None:
            parameters = Parameters.of_robot(robot) if selection is None else selection.base
        if parameters.trials:
            raise RetorqueError("dynamics are of one robot; choose a trial of the parameters")
        self.base_parameters = parameters
        self.body = RigidBody(robot, parameters.total_inertial(robot), parameters.armature)
        self.nq, self.nv = self.body.nq, self.body.nv
        self.passed = self.nv - robot.n
        """Degrees of freedom of the base, before the joints."""
        self.actuated = self.passed + np.flatnonzero(robot.torque_limit > 0.0)
        if len(self.actuated) == 0:
            raise RetorqueError(f"no joint of robot '{robot.name}' has a motor; give one a torque limit above zero")
        self.inputs = len(self.actuated)
        self.size = 0 if selection is None else selection.size
        self.input_limit: Array = robot.torque_limit[self.actuated - self.passed]  # (inputs,) [N·m]

    @property
    def states(self) -> int:
        """Numbers in a state."""
        return self.nq + self.nv

    def parameters(self, p: Array | None) -> Parameters:
        """The robot's parameters of a vector (size,); None: where they start."""
        if p is None or self.selection is None:
            return self.base_parameters
        return self.selection.apply(np.asarray(p, dtype=float))

    @abstractmethod
    def accelerations(self, q: Array, v: Array, u: Array, p: Array | None) -> Array:
        """a of knots (knots, nq), (knots, nv), (knots, inputs); (knots, nv)."""

    @abstractmethod
    def derivatives(self, q: Array, v: Array, u: Array, p: Array | None) -> tuple[Array, Array]:
        """a (knots, nv), and its derivatives by q, v, u and p, (knots, nv, 2 nv + inputs + size)."""

    def step(self, x: Array, u: Array, p: Array | None = None) -> Array:
        """The next states (..., states) under inputs (..., inputs)."""
        x, u = np.asarray(x, dtype=float), np.asarray(u, dtype=float)
        lead = np.broadcast_shapes(x.shape[:-1], u.shape[:-1])
        rows = np.broadcast_to(x, (*lead, self.states)).reshape(-1, self.states)
        inputs = np.array(np.broadcast_to(u, (*lead, self.inputs)).reshape(-1, self.inputs), order="C")
        q, v = rows[:, : self.nq].copy(), rows[:, self.nq :].copy()  # contiguous, and nobody else's
        after = v + self.timestep * self.accelerations(q, v, inputs, p)
        return np.concatenate([self._moved(q, self.timestep * after), after], axis=1).reshape(*lead, self.states)

    def linearise(self, x: Array, u: Array, p: Array | None = None) -> tuple[Array, Array, Array]:
        """A (H, 2 nv, 2 nv), B (H, 2 nv, inputs), P (H, 2 nv, size) along states (H or H+1, states) and inputs.

        dx' = A dx + B du + P dp.
        """
        h, n = self.timestep, self.nv
        rows = np.asarray(x[: len(u)], dtype=float)
        q, v = rows[:, : self.nq].copy(), rows[:, self.nq :].copy()  # contiguous, and nobody else's
        a, change = self.derivatives(q, v, np.array(u, dtype=float, order="C"), p)
        after = h * change  # of v'
        after[:, :, n : 2 * n] += np.eye(n)
        moved = h * after  # of q'
        moved[:, :, :n] += np.eye(n)
        if self.passed:
            for k in range(len(u)):
                own = h * (v[k] + h * a[k])
                by_q = pin.dIntegrate(self.body.model, q[k], own, pin.ArgumentPosition.ARG0)
                by_v = pin.dIntegrate(self.body.model, q[k], own, pin.ArgumentPosition.ARG1)
                moved[k] = h * by_v @ after[k]
                moved[k, :, :n] += by_q
        whole = np.concatenate([moved, after], axis=1)
        return whole[:, :, : 2 * n], whole[:, :, 2 * n : 2 * n + self.inputs], whole[:, :, 2 * n + self.inputs :]

    def rollout(self, x: Array, u: Array, p: Array | None = None) -> Array:
        """States (H+1, states) from a first one (states,) under inputs (H, inputs)."""
        out = np.empty((len(u) + 1, self.states))
        out[0] = x
        for k in range(len(u)):
            out[k + 1] = self.step(out[k], u[k], p)
        return out

    def add(self, x: Array, dx: Array) -> Array:
        """The states (..., states) after small changes (..., 2 nv)."""
        lead = np.broadcast_shapes(x.shape[:-1], dx.shape[:-1])
        x, dx = np.broadcast_to(x, (*lead, self.states)), np.broadcast_to(dx, (*lead, 2 * self.nv))
        q = self._moved(x[..., : self.nq], dx[..., : self.nv])
        return np.concatenate([q, x[..., self.nq :] + dx[..., self.nv :]], axis=-1)

    def difference(self, start: Array, end: Array) -> Array:
        """The change (..., 2 nv) that leads from states to others (..., states)."""
        if not self.passed:
            return end - start
        start, end = np.broadcast_arrays(start, end)
        rows = zip(start.reshape(-1, self.states), end.reshape(-1, self.states), strict=True)
        q = [pin.difference(self.body.model, a[: self.nq], b[: self.nq]) for a, b in rows]
        velocity = end[..., self.nq :] - start[..., self.nq :]
        return np.concatenate([np.reshape(q, velocity.shape), velocity], axis=-1)

    def _moved(self, q: Array, change: Array) -> Array:
        if not self.passed:
            return q + change
        rows = zip(q.reshape(-1, self.nq), change.reshape(-1, self.nv), strict=True)
        return np.reshape([pin.integrate(self.body.model, a, b) for a, b in rows], q.shape)


def make_dynamics(
    robot: Robot,
    timestep: float,
    *,
    backend: str = "auto",
    selection: Selection | None = None,
    parameters: Parameters | None = None,
) -> Dynamics:
    """The dynamics of a robot by a backend's name.

    Args:
        robot: the tree.
        timestep: [s]
        backend: one of `BACKENDS`; "auto" takes the compiled tree where numba is installed, else Pinocchio; "at-once"
            never waits for a compiler: Pinocchio where nothing has been compiled yet, while another process does it.
        selection: the parameters that are free.
        parameters: all the others.
    """
    if backend == "at-once":
        backend = "tree" if ready() else "pinocchio"
        if backend == "pinocchio" and find_spec("numba") is not None:
            compile_beside()
    if backend == "auto":
        backend = "tree" if find_spec("numba") is not None else "pinocchio"
    if backend == "tree":
        from retorque.physics.backends.tree_dynamics import TreeDynamics

        return TreeDynamics(robot, timestep, selection=selection, parameters=parameters)
    if backend == "pinocchio":
        from retorque.physics.backends.pinocchio_dynamics import PinocchioDynamics

        return PinocchioDynamics(robot, timestep, selection=selection, parameters=parameters)
    if backend == "mujoco":
        from retorque.physics.backends.mujoco_dynamics import MujocoDynamics

        return MujocoDynamics(robot, timestep, selection=selection, parameters=parameters)
    raise unknown("backend of the dynamics", backend, ["auto", "at-once", *BACKENDS])
