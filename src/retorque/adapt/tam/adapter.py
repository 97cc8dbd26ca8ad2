"""TAM behind the adapters' interface: a streaming encoder and the torque adaptor, in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.encoder import StreamingEncoder
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.history import History
from retorque.adapt.tam.recent import Recent
from retorque.adapt.tam.tam_weights import find, load_weights
from retorque.adapt.tam.trim import SPAN, Trim
from retorque.learn.weights import check_weights as check
from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


class TamAdapter(Adapter):
    """The Torque Adaptation Module.

    `observe` stores a tick; `learn` makes a new column of tokens once 200 new samples are there; `correct` asks the
    adaptor. The first latent knows the robot's profile only; the first that has seen motion comes after 0.23 s.

    Args:
        weights: a file of weights; default: the ones on board for this adapter.
    """

    learn_every = 1
    variant = "tam"
    per_robot = False
    trimmed = True
    """Whether recent errors of the adaptor are taken out between latents."""

    def __init__(
        self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0, *, weights: Path | None = None
    ):
        super().__init__(robot, trials, timestep, seed)
        path = weights or find(self.variant, robot.name if self.per_robot else "")
        tensors, preset, self.header = load_weights(path)
        check(self.header, path, robot, timestep)
        self.preset = preset
        self.context = Context(robot)
        self.history = History(self.context, preset, trials, timestep)
        self._tensors = tensors
        self.encoder = StreamingEncoder(tensors, preset, self.context, trials)
        self.adaptor = FastAdaptor(tensors, preset, self.context)
        self.recent = Recent(max(SPAN, preset.window), trials, robot.n)
        self.trim = Trim(self.context, self.adaptor, self.recent, trials, timestep)
        self.reset()

    def reset(self) -> None:
        self.history.reset()
        self.encoder.reset()
        self.recent.reset()
        self.trim.reset()
        self.learn()

    def observe(self, state: State) -> None:
        if self.history.add(state):
            self.recent.add(state)
            self.trim.add(state.time)

    def learn(self) -> None:
        while self.history.due:
            self.adaptor.set_latent(self.encoder.push(self.history.patch()))
        if self.trimmed:
            self.trim.update()

    def correct(self, state: State, nominal_torque: Array) -> Array:
        q, qd, torque = self.recent.last(0, self.preset.window).transpose(0, 2, 3, 1)
        ideal, probes = self.context.ideal_response(q[..., 0], qd[..., 0], nominal_torque)
        command = self.adaptor.correction(q, qd, torque, nominal_torque, ideal, probes)
        command += nominal_torque
        command += self.trim.torque
        return command


class FineTuned(TamAdapter):
    """TAM with weights that were fine-tuned for this robot."""

    per_robot = True


class NoResidual(TamAdapter):
    """TAM without the physics residual in its history: the paper's ablation."""

    variant = "tam-no-residual"


class ShortWindow(TamAdapter):
    """The torque adaptor alone, without any history beyond its last ticks: the paper's ablation."""

    variant = "short-window"

    def learn(self) -> None:
        if self.history.columns == 0:
            self.history.patch()
            self.adaptor.set_latent(np.zeros((self.trials, self.robot.n, self.preset.latent), dtype=np.float32))


class PrivilegedLatent(TamAdapter):
    """TAM whose latent imitates one made from the true parameters: the paper's comparison with RMA."""

    variant = "privileged"
