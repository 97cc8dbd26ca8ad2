"""Training of UniFP and FACET by proximal policy optimisation, on a scale of minutes."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.curves import draw_curves
from retorque.learn.perceptron import perceptron
from retorque.learn.policy_gradient import clipped_gain, descend, generalised_advantages, standardised
from retorque.learn.run_folder import RunFolder
from retorque.tasks.comply.draw_task import DrawSettings, DrawTask
from retorque.tasks.force_policies.force_arm import force_arm
from retorque.tasks.force_policies.force_network import FORCE, FORCE_POLICIES, save_force_policy
from retorque.tasks.force_policies.training.force_env import ForceEnv
from retorque.work.checks import check_between
from retorque.work.errors import unknown
from retorque.work.jobs import progress

CHECKPOINT = 10
"""Updates between checkpoints; there every arm begins anew, so that a run that was stopped goes on as it was."""
DISCOUNT, TRACE, CLIP, EPOCHS, MINIBATCH = 0.97, 0.95, 0.2, 4, 1024
"""Of PPO."""
SCALE = 0.05
"""Rewards are multiplied by this, so that values are about 1 to 10."""
PRIVILEGED = 6
"""Numbers that only the value is told."""


@dataclass(frozen=True, kw_only=True)
class ForceTraining:
    """Settings of `retorque train force`."""

    method: str = "unifp"
    """unifp or facet."""
    steps: int = 1_000_000
    """Ticks of all arms (50 a second); published trainings have hundreds of millions."""
    arms: int = 128
    """That learn together."""
    horizon: int = 32
    """Ticks between two updates."""
    width: int = 96
    """Of the two hidden layers."""
    learning_rate: float = 1e-3
    """At the start; it falls to a tenth."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("force-policy")
    """Folder of checkpoints and weights; a run that was stopped goes on."""


