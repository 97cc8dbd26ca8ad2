"""The models of the paper's Tables II and VI, identified and trained on one set of recordings and kept as files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from retorque.identify.hybrid.hybrid import SIGN, InverseDynamics, Residual, Shape
from retorque.identify.hybrid.recordings import Split, record, together
from retorque.identify.hybrid.streaming import header_of, read_model, save_model
from retorque.identify.hybrid.train_hybrid import HybridTraining, nmse_by_joint, scaling_of, train
from retorque.identify.methods.adam_regression import AdamRegression, plain_program
from retorque.identify.methods.sdp import SemidefiniteProgram
from retorque.identify.methods.virtual import barycentric
from retorque.learn.run_folder import RunFolder
from retorque.learn.weights import WeightsHeader
from retorque.physics.friction import NO_FRICTION, Friction
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.work.array import Array

Progress = Callable[[str, float], None]

NAMES = (
    "RBD+Sign+LSTM E2E",
    "RBD+Sign+LSTM 2S",
    "RBD+Sign+MLP 2S",
    "RBD+LSTM 2S",
    "RBD+Sign E2E",
    "RBD+Sign 2S",
    "RBD E2E",
    "RBD 2S",
    "LSTM E2E",
)
"""E2E: learnt end to end, all parts together; 2S: the rigid part by semidefinite program, then the network."""
SPLITS = ("train", "validation", "test")
SAMPLES = 1000
"""Samples a step of a published network without memory (Table IV)."""
THIN = 20
"""One sample in so many is given to the semidefinite program: neighbours at 1 kHz say the same."""


@dataclass(frozen=True)
class Trained:
    """One model: what streaming needs, and what is known about it."""

    arrays: dict[str, Array]
    header: WeightsHeader

    @property
    def nmse(self) -> dict[str, float]:
        """Normalised mean squared torque error on train, validation and test."""
        return self.header["made"]["nmse"]

    @property
    def failed(self) -> bool:
        """Whether its training ended in numbers that are none."""
        return bool(self.header["made"]["failed"])


def build(
    robot: Robot,
    *,
    scale: float,
    seed: int,
    training: HybridTraining,
    recordings: Callable[[], Split] | None = None,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> dict[str, Trained]:
    """All the models by name; those that `folder` already holds are read, the others made and kept there.

    Args:
        robot: the card.
        scale: length of the recordings; 1 is the paper's.
        seed: of the recordings and of what the stand-in hides.
        training: how the networks are trained; its seed decides their first weights.
        recordings: what this scale and seed record, where several trainings share it.
        folder: where weights and checkpoints are kept; None keeps nothing.
        progress: told what is being done and its finished part.
    """
    made = {"scale": scale, "seed": seed, "training": {k: v for k, v in asdict(training).items() if k != "threads"}}
    run = None if folder is None else RunFolder(folder, {"robot": robot.name, **made})
    found = {} if folder is None else _kept(folder)
    if len(found) == len(NAMES):
        return {name: found[name] for name in NAMES}
    tell = progress or (lambda label, part: None)
    split = (
        record(robot, scale=scale, seed=seed, progress=lambda part: tell("recording", part))
        if recordings is None
        else recordings()
    )
    tell("semidefinite program", 0.0)
    maker = _Maker(robot, split, training, folder, tell)
    for name, model, seconds, failed in maker.missing(found):
        joints = {which: nmse_by_joint(model, getattr(split, which)) for which in SPLITS}
        losses = {which: float(np.mean(joint)) for which, joint in joints.items()}
        known = {"nmse": losses, "test_nmse": joints["test"].tolist(), "seconds": seconds, "failed": failed}
        header = header_of(robot, model.shape.as_dict(), {**made, "model": name, **known})
        found[name] = Trained(model.arrays(), header)
        if folder is not None:
            save_model(_path(folder, name), found[name].arrays, header)
            _checkpoint(folder, name).unlink(missing_ok=True)
        if run is not None:
            run.note(model=name, seconds=seconds, failed=failed, **losses)
    return {name: found[name] for name in NAMES}


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name.lower().replace('+', '-').replace(' ', '-')}.safetensors"


def _checkpoint(folder: Path, name: str) -> Path:
    return _path(folder, name).with_suffix(".checkpoint")


def _kept(folder: Path) -> dict[str, Trained]:
    """The models that the folder of this run already holds."""
    return {name: Trained(*read_model(_path(folder, name))) for name in NAMES if _path(folder, name).exists()}


def _without_friction(parameters: Parameters) -> Parameters:
    return replace(
        parameters, friction=SIGN, friction_coefficients=np.zeros((parameters.armature.shape[-1], SIGN.count))
    )


class _Maker:
    """Makes the models one after another.

    Args:
        robot: the card.
        split: the recordings.
        training: how the networks are trained, and whether all is as the paper has it.
        folder: where checkpoints are kept.
        tell: told what is being done and its finished part.
    """

    def __init__(self, robot: Robot, split: Split, training: HybridTraining, folder: Path | None, tell: Progress):
        self.robot, self.split, self.training, self.folder, self.tell = robot, split, training, folder, tell
        self.data = together(split.train, THIN)
        self.signed, self.signed_seconds, noise = self._program(SIGN)
        self.scaling = scaling_of(split, None if training.published else noise)

    def _program(self, friction: Friction) -> tuple[Parameters, float, Array | None]:
        """Links and friction by semidefinite program, its seconds, and what it leaves over (n,) [N·m] where ours."""
        begun = time.perf_counter()
        if not self.training.published:
            found = SemidefiniteProgram().fit(self.data, self.robot, friction)
            return found.as_parameters(), time.perf_counter() - begun, found.noise
        low, high = self.split.torque_range()
        links, coefficients = plain_program(self.data, self.robot, np.asarray(high - low, dtype=float), friction)
        ideal = Parameters.ideal(self.robot, friction=friction)
        none = np.zeros(self.robot.n)
        learnt = replace(ideal, inertial=links, armature=none, friction_coefficients=coefficients)
        return learnt, time.perf_counter() - begun, None

    def _shape(self, *, rigid: bool = True, residual: Residual = "lstm") -> Shape:
        make = Shape.published if self.training.published else Shape
        return make(rigid=rigid, residual=residual)

    def _start(self) -> Parameters:
        """Where end-to-end training starts: the card, or the paper's random links (appendix A)."""
        ideal = Parameters.ideal(self.robot, friction=SIGN)
        if not self.training.published:
            return ideal
        generator = torch.Generator().manual_seed(self.training.seed)
        virtual = AdamRegression.spread * torch.randn(len(self.robot.moving_links), 10, generator=generator)
        return replace(ideal, inertial=barycentric(virtual.double()).numpy(), armature=np.zeros(self.robot.n))

    def missing(self, found: dict[str, Trained]) -> Iterator[tuple[str, InverseDynamics, float, bool]]:
        """Name, model, training seconds and failure of every model that is not yet found, two-step ones first."""
        plain, two_step = self._shape(residual="none"), self.signed
        if "RBD+Sign 2S" not in found:
            yield "RBD+Sign 2S", self._model(plain, two_step), self.signed_seconds, False
        bare = ("RBD 2S", "RBD+LSTM 2S")
        if any(name not in found for name in bare):
            links, seconds, _ = self._program(NO_FRICTION)
            frictionless = _without_friction(links)
            if bare[0] not in found:
                yield bare[0], self._model(plain, frictionless), seconds, False
            if bare[1] not in found:
                yield bare[1], *self._train(bare[1], self._shape(), frictionless, frozen=True)
        if "RBD+Sign+LSTM 2S" not in found:
            yield "RBD+Sign+LSTM 2S", *self._train("RBD+Sign+LSTM 2S", self._shape(), two_step, frozen=True)
        joint = ("RBD+Sign+LSTM E2E", "RBD+Sign E2E", "RBD E2E")
        if any(name not in found for name in joint):
            model, seconds, failed = self._train(joint[0], self._shape(), self._start())
            assert model.rigid is not None
            learnt = model.rigid.read()
            yield joint[0], model, seconds, failed
            yield joint[1], self._model(plain, learnt), seconds, failed
            yield joint[2], self._model(plain, _without_friction(learnt)), seconds, failed
        if "LSTM E2E" not in found:
            yield "LSTM E2E", *self._train("LSTM E2E", self._shape(rigid=False), None)
        if "RBD+Sign+MLP 2S" not in found:
            shape = self._shape(residual="mlp")
            yield "RBD+Sign+MLP 2S", *self._train("RBD+Sign+MLP 2S", shape, two_step, frozen=True)

    def _model(self, shape: Shape, start: Parameters | None, frozen: bool = False) -> InverseDynamics:
        torch.manual_seed(self.training.seed)
        return InverseDynamics(self.robot, shape, self.scaling, start, frozen=frozen).eval()

    def _train(
        self, name: str, shape: Shape, start: Parameters | None, frozen: bool = False
    ) -> tuple[InverseDynamics, float, bool]:
        begun = time.perf_counter()
        model = self._model(shape, start, frozen)
        settings = self.training
        if settings.published and shape.residual == "mlp":
            settings = replace(settings, steps=1, batch=SAMPLES)
        checkpoint = None if self.folder is None else _checkpoint(self.folder, name)
        curve = train(
            model,
            self.split,
            settings,
            checkpoint=checkpoint,
            progress=lambda epoch, loss: self.tell(f"{name} (validation {loss:.4f})", epoch / settings.epochs),
        )
        return model, time.perf_counter() - begun, curve.failed
