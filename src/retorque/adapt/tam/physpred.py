"""The paper's PhysPred baseline: the history encoder predicts the parameters, and their inverse is sent."""

from __future__ import annotations

from retorque.adapt.tam.adapter import TamAdapter
from retorque.adapt.tam.physical import PhysicalRange
from retorque.loop.belief import Belief
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.robots.state import State
from retorque.work.array import Array


class PhysPred(TamAdapter):
    """τ = Φ_ξ(q, q̇, F₀(q, q̇, τ⁰)) with ξ predicted from the history (C.2, C.5)."""

    variant = "physpred"
    trimmed = False
    settings_type = None

    def adopt(self, belief: Belief) -> None:
        self.belief = belief
        if not hasattr(self, "_range"):
            self._range = PhysicalRange(self.context)
        self.parameters = self._predict(belief.arrays["latent"])

    def _predict(self, z: Array) -> Parameters:
        w = self._tensors
        joint = z @ w["physical.joint.weight"].T + w["physical.joint.bias"]
        payload = z.mean(axis=-2) @ w["physical.payload.weight"].T + w["physical.payload.bias"]
        return self._range.decode(joint.astype(float), payload.astype(float))

    def correct(self, state: State, nominal_torque: Array) -> Array:
        positions, velocities, _ = self.history.last(self.preset.window)
        q, qd = positions[-1], velocities[::-1].mean(axis=0)
        ideal = self.context.body.forward_dynamics(q, qd, nominal_torque)
        return inverse_torque_command(self.context.body, self.parameters, q, qd, ideal)
