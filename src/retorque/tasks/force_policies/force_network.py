"""The networks of UniFP and FACET in NumPy: joint targets, and UniFP's estimate of the force on the hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import check_only, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.tasks.push.push_network import dense_layers, through
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

NETWORK, FORMAT = "force policy", 1
WEIGHTS = Path(__file__).parent / "weights"
FORCE_POLICIES = ("unifp", "facet")
"""UniFP (Zhi et al. 2025) and FACET (Xu et al. 2025), after the compliance paper's appendix."""
FORCE = 5.0
"""An estimate of 1 is this much [N]."""
RATE = 50.0
"""[Hz]"""


class ForceNetwork:
    """Perceptrons with ELU between their layers.

    Args:
        tensors: `policy.N.weight`, `policy.N.bias`, and the same of `estimator` where there is one.
        seen: numbers of an observation.
        joints: of the arm.
    """

    def __init__(self, tensors: dict[str, Array], seen: int, joints: int):
        self._policy, self._estimator = dense_layers(tensors, "policy"), dense_layers(tensors, "estimator")
        inward = seen + (3 if self._estimator else 0)
        if not self._policy or self._policy[0][0].shape[0] != inward or self._policy[-1][0].shape[1] != joints:
            raise RetorqueError(f"a force policy of this arm takes {inward} numbers and gives {joints}; train it again")

    def __call__(self, seen: Array) -> tuple[Array, Array]:
        """Shares (trials, joints) and the estimated force on the hand (trials, 3) [N]; zeros where none is made."""
        x, force = seen.astype(np.float32), np.zeros((len(seen), 3))
        if self._estimator:
            force = through(self._estimator, x)
            x = np.concatenate([x, force], axis=-1)
        return through(self._policy, x).astype(float), FORCE * force.astype(float)


def load_force_policy(method: str, robot: Robot, seen: int, joints: int, path: Path | None = None) -> ForceNetwork:
    """The network of a method, default the one on board."""
    if method not in FORCE_POLICIES:
        raise unknown("force policy", method, FORCE_POLICIES)
    path = path or WEIGHTS / f"{method}.safetensors"
    tensors, header = load_network(path, NETWORK, FORMAT)
    check_only(header, path, robot)
    if header["made"].get("method") != method:
        raise RetorqueError(f"'{path}' holds {header['made'].get('method')}, not {method}")
    return ForceNetwork(tensors, seen, joints)


def save_force_policy(path: Path, tensors: dict[str, Array], robot: Robot, made: dict[str, Any]) -> Path:
    """Write a network whole."""
    header = weights_header([robot], {}, made, only=robot.name, rate=RATE)
    return save_network(path, tensors, NETWORK, FORMAT, header)
