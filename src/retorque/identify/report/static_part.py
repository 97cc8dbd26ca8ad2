"""What URDF and MJCF can say of an identified robot: links, rotors, viscous and dry friction."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.torque_model import TorqueModel
from retorque.logs.motion import Motion
from retorque.physics.friction import limited_sign
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class StaticPart(TorqueModel):
    """The model that is left of an estimate in a file with one damping and one dry friction a joint."""

    exported: Robot
    """As it is written into URDF and MJCF."""

    @classmethod
    def of(cls, estimate: Estimate) -> StaticPart:
        """The static part of an estimate whose links can exist."""
        return cls(
            robot=estimate.robot,
            method=estimate.method,
            samples=estimate.samples,
            note="without offsets, hysteresis and other shapes of friction",
            exported=estimate.identified(),
        )

    def torque(self, motion: Motion) -> Array:
        """(samples, n) links, rotors, viscous friction, and dry friction by the sign of the velocity [N·m]."""
        out = RigidBody(self.exported).inverse_dynamics(motion.q, motion.qd, motion.qdd)
        friction = self.exported.friction
        if friction is None:
            return out
        return out + friction.viscous * motion.qd + friction.coulomb * limited_sign(motion.qd, friction.limit)
