"""`retorque export onnx`: TAM's adaptor and its encoder's column as ONNX files, checked against NumPy."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retorque.adapt import make
from retorque.adapt.tam.adapter import ShortWindow, TamAdapter
from retorque.adapt.tam.context import PROBES
from retorque.adapt.tam.encoder import StreamingEncoder
from retorque.adapt.tam.features import patch_size
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import fixed_base
from retorque.work.errors import RetorqueError
from retorque.work.files import check_folder, write_whole
from retorque.work.outcome import Outcome

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

CLOSE = 1e-4
"""Largest difference from NumPy, in torque units and in latents: single precision against double."""
TRIES = 20
"""States, and columns, that are compared."""


@dataclass(frozen=True, kw_only=True)
class ExportOnnxSettings:
    """Settings of `retorque export onnx`."""

    robot: str
    """Robot on board, or the path of a card, an MJCF or a URDF file."""
    adapter: str = "tam"
    """An adapter with TAM's networks: tam, tam-ft, tam-no-etau, tam-no-residual, tam-privileged."""
    out: Path
    """The folder to write; files of an earlier export are replaced."""
    weights: Path | None = None
    """A file of weights instead of the ones on board."""
    seed: int = 0
    """Of the states that are compared."""


@dataclass(frozen=True)
class Check:
    """How far an exported graph is from NumPy, and how long a call takes."""

    difference: float
    """Largest, in torque units (adaptor) or latents (encoder)."""
    microseconds: float
    """Median of a call on one thread."""


def run(settings: ExportOnnxSettings) -> Outcome:
    """Write `adaptor.onnx` and `encoder.onnx`; what differs from NumPy is not written."""
    robot = fixed_base(Robot.load(settings.robot))
    tam = make(settings.adapter, robot, 1, weights=settings.weights)
    if not isinstance(tam, TamAdapter) or isinstance(tam, ShortWindow):
        raise RetorqueError(f"'{settings.adapter}' has no encoder and adaptor to export; name tam or one of its kind")
    check_folder(settings.out)
    about = {"robot": robot.name, "joints": " ".join(robot.joint_names), "adapter": settings.adapter}
    from retorque.runtime.export.tam_onnx import adaptor_graph, encoder_graph

    files = {"adaptor.onnx": adaptor_graph(tam).model(about), "encoder.onnx": encoder_graph(tam).model(about)}
    checks = {
        "adaptor.onnx": check_adaptor(files["adaptor.onnx"], tam, settings.seed),
        "encoder.onnx": check_encoder(files["encoder.onnx"], tam, settings.seed),
    }
    outcome = Outcome()
    for name, content in files.items():
        check = checks[name]
        if not check.difference <= CLOSE:
            raise RetorqueError(f"{name} differs from NumPy by {check.difference:.2g}; please report this robot")
        line = f"{name}: {len(content) / 1e3:.0f} kB, within {check.difference:.1e} of NumPy, "
        outcome.show(line + f"{check.microseconds:.0f} us a call")
        outcome.later("written", partial(write_whole, settings.out / name, content))
    return outcome


def session(model: bytes) -> InferenceSession:
    """A model made ready to run on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def check_adaptor(model: bytes, tam: TamAdapter, seed: int) -> Check:
    """Compare the adaptor's corrections at random states."""
    rng, n, p = np.random.default_rng(seed), tam.robot.n, tam.preset
    ready, context = session(model), tam.context
    worst, times = 0.0, []
    for _ in range(TRIES):
        q = tam.robot.home[:, None] + np.cumsum(1e-3 * rng.normal(size=(n, p.window)), axis=1)
        qd = 0.5 * rng.normal(size=(n, 1)) + 0.01 * rng.normal(size=(n, p.window))
        torque, nominal = rng.normal(size=(n, p.window)) * context.load[:, None], rng.normal(size=n) * context.load
        latent = rng.normal(size=(n, p.latent)).astype(np.float32).astype(float)
        ideal, probes = context.ideal_response(q[None, :, 0], qd[None, :, 0], nominal[None])
        tam.adaptor.set_latent(latent[None])
        expected = tam.adaptor.correction(q[None], qd[None], torque[None], nominal[None], ideal, probes)[0]
        given = {"position": q, "velocity": qd, "torque": torque, "nominal": nominal, "ideal": ideal[0]}
        begin = time.perf_counter()
        found = ready.run(None, {**given, "probes": probes[0].reshape(PROBES, n), "latent": latent})[0]
        times.append(1e6 * (time.perf_counter() - begin))
        worst = max(worst, float(np.abs((found - expected) / context.unit).max()))
    return Check(worst, float(np.median(times)))


def check_encoder(model: bytes, tam: TamAdapter, seed: int) -> Check:
    """Compare the latents of random columns, one after the other, beyond the cache's length."""
    rng, n, p = np.random.default_rng(seed), tam.robot.n, tam.preset
    ready = session(model)
    reference = StreamingEncoder(tam._tensors, p, tam.context, 1)
    keys, values = np.zeros((2, p.layers, p.columns, n, p.heads, p.width // p.heads), dtype=np.float32)
    worst, times = 0.0, []
    for column in range(p.columns + TRIES):
        patch = rng.normal(size=(n, patch_size(p))).astype(np.float32)
        given = {"patch": patch, "keys": keys, "values": values, "column": np.array([column])}
        begin = time.perf_counter()
        latent, keys, values = ready.run(None, given)
        times.append(1e6 * (time.perf_counter() - begin))
        worst = max(worst, float(np.abs(latent - reference.push(patch[None])[0]).max()))
    return Check(worst, float(np.median(times)))
