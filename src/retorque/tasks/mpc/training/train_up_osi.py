"""Training of UP-OSI: a policy that is told the parameters (by PPO), then the network that reads them off samples."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.perceptron import perceptron
from retorque.learn.policy_gradient import clipped_gain, descend, generalised_advantages, standardised
from retorque.learn.run_folder import RunFolder
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.tasks.mpc.training.swing_env import SwingEnv
from retorque.tasks.mpc.up_osi import HISTORY, HOLD, UP_OSI_TASKS, observation, save_up_osi
from retorque.work.array import Array
from retorque.work.checks import check_between
from retorque.work.errors import unknown
from retorque.work.jobs import progress

CHECKPOINT = 10
"""Updates between checkpoints."""
DISCOUNT, TRACE, CLIP, EPOCHS, MINIBATCH = 0.99, 0.95, 0.2, 4, 1024
"""Of PPO, as usual; a decision lasts `HOLD` samples, so that 0.99 looks 2 to 4 s ahead, as long as a swing takes."""
DEVIATION = (-2.5, 0.0)
"""Bounds of the logarithm of the deviation of what is tried, as a share of the limit."""
ROUNDS = 3
"""Of identification: data of the policy told the truth first, then of the policy told what was identified."""


@dataclass(frozen=True, kw_only=True)
class UpOsiTraining:
    """Settings of `retorque train up-osi`."""

    task: str = "cartpole"
    """cartpole or double-pendulum."""
    steps: int = 26_000_000
    """Steps of all robots while the policy learns."""
    episodes: int = 4
    """Episodes of all robots in each round of identification."""
    groups: int = 16
    """Sets of parameters tried together."""
    each: int = 64
    """Robots of each."""
    length: int = 512
    """Steps of an episode."""
    horizon: int = 32
    """Decisions between two updates."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("up-osi")
    """Folder of checkpoints and weights; a run that was stopped goes on."""


class UpOsi(nn.Module):
    """Policy, value and identification; hidden layers of 64, tanh, as published.

    Args:
        task: sizes.
        motors: inputs.
    """

    def __init__(self, task: MpcTask, motors: int):
        super().__init__()
        seen = observation(task, np.zeros(2 * task.robot.n)).size
        self.policy = perceptron(seen + task.free.size, 64, 64, motors, between=nn.Tanh)
        self.value = perceptron(seen + task.free.size, 64, 64, 1, between=nn.Tanh)
        self.identification = perceptron(
            (HISTORY + 1) * seen + HISTORY * motors, 64, 64, task.free.size, between=nn.Tanh
        )
        self.log_deviation = perceptron(seen + task.free.size, 64, motors, between=nn.Tanh)

    def spread(self, told: Tensor) -> torch.distributions.Normal:
        """What is tried: how far from the policy depends on the masses, as what moves one robot throws another away."""
        return torch.distributions.Normal(self.policy(told), self.log_deviation(told).clamp(*DEVIATION).exp())


