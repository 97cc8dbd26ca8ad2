"""What every physical estimator returns: parameters with errors, a torque model, and how physical each link is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.regression.base import BaseParameters, base_parameters
from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.physics.inertia import pseudo_inertia
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.losses import Uncertainty
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Estimate(TorqueModel):
    """An identified robot."""

    friction: Friction
    parameters: Array
    """(size,) in the order of `layout.names`: inertial, armature, friction."""
    covariance: Array
    """(size, size) of the parameters; directions that the log does not show keep the card's own uncertainty."""
    base_deviation: Array
    """(rank,) standard error of each base parameter from the log alone; infinite where the log says nothing."""
    noise: Array
    """(n,) standard deviation of the torque residual [N·m]."""
    correlation: Array
    """(n,) samples that share one independent piece of noise: the errors are wider by its square root."""
    prior_deviation: Array
    """(size,) standard deviation of each parameter before any data."""

    @cached_property
    def layout(self) -> Layout:
        return Layout(self.robot, self.friction)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each parameter."""
        return self.layout.names

    @cached_property
    def inertial(self) -> Array:
        """(links, 10) about each link's origin."""
        return self.layout.unpack(self.parameters)[0]

    @cached_property
    def armature(self) -> Array:
        """(n,) [kg·m²]"""
        return self.layout.unpack(self.parameters)[1]

    @cached_property
    def coefficients(self) -> Array:
        """(n, friction.count)"""
        return self.layout.unpack(self.parameters)[2]

    @property
    def joint_terms(self) -> list[tuple[str, str, Array, Array]]:
        """Name, unit, values (n,) and standard errors (n,) of everything about a joint."""
        _, armature, coefficients = self.layout.unpack(self.standard_errors)
        terms = zip(self.friction.names, self.friction.units, self.coefficients.T, coefficients.T, strict=True)
        return [("rotor", "kg·m²", self.armature, armature), *terms]

    def as_parameters(self) -> Parameters:
        """The identified robot as the one parameter object, to be simulated, adapted from or fed forward."""
        return self.layout.selection.apply(self.parameters)

    @property
    def standard_errors(self) -> Array:
        """(size,)"""
        return np.sqrt(np.maximum(np.diagonal(self.covariance), 0.0))

    @cached_property
    def felt_errors(self) -> Array:
        """(size,) the base parameters' errors, each at the parameter that leads its sum; zero at the others.

        What no motion can tell apart is uncertain as the card is, yet no torque depends on it: with these errors the
        parameters are as uncertain as the torques that follow from them.
        """
        out = np.zeros(len(self.parameters))
        spread = self.base.combination @ self.covariance @ self.base.combination.T
        out[self.base.independent] = np.sqrt(np.maximum(np.diagonal(spread), 0.0))
        return out

    @cached_property
    def base(self) -> BaseParameters:
        """The combinations of parameters that the robot's structure lets a log reveal."""
        return base_parameters(self.layout)

    @property
    def base_values(self) -> Array:
        """(rank,)"""
        return self.base.combination @ self.parameters

    @cached_property
    def margins(self) -> Array:
        """(links,) smallest eigenvalue of each link's pseudo-inertia; above zero exactly when the link can exist."""
        return np.linalg.eigvalsh(pseudo_inertia(self.inertial))[:, 0]

    @property
    def physical(self) -> bool:
        """Whether every link could exist and no joint's friction or rotor inertia is negative."""
        others = self.parameters[self.layout.nonnegative]
        return bool(np.all(self.margins > 0.0) and np.all(others >= 0.0))

    @cached_property
    def body(self) -> RigidBody:
        """The identified rigid-body model, without friction; exists only where every margin is above zero."""
        return RigidBody(self.robot, self.inertial, self.armature)

    def predict(self, q: Array, qd: Array, qdd: Array, slip: Array | None = None) -> Array:
        """Joint torque (..., n) [N·m] for a motion, friction included; `slip` where the path before is known."""
        if np.all(self.margins > 0.0):
            return self.body.inverse_dynamics(q, qd, qdd) + self.friction.torque(qd, self.coefficients, slip)
        return self.layout.torque(RigidBody(self.robot), self.parameters, q, qd, qdd, slip)

    def torque(self, motion: Motion) -> Array:
        """Predicted torque of a motion, (samples, n) [N·m]."""
        return self.predict(motion.q, motion.qd, motion.qdd, motion.slip)

    @cached_property
    def unidentifiable(self) -> tuple[str, ...]:
        """In words, what the log could not tell."""
        out = []
        if self.base.unseen:
            out.append(f"no motion reveals: {', '.join(self.base.unseen)}")
        if self.base.shared:
            out.append(f"seen only in sums with others: {', '.join(self.base.shared)}")
        prior = np.sqrt(np.sum(np.square(self.base.combination * self.prior_deviation), axis=1))
        weak = [name for name, std, was in zip(self.base.names, self.base_deviation, prior, strict=True) if std > was]
        if weak:
            out.append(f"this motion excites too little to improve on the card: {'; '.join(weak)}")
        return tuple(out)

    def identified(self) -> Robot:
        """The robot with the identified links, armatures and friction, and how sure they are."""
        # A solver's rounding may leave a rotor or a friction coefficient a hair below zero.
        robot = self.layout.selection.clip(self.as_parameters()).on_card(self.robot)
        inertial, armature, coefficients = self.layout.unpack(self.felt_errors)
        friction = None if robot.friction is None else replace(robot.friction, deviation=coefficients)
        return replace(robot, friction=friction, uncertainty=Uncertainty(inertial=inertial, armature=armature))
