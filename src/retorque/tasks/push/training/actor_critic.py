"""Actor and critic of the pushing policy in PyTorch, and the updates of proximal policy optimisation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from retorque.learn.perceptron import perceptron
from retorque.learn.policy_gradient import clipped_gain, descend, generalised_advantages, standardised
from retorque.tasks.push.push_choice import NUMBERS, OBSERVATIONS, SENSED, SIDES
from retorque.tasks.push.push_network import HISTORY, OUTPUTS


@dataclass(frozen=True, kw_only=True)
class PpoSettings:
    """Settings of an update."""

    learning_rate: float = 1e-3
    """Of Adam."""
    epochs: int = 6
    """Passes over the data of an update."""
    minibatch: int = 512
    """Pushes in a step."""
    discount: float = 0.95
    """Of a push later."""
    trace: float = 0.9
    """λ of the generalised advantage estimate."""
    clip: float = 0.2
    """How far the ratio of probabilities may move."""
    entropy: float = 0.005
    """Weight of the entropy."""
    divergence: float = 0.03
    """An update stops beyond this mean divergence from the old policy."""


@dataclass
class Choice:
    """What the actor proposes, (..., SIDES) and (..., SIDES, NUMBERS)."""

    preference: Tensor
    numbers: Tensor
    deviation: Tensor
    """(NUMBERS,)"""

    def log_probability(self, side: Tensor, numbers: Tensor, fine: Tensor) -> tuple[Tensor, Tensor]:
        """Of a side (...) and all sides' numbers where only `fine` sides could be chosen; and the entropy.

        Only the numbers of the chosen side have a say in what happens.
        """
        logits = torch.log_softmax(self.preference.masked_fill(~fine, -1e9), dim=-1)
        spread = torch.distributions.Normal(self.numbers, self.deviation)
        each = spread.log_prob(numbers).sum(-1)
        own = (logits + each).gather(-1, side[..., None])[..., 0]
        entropy = -(logits.exp() * logits.clamp(min=-50.0)).sum(-1) + spread.entropy().sum(-1).mean(-1)
        return own, entropy


class ActorCritic(nn.Module):
    """A side by its preference, a push by a Gaussian, and a value; with `physics` numbers, all see a latent (RMA).

    Args:
        width: of the hidden layers.
        physics: numbers about a robot that its encoder sees; 0: no latent.
        latent: numbers of the latent.
    """

    def __init__(self, width: int = 128, physics: int = 0, latent: int = 8):
        super().__init__()
        self.latent = latent if physics else 0
        self.actor = perceptron(OBSERVATIONS + self.latent, width, width, OUTPUTS)
        self.critic = perceptron(OBSERVATIONS + self.latent, width, width, 1)
        self.log_deviation = nn.Parameter(torch.tensor([-0.7] * 3 + [-2.5] * (NUMBERS - 3)))
        self.physics = perceptron(physics, 64, 32, latent) if physics else None
        self.encoder = perceptron(HISTORY * SENSED, 64, 32, latent) if physics else None
        last = self.actor[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight *= 0.1
            last.bias.zero_()

    def seen(self, observation: Tensor, physics: Tensor) -> Tensor:
        """Observation with the latent of the true physics, where there is one."""
        if self.physics is None:
            return observation
        return torch.cat([observation, torch.tanh(self.physics(physics))], dim=-1)

    def choice(self, seen: Tensor) -> Choice:
        """What the actor proposes."""
        out = self.actor(seen)
        numbers = out[..., SIDES:].unflatten(-1, (SIDES, NUMBERS))
        return Choice(out[..., :SIDES], numbers, self.log_deviation.clamp(-4.0, 0.0).exp())

    def value(self, seen: Tensor) -> Tensor:
        """What is still to come."""
        return self.critic(seen)[..., 0]

    def start_from(self, other: ActorCritic) -> None:
        """Take over a policy that has no latent: what the latent does is to be learnt."""
        with torch.no_grad():
            for mine, theirs in ((self.actor, other.actor), (self.critic, other.critic)):
                for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
                    if a.shape == b.shape:
                        a.copy_(b)
                    else:
                        a.zero_()
                        a[:, : b.shape[1]].copy_(b)
            self.log_deviation.copy_(other.log_deviation)


@dataclass
class Rollout:
    """What happened in `steps` pushes of `trials` robots, (steps, trials, ...)."""

    observation: Tensor
    side: Tensor
    numbers: Tensor
    fine: Tensor
    """Which sides could be chosen."""
    log_probability: Tensor
    value: Tensor
    after: Tensor
    """Value of what a push led to, before anything began anew."""
    reward: Tensor
    over: Tensor
    """1 where an episode ended for good, so that nothing follows."""
    cut: Tensor
    """1 where an episode ended, for good or by time."""
    physics: Tensor
    """(trials, numbers)"""


def update(
    network: ActorCritic, optimiser: torch.optim.Optimizer, rollout: Rollout, s: PpoSettings, generator: torch.Generator
) -> dict[str, float]:
    """Improve the policy by one rollout; what happened in figures."""
    steps, trials = rollout.reward.shape
    r = rollout
    gain = generalised_advantages(r.reward, r.value, r.after, r.over, r.cut, discount=s.discount, trace=s.trace)
    wanted = (gain + rollout.value).flatten()
    gain = standardised(gain)
    observation, side, numbers, fine, old = (
        x.flatten(0, 1)
        for x in (rollout.observation, rollout.side, rollout.numbers, rollout.fine, rollout.log_probability)
    )
    physics = rollout.physics.expand(steps, *rollout.physics.shape).flatten(0, 1)
    moved, value_loss = 0.0, 0.0
    for _ in range(s.epochs):
        order = torch.randperm(steps * trials, generator=generator)
        for rows in order.split(s.minibatch):
            seen = network.seen(observation[rows], physics[rows])
            new, entropy = network.choice(seen).log_probability(side[rows], numbers[rows], fine[rows])
            ratio = torch.exp(new - old[rows])
            gained = clipped_gain(ratio, gain[rows], s.clip)
            wrong = nn.functional.smooth_l1_loss(network.value(seen), wanted[rows])
            loss = -gained + wrong - s.entropy * entropy.mean()
            descend(loss, network.parameters(), optimiser, 1.0)
            with torch.no_grad():
                moved = float((ratio - 1.0 - (new - old[rows])).mean())
                value_loss = float(wrong)
        if moved > s.divergence:
            break
    deviation = float(network.log_deviation.exp().mean().detach())
    return {"divergence": moved, "value_loss": value_loss, "deviation": deviation}