def train(settings: UpOsiTraining) -> Path:
    """Learn the policy, then the identification; the path of the weights."""
    if settings.task not in UP_OSI_TASKS:
        raise unknown("task of UP-OSI", settings.task, UP_OSI_TASKS)
    check_between("--steps", settings.steps, 1, 10_000_000_000)
    check_between("--episodes", settings.episodes, 1, 1000)
    check_between("--length", settings.length, 2 * HISTORY, 65536)
    for name in ("groups", "each", "horizon"):
        check_between(f"--{name}", getattr(settings, name), 2, 65536)
    compile_with_progress()
    same = {name: value for name, value in asdict(settings).items() if name not in ("out", "steps")}
    folder = RunFolder(settings.out, same)
    torch.manual_seed(settings.seed)
    begun = time.monotonic()
    learner = UniversalPolicy(make_task(settings.task), settings, folder)
    learner.run()
    error = learner.identify()
    made = {
        "seed": settings.seed,
        "steps": learner.steps,
        "reward": learner.reward,
        "identification_error": error,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    kept = ("policy.", "identification.")
    tensors = {k: v.detach().numpy().copy() for k, v in learner.network.state_dict().items() if k.startswith(kept)}
    return save_up_osi(folder.weights, tensors, learner.task, made)


@dataclass(frozen=True)
class SwingRollout:
    """What happened, (steps, trials, ...)."""

    told: Tensor
    """Observations and parameters."""
    tried: Tensor
    """Inputs as shares."""
    likely: Tensor
    """Log-probability of them."""
    gain: Tensor
    """Advantages."""
    wanted: Tensor
    """Values to learn."""
    reward: Tensor
    """Mean of all."""


class UniversalPolicy:
    """Rollouts and updates, with checkpoints.

    Args:
        task: what is learnt.
        settings: sizes and seed.
        folder: of the run.
    """

    def __init__(self, task: MpcTask, settings: UpOsiTraining, folder: RunFolder):
        self.task, self.settings, self.folder = task, settings, folder
        self.env = SwingEnv(task, settings.groups, settings.each, settings.length, settings.seed)
        self.network = UpOsi(task, self.env.dynamics.inputs)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=5e-4)
        self.updates, self.reward = 0, 0.0
        if folder.checkpoint.exists():
            header, _ = load_checkpoint(folder.checkpoint, self.network, self.optimiser)
            self.updates = int(header["updates"])
            folder.forget_after(self.steps)

    @property
    def steps(self) -> int:
        """Of all robots so far."""
        return self.updates * self.settings.horizon * HOLD * self.env.trials

    def run(self) -> None:
        """Learn the policy."""
        if self.steps >= self.settings.steps:
            return
        self._begin()
        with progress() as bar:
            line = bar.add_task(f"universal policy, {self.task.name}", total=self.settings.steps, completed=self.steps)
            while self.steps < self.settings.steps:
                if self.updates % CHECKPOINT == 0:
                    self._begin()
                generator = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + self.updates)
                rollout = self._roll(generator)
                self._update(rollout, generator)
                self.reward = float(rollout.reward)
                self.updates += 1
                self.folder.note(step=self.steps, reward=self.reward)
                bar.update(line, completed=self.steps, description=f"universal policy, reward {self.reward:.2f}")
        self._begin()

    def _begin(self) -> None:
        """Keep what was learnt; every episode begins anew, so that a run that was stopped goes on as it was."""
        save_checkpoint(self.folder.checkpoint, self.network, self.optimiser, {"updates": self.updates})
        self.env = SwingEnv(
            self.task,
            self.settings.groups,
            self.settings.each,
            self.settings.length,
            int(np.random.SeedSequence([self.settings.seed, self.updates]).generate_state(1)[0]),
        )

    def _told(self, states: Array, p: Array) -> Tensor:
        free = self.task.free
        share = 2.0 * (p - free.lower) / free.span - 1.0
        return torch.as_tensor(np.concatenate([observation(self.task, states), share], axis=-1), dtype=torch.float32)

    def _roll(self, generator: torch.Generator) -> SwingRollout:
        """So many steps of all robots."""
        network, env = self.network, self.env
        kept: list[tuple[Tensor, ...]] = []
        with torch.no_grad():
            told = self._told(env.measured, env.parameters)
            for _ in range(self.settings.horizon):
                spread = network.spread(told)
                tried = spread.mean + spread.stddev * torch.randn(spread.mean.shape, generator=generator)
                likely = spread.log_prob(tried).sum(-1)
                reward, gone, over = self._held(tried.numpy().astype(float))
                after = self._told(env.measured, env.parameters)
                flags = torch.as_tensor(gone.astype(np.float32)), torch.full((env.trials,), float(over))
                values = network.value(told)[:, 0], network.value(after)[:, 0]
                kept.append((told, tried, likely, torch.as_tensor(reward, dtype=torch.float32), *values, *flags))
                if over:
                    env.restart()
                    after = self._told(env.measured, env.parameters)
                told = after
        told, tried, likely, reward_, value, next_value, lost, over_ = (torch.stack(x) for x in zip(*kept, strict=True))
        cut = torch.maximum(lost, over_)
        gain = generalised_advantages(reward_, value, next_value, lost, cut, discount=DISCOUNT, trace=TRACE)
        return SwingRollout(told, tried, likely, gain, gain + value, reward_.mean())

    def _held(self, shares: Array) -> tuple[Array, Array, bool]:
        """The mean reward of a decision's samples, who ran away in them, and whether the episode is over.

        Rewards are scaled so that values stay near one: the value network would need most of a training to reach the
        hundreds that a plain sum comes to, and until then advantages are its errors.
        """
        total, lost, over = np.zeros(self.env.trials), np.zeros(self.env.trials, dtype=bool), False
        for _ in range(HOLD):
            reward, gone, over = self.env.step(shares)
            total += np.where(lost, 0.0, reward)
            lost |= gone
            if over:
                break
        return (1.0 - DISCOUNT) * total / HOLD, lost, over

    def _update(self, rollout: SwingRollout, generator: torch.Generator) -> None:
        """Improve the policy by one rollout."""
        every = (rollout.told, rollout.tried, rollout.likely, rollout.wanted)
        told, tried, likely, wanted = (x.flatten(0, 1) for x in every)
        gain = standardised(rollout.gain)
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(told), generator=generator).split(MINIBATCH):
                ratio = torch.exp(self.network.spread(told[rows]).log_prob(tried[rows]).sum(-1) - likely[rows])
                wrong = nn.functional.mse_loss(self.network.value(told[rows])[:, 0], wanted[rows])
                loss = wrong - clipped_gain(ratio, gain[rows], CLIP)
                descend(loss, self.network.parameters(), self.optimiser, 0.5)

    def identify(self) -> float:
        """Learn to read the parameters off the newest samples; its RMS error as a share of the bounds' width."""
        network = self.network.identification
        optimiser = torch.optim.Adam(network.parameters(), lr=1e-3)
        inputs: list[Tensor] = []
        truths: list[Tensor] = []
        error = np.nan
        generator = torch.Generator().manual_seed(self.settings.seed)
        with progress() as bar:
            line = bar.add_task("identification", total=ROUNDS * self.settings.episodes)
            for number in range(ROUNDS):
                for _ in range(self.settings.episodes):
                    x, y = self._episode(told_truth=number == 0)
                    inputs.append(x)
                    truths.append(y)
                    bar.advance(line)
                x, y = torch.cat(inputs), torch.cat(truths)
                for _ in range(3):
                    for rows in torch.randperm(len(x), generator=generator).split(MINIBATCH):
                        loss = nn.functional.mse_loss(network(x[rows]), y[rows])
                        optimiser.zero_grad(set_to_none=True)
                        loss.backward()
                        optimiser.step()
                error = 0.5 * float(loss.detach()) ** 0.5
        return error

    def _episode(self, *, told_truth: bool) -> tuple[Tensor, Tensor]:
        """Windows (rows, ...) of one episode of all robots, every eighth step, and their parameters as shares."""
        env, free, samples = self.env, self.task.free, HISTORY
        env.restart()
        truth = torch.as_tensor(2.0 * (env.parameters - free.lower) / free.span - 1.0, dtype=torch.float32)
        states, shares = [env.measured], [np.zeros((env.trials, env.dynamics.inputs))] * samples
        believed = np.tile(free.guess, (env.trials, 1))
        rows: list[Tensor] = []
        with torch.no_grad():
            for step in range(self.settings.length):
                if len(states) > samples:
                    seen = np.concatenate(
                        [*(observation(self.task, x) for x in states[-samples - 1 :]), *shares[-samples:]], axis=-1
                    )
                    window = torch.as_tensor(seen, dtype=torch.float32)
                    found = self.network.identification(window).numpy().astype(float)
                    believed = free.clip(free.lower + 0.5 * free.span * (found + 1.0))
                    if step % 8 == 0:
                        rows.append(window)
                if step % HOLD == 0:
                    p = env.parameters if told_truth else believed
                    share = self.network.policy(self._told(states[-1], p)).numpy().astype(float)
                    sent = np.clip(share, -1.0, 1.0)
                env.step(sent)
                states.append(env.measured)
                shares.append(sent)
        return torch.cat(rows), truth.repeat(len(rows), 1)