class ForceActorCritic(nn.Module):
    """Policy, value, and for UniFP the estimator that the policy is told by."""

    def __init__(self, method: str, seen: int, joints: int, width: int):
        super().__init__()
        self.estimator: nn.Sequential | None = perceptron(seen, width, width, 3) if method == "unifp" else None
        told = seen + (3 if method == "unifp" else 0)
        self.policy = perceptron(told, width, width, joints)
        self.value = perceptron(seen + PRIVILEGED, width, width, 1)
        self.log_deviation = nn.Parameter(torch.full((joints,), -1.3))
        last = self.policy[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.mul_(0.1)  # begins near home

    def mean(self, seen: Tensor) -> Tensor:
        """Actions without noise; the estimate is told as it is, not trained through."""
        if self.estimator is None:
            return torch.as_tensor(self.policy(seen))
        with torch.no_grad():
            force = self.estimator(seen)
        return torch.as_tensor(self.policy(torch.cat([seen, force], dim=-1)))


def train(settings: ForceTraining) -> Path:
    """Learn by trying; the path of the weights."""
    if settings.method not in FORCE_POLICIES:
        raise unknown("force policy", settings.method, FORCE_POLICIES)
    check_between("--steps", settings.steps, 1, 10_000_000_000)
    for name in ("arms", "horizon", "width"):
        check_between(f"--{name}", getattr(settings, name), 2, 65536)
    same = {name: value for name, value in asdict(settings).items() if name not in ("out", "steps")}
    folder = RunFolder(settings.out, same)
    begun = time.monotonic()
    torch.manual_seed(settings.seed)
    learner = ForceLearner(settings, folder)
    learner.run()
    draw_curves(folder.metrics(), settings.out / "curves.png")
    made = {
        "method": settings.method,
        "seed": settings.seed,
        "steps": learner.steps,
        "reward": learner.reward,
        "error_mm": 1e3 * learner.error,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    kept = ("policy.", "estimator.")
    tensors = {k: v.detach().numpy().copy() for k, v in learner.network.state_dict().items() if k.startswith(kept)}
    return save_force_policy(folder.weights, tensors, learner.robot, made)


@dataclass(frozen=True)
class ForceRollout:
    """What happened, (steps, arms, ...)."""

    seen: Tensor
    privileged: Tensor
    tried: Tensor
    likely: Tensor
    """Log-probability of what was tried."""
    gain: Tensor
    """Advantages."""
    wanted: Tensor
    """Values to learn."""


class ForceLearner:
    """Rollouts and updates, with checkpoints.

    Args:
        settings: sizes and seed.
        folder: of the run.
    """

    def __init__(self, settings: ForceTraining, folder: RunFolder):
        self.settings, self.folder = settings, folder
        scene = DrawTask(DrawSettings(robot="toddlerbot_2xm", trials=1))
        self.robot, self._body = scene.robot, scene.body
        self._arm, _ = force_arm(scene.robot, scene.start)
        self.env = self._environment(0)
        self.network = ForceActorCritic(settings.method, self.env.view.size, self._arm.n, settings.width)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate)
        self.updates, self.reward, self.error = 0, 0.0, 0.0
        if folder.checkpoint.exists():
            header, _ = load_checkpoint(folder.checkpoint, self.network, self.optimiser)
            self.updates = int(header["updates"])
            folder.forget_after(self.steps)
            for point in folder.metrics()[-1:]:
                self.reward, self.error = point["reward"], point["error"]

    def _environment(self, updates: int) -> ForceEnv:
        s = self.settings
        seed = int(np.random.SeedSequence([s.seed, updates]).generate_state(1)[0])
        return ForceEnv(s.method, self._arm, self._body, s.arms, seed)

    @property
    def steps(self) -> int:
        """Of all arms so far."""
        return self.updates * self.settings.horizon * self.settings.arms

    def run(self) -> None:
        """Learn until the steps are made."""
        s = self.settings
        begun = self.updates
        with progress() as bar:
            line = bar.add_task(s.method, total=s.steps, completed=self.steps)
            while self.steps < s.steps:
                if self.updates % CHECKPOINT == 0 or self.updates == begun:
                    save_checkpoint(self.folder.checkpoint, self.network, self.optimiser, {"updates": self.updates})
                    self.env = self._environment(self.updates)
                    self._seen = _tensor(self.env.restart())
                generator = torch.Generator().manual_seed(s.seed * 1_000_003 + self.updates)
                rate = s.learning_rate * max(0.1, 1.0 - self.steps / s.steps)
                for group in self.optimiser.param_groups:
                    group["lr"] = rate
                rollout = self._roll(generator)
                wrong = self._update(rollout, generator)
                self.updates += 1
                self.error = self.env.error()
                figures = {"reward": self.reward, "error": self.error}
                if self.network.estimator is not None:
                    figures["force_error"] = wrong
                self.folder.note(
                    step=self.steps, deviation=float(self.network.log_deviation.detach().exp().mean()), **figures
                )
                bar.update(line, completed=self.steps, description=f"{s.method}, reward {self.reward:.2f}")
        save_checkpoint(self.folder.checkpoint, self.network, self.optimiser, {"updates": self.updates})

    def _roll(self, generator: torch.Generator) -> ForceRollout:
        network, env = self.network, self.env
        kept: list[tuple[Tensor, ...]] = []
        total = 0.0
        with torch.no_grad():
            deviation = network.log_deviation.exp()
            for _ in range(self.settings.horizon):
                seen, extra = self._seen, _tensor(env.privileged())
                mean = network.mean(seen)
                tried = mean + deviation * torch.randn(mean.shape, generator=generator)
                likely = torch.distributions.Normal(mean, deviation).log_prob(tried).sum(-1)
                after, reward = env.step(tried.numpy().astype(float))
                total += float(reward.mean())
                self._seen = _tensor(after)
                values = [
                    network.value(torch.cat(x, dim=-1))[:, 0]
                    for x in ((seen, extra), (self._seen, _tensor(env.privileged())))
                ]
                kept.append((seen, extra, tried, likely, SCALE * _tensor(reward), *values))
        seen, extra, tried, likely, paid, value, after_ = (torch.stack(x) for x in zip(*kept, strict=True))
        never = torch.zeros_like(paid)  # no episode ends: commands follow each other
        gain = generalised_advantages(paid, value, after_, never, never, discount=DISCOUNT, trace=TRACE)
        self.reward = total / self.settings.horizon
        return ForceRollout(seen, extra, tried, likely, gain, gain + value)

    def _update(self, rollout: ForceRollout, generator: torch.Generator) -> float:
        """Improve by one rollout; the estimator's error [N]."""
        r = rollout
        every = (r.seen, r.privileged, r.tried, r.likely, r.wanted)
        seen, extra, tried, likely, wanted = (x.flatten(0, 1) for x in every)
        gain = standardised(r.gain)
        network, error = self.network, 0.0
        for _ in range(EPOCHS):
            for rows in torch.randperm(len(seen), generator=generator).split(MINIBATCH):
                spread = torch.distributions.Normal(network.mean(seen[rows]), network.log_deviation.exp())
                ratio = torch.exp(spread.log_prob(tried[rows]).sum(-1) - likely[rows])
                value = network.value(torch.cat([seen[rows], extra[rows]], dim=-1))[:, 0]
                loss = 0.5 * nn.functional.smooth_l1_loss(value, wanted[rows]) - clipped_gain(ratio, gain[rows], CLIP)
                if network.estimator is not None:
                    found = nn.functional.mse_loss(network.estimator(seen[rows]), extra[rows, :3])
                    loss, error = loss + found, FORCE * float(found.detach()) ** 0.5
                descend(loss, network.parameters(), self.optimiser, 0.5)
                with torch.no_grad():
                    network.log_deviation.clamp_(-3.0, 0.0)
        return error


def _tensor(array: np.ndarray) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float32)
