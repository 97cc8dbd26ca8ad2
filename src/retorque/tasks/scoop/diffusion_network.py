"""A diffusion policy's network in NumPy: a conditional 1-D U-net over a chunk of actions, three denoising steps."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import check_only, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

NETWORK, FORMAT = "diffusion policy", 1
WEIGHTS = Path(__file__).parent / "weights"
ACTIONS = ("x_des", "x_ref")
"""What a policy was cloned from: where the operator led, or where compliance went."""
GROUPS = 8
"""Of group normalisation."""


@dataclass(frozen=True, kw_only=True)
class DiffusionShape:
    """Sizes; the paper's network sees pictures and is some hundred times larger."""

    seen: int = 11
    """Numbers of an observation."""
    actions: int = 9
    """Numbers of an action."""
    horizon: int = 30
    """Actions predicted at once; even."""
    width: int = 32
    """Channels of the outer level; the inner one has twice as many."""
    embedding: int = 32
    """Numbers that tell the denoising step."""
    levels: int = 100
    """Noise levels in training."""
    steps: int = 3
    """Denoising steps where it runs."""


def kept_signal(levels: int) -> Array:
    """(levels,) share of the signal's variance at each noise level: the squared cosine schedule."""
    share = np.cos((np.arange(levels + 1) / levels + 0.008) / 1.008 * np.pi / 2.0) ** 2
    lost = np.minimum(1.0 - share[1:] / share[:-1], 0.999)
    return np.cumprod(1.0 - lost)


def step_embedding(level: Array, width: int) -> Array:
    """(..., width) sines and cosines of noise levels (...)."""
    rate = np.exp(-np.log(10000.0) * np.arange(width // 2) / (width // 2 - 1))
    angle = np.asarray(level, dtype=float)[..., None] * rate
    return np.concatenate([np.sin(angle), np.cos(angle)], axis=-1)


class DiffusionNetwork:
    """The U-net and its sampler.

    Args:
        tensors: weights by name, as the PyTorch module has them, and the scales of observations and actions.
        shape: sizes.
    """

    def __init__(self, tensors: dict[str, Array], shape: DiffusionShape):
        self.shape = shape
        self._w = {name: np.asarray(value, dtype=np.float32) for name, value in tensors.items()}
        self._signal = kept_signal(shape.levels)

    def __call__(self, seen: Array, rng: np.random.Generator) -> Array:
        """Chunks (trials, horizon, actions) for observations (trials, seen): noise, denoised step by step (DDIM)."""
        w, s = self._w, self.shape
        told = ((seen - w["seen_middle"]) / w["seen_scale"]).astype(np.float32)
        x = rng.standard_normal((len(told), s.horizon, s.actions)).astype(np.float32)
        levels = np.round(np.linspace(s.levels - 1, -1, s.steps + 1)).astype(int)
        for now, then in pairwise(levels):
            noise = self.noise(x, np.full(len(x), now), told)
            kept, next_kept = self._signal[now], 1.0 if then < 0 else self._signal[then]
            clean = np.clip((x - np.sqrt(1.0 - kept) * noise) / np.sqrt(kept), -1.0, 1.0)
            noise = (x - np.sqrt(kept) * clean) / np.sqrt(1.0 - kept)
            x = (np.sqrt(next_kept) * clean + np.sqrt(1.0 - next_kept) * noise).astype(np.float32)
        return x.astype(float) * w["action_scale"] + w["action_middle"]

    def noise(self, x: Array, level: Array, told: Array) -> Array:
        """The noise in chunks x (trials, horizon, actions) at levels (trials,), for scaled observations."""
        step = step_embedding(level, self.shape.embedding).astype(np.float32)
        step = self._linear("step.2", _mish(self._linear("step.0", step)))
        told = _mish(np.concatenate([step, told], axis=-1))
        outer = self._block("down", x.swapaxes(1, 2), told)
        inner = self._convolve("shrink", outer, 1)[..., ::2]
        inner = self._block("middle", inner, told)
        inner = self._convolve("grow", np.repeat(inner, 2, axis=-1), 1)
        outer = self._block("up", np.concatenate([inner, outer], axis=1), told)
        return self._convolve("head", outer, 0).swapaxes(1, 2)

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]

    def _convolve(self, name: str, x: Array, pad: int) -> Array:
        """(trials, out, time) of x (trials, in, time) with `pad` zeros at either end, stride 1."""
        weight, length = self._w[f"{name}.weight"], x.shape[-1]
        wide = np.pad(x, ((0, 0), (0, 0), (pad, pad)))
        taps = sum(np.matmul(weight[:, :, k], wide[..., k : k + length]) for k in range(weight.shape[-1]))
        return np.asarray(taps + self._w[f"{name}.bias"][:, None])

    def _normal(self, name: str, x: Array) -> Array:
        parts = x.reshape(len(x), GROUPS, -1)
        centred = parts - parts.mean(axis=-1, keepdims=True)
        scale = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
        return (centred / scale).reshape(x.shape) * self._w[f"{name}.weight"][:, None] + self._w[f"{name}.bias"][
            :, None
        ]

    def _block(self, name: str, x: Array, told: Array) -> Array:
        """Two convolutions; what is told scales and shifts the channels between them."""
        y = _mish(self._normal(f"{name}.norm1", self._convolve(f"{name}.first", x, 2)))
        scale, shift = np.split(self._linear(f"{name}.told", told)[..., None], 2, axis=1)
        y = scale * y + shift
        y = _mish(self._normal(f"{name}.norm2", self._convolve(f"{name}.second", y, 2)))
        return y + self._convolve(f"{name}.past", x, 0)


def _mish(x: Array) -> Array:
    return np.asarray(x * np.tanh(np.logaddexp(0.0, x)))


def load_diffusion(action: str, path: Path | None = None, robot: Robot | None = None) -> DiffusionNetwork:
    """The network cloned from one of `ACTIONS`, default the one on board; another robot's or clone is refused."""
    if action not in ACTIONS:
        raise unknown("action to clone", action, ACTIONS)
    path = path or WEIGHTS / f"scoop-{action.replace('_', '-')}.safetensors"
    tensors, header = load_network(path, NETWORK, FORMAT)
    if robot is not None:
        check_only(header, path, robot)
    if header["made"].get("action") != action:
        raise RetorqueError(f"'{path}' was cloned from {header['made'].get('action')}, not from {action}")
    try:
        shape = DiffusionShape(**header["shape"])
    except TypeError as error:
        raise RetorqueError(f"'{path}' was made for another version of the network; train it again") from error
    return DiffusionNetwork(tensors, shape)


def save_diffusion(
    path: Path, tensors: dict[str, Array], shape: DiffusionShape, robot: Robot, made: dict[str, Any]
) -> Path:
    """Write a network whole."""
    header = weights_header([robot], asdict(shape), made, only=robot.name, rate=10.0)
    return save_network(path, tensors, NETWORK, FORMAT, header)
