"""An identified robot with its drives: gains, biases and dead zones beside links, rotors and sigmoidal friction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.identify.methods.estimate import Estimate
from retorque.logs.motion import Motion
from retorque.physics.friction import limited_sign, preset
from retorque.physics.parameters import PAIRS, SIGMOID_PAIRS, Parameters
from retorque.robots.losses import Uncertainty
from retorque.robots.robot import Robot
from retorque.work.array import Array

PLAIN = preset("coulomb-viscous")
"""The friction of a motion that is seen from behind the drives."""


@dataclass(frozen=True, kw_only=True)
class DriveEstimate(Estimate):
    """Links and rotors as of any estimate, without friction terms; joints as the simulator's own actuator has them."""

    joints: Parameters
    """Drive and sigmoidal friction; its links are not used."""
    joint_errors: dict[str, Array]
    """(n, 2) standard errors by the names of `PAIRS`, of the slopes those of their logarithms."""

    def as_parameters(self) -> Parameters:
        """The identified robot as the one parameter object, to be simulated, adapted from or fed forward."""
        return self.joints.with_arrays({"inertial": self.inertial, "armature": self.armature})

    def predict(self, q: Array, qd: Array, qdd: Array, slip: Array | None = None) -> Array:
        """Command (..., n) [N·m] for a motion, friction and drive included; this friction has no memory."""
        from retorque.physics.actuator import command_for  # here, so that a log without drives is read at once

        return command_for(self.body.inverse_dynamics(q, qd, qdd), np.asarray(qd), self.joints)

    def behind_drive(self, motion: Motion) -> Motion:
        """The motion with the torques that an arm of exact drives and plain friction would have needed for it.

        Coulomb and viscous friction of the same size stay in, so that a light wrist's torque is not all noise.
        """
        from retorque.physics.actuator import drive, losses

        viscous, dry = self.joints.viscous.mean(axis=-1), 0.5 * self.joints.friction_amplitude.mean(axis=-1)
        plain = viscous * motion.qd + dry * limited_sign(motion.qd, PLAIN.limit)
        return replace(motion, torque=drive(motion.torque, self.joints) - losses(motion.qd, self.joints) + plain)

    @property
    def joint_terms(self) -> list[tuple[str, str, Array, Array]]:
        """Name, unit, values (n,) and standard errors (n,) of everything about a joint."""
        units = {"torque_scale": "", "viscous": "N·m·s/rad", "friction_slope": "s/rad", "friction_shift": "rad/s"}
        out = super().joint_terms
        for name in PAIRS:
            values, errors = getattr(self.joints, name), self._errors(name)
            for side, word in enumerate(("forward", "backward")):
                label = f"{name.replace('_', ' ')} {word}"
                out.append((label, units.get(name, "N·m"), values[:, side], errors[:, side]))
        return out

    def _errors(self, name: str) -> Array:
        """(n, 2) standard errors in the unit that the parameter has on a card."""
        log = name == "friction_slope"
        return self.joint_errors[name] * (self.joints.friction_slope if log else 1.0)

    def identified(self) -> Robot:
        """The robot with the identified links, rotors, friction and drive, and how sure they are."""
        robot = self.layout.selection.clip(self.as_parameters()).on_card(self.robot)
        inertial, armature, _ = self.layout.unpack(self.felt_errors)
        deviation = np.concatenate([self._errors(name) for name in SIGMOID_PAIRS], axis=1)
        friction = None if robot.friction is None else replace(robot.friction, deviation=deviation)
        return replace(robot, friction=friction, uncertainty=Uncertainty(inertial=inertial, armature=armature))
