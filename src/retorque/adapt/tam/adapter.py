"""TAM behind the adapters' interface: a streaming encoder and the torque adaptor, in NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.encoder import StreamingEncoder
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.paper.paper_adaptor import PaperAdaptor
from retorque.adapt.tam.patches import Patches, ticks_needed
from retorque.adapt.tam.preset import RATE
from retorque.adapt.tam.tam_weights import find, load_weights
from retorque.adapt.tam.trim import SPAN, Trim
from retorque.learn.weights import check_weights as check
from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.history import History
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class TamSettings:
    """Settings of the module and of those of its variants that have a latent."""

    trim: bool = True
    """Whether recent errors of the adaptor are taken out between latents; the paper has no such thing."""


class TamAdapter(Adapter):
    """The Torque Adaptation Module.

    `observe` stores a tick; `learn` makes a new column of tokens once 200 new samples are there; `correct` asks the
    adaptor. The first latent knows the robot's profile only; the first that has seen motion comes after 0.23 s.

    Args:
        weights: a file of weights; default: the ones on board for this adapter.
        settings: default: trimmed, but for the paper's own.
    """

    periods = (1.0 / RATE, 1.0 / RATE)
    learn_every = 1
    settings_type: type | None = TamSettings
    variant = "tam"
    per_robot = False
    trimmed = True
    """Whether recent errors of the adaptor are taken out between latents, where no settings say so."""
    remembered = ("history", "patches", "encoder", "trim", "_latent", "belief")

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        weights: Path | None = None,
        settings: TamSettings | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        if settings is not None:
            self.trimmed = settings.trim
        path = weights or find(self.variant, robot.name if self.per_robot else "")
        tensors, preset, self.header = load_weights(path)
        check(self.header, path, robot, timestep)
        self.preset = preset
        self.context, learning = Context(robot), Context(robot)
        self.history = History(max(SPAN, preset.window, ticks_needed(preset)), trials, robot.n, timestep)
        self.patches = Patches(learning, preset, self.history)
        self.encoder = StreamingEncoder(tensors, preset, learning, trials)
        kind = PaperAdaptor if preset.as_published else FastAdaptor
        self.adaptor, checked = (kind(tensors, preset, context) for context in (self.context, learning))
        self.trim = Trim(learning, checked, self.history)
        self._tensors = tensors
        self.reset()

    def reset(self) -> None:
        self.history.reset()
        self.patches.reset()
        self.encoder.reset()
        self.trim.reset()
        self._latent = np.zeros((self.trials, self.robot.n, self.preset.latent))
        self._in_use: Array | None = None
        belief = self.learn()
        assert belief is not None  # the first column is always due
        self.adopt(belief)

    def _restored(self) -> None:
        self.trim.adaptor.set_latent(self._latent)
        self._in_use = None
        self.adopt(self.belief)

    def observe(self, state: State) -> None:
        self.history.add(state)

    def learn(self) -> Belief | None:
        fresh = self._encode()
        if self.trimmed:
            fresh |= self.trim.update()
        return self._believe() if fresh else None

    def adopt(self, belief: Belief) -> None:
        self.belief = belief
        latent = belief.arrays["latent"]
        if latent is not self._in_use:
            self._in_use = latent
            self.adaptor.set_latent(latent)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd, torque = self.history.last(self.preset.window)[:, ::-1].transpose(0, 2, 3, 1)  # newest first
        ideal, probes = self.context.ideal_response(q[..., 0], qd[..., 0], nominal_torque)
        command = self.adaptor.correction(q, qd, torque, nominal_torque, ideal, probes)
        command += nominal_torque
        command += self.belief.arrays["trim"]
        return command

    def _encode(self) -> bool:
        """Push every column that is due through the encoder; whether there was one."""
        fresh = False
        while self.patches.due:
            column, patch = self.patches.columns, self.patches.next()
            if column >= self.preset.first_column:
                self._latent = self.encoder.push(patch)
                self.trim.adaptor.set_latent(self._latent)
            fresh = True
        return fresh

    def _believe(self) -> Belief:
        return Belief.of(type(self).__name__, self.history.time, latent=self._latent, trim=self.trim.torque)


class FineTuned(TamAdapter):
    """TAM with weights that were fine-tuned for this robot."""

    per_robot = True


class PaperTam(TamAdapter):
    """TAM with the paper's own inputs, queries and loss: no profile, no test payloads, no physical basis, no trim."""

    variant = "tam-paper"
    trimmed = False


class NoTorqueResidual(TamAdapter):
    """TAM without the physics residual in its history, and with everything else: the paper's ablation."""

    variant = "tam-no-etau"


class NoResidual(TamAdapter):
    """TAM without anything that the ideal model says: residual, accelerations and loads."""

    variant = "tam-no-residual"


class ShortWindow(TamAdapter):
    """The torque adaptor alone, without any history beyond its last ticks: the paper's ablation."""

    variant = "short-window"
    trimmed = False
    settings_type = None
    learn_every = 0  # there is nothing to learn, so nothing grows stale

    def _encode(self) -> bool:
        if self.patches.columns:
            return False
        self.patches.next()
        return True


class PrivilegedLatent(TamAdapter):
    """TAM whose latent imitates one made from the true parameters: the paper's comparison with RMA."""

    variant = "privileged"
