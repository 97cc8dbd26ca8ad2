"""Training of RMA for the push: a policy that knows the physics, then an encoder that reads them off history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from retorque.learn.curves import draw_curves
from retorque.learn.run_folder import RunFolder
from retorque.learn.weights import load_network
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.push_model import load_push_model
from retorque.tasks.push.push_network import FORMAT, NETWORK, PPO, PushNetwork, save_push_network
from retorque.tasks.push.training.actor_critic import ActorCritic, PpoSettings
from retorque.tasks.push.training.push_env import PushEnv, PushReward
from retorque.tasks.push.training.push_worlds import HOLD, PushWorld, SimulatedPushes
from retorque.tasks.push.training.sagging_pushes import SaggingPushes
from retorque.tasks.push.training.train_ppo import Learner, PpoTraining, check_ppo, identity, learnt_tensors
from retorque.work.array import Array
from retorque.work.checks import check_between
from retorque.work.jobs import progress

PAYLOAD = 1.0
"""Largest payload on top of what is hidden: the bench's other condition [kg]."""
SAMPLE = 512
"""Robots that the scale of the physics is taken of."""


@dataclass(frozen=True, kw_only=True)
class RmaTraining(PpoTraining):
    """Settings of `retorque train rma`."""

    imagined: int = 400_000
    """Pushes of the policy that knows the physics, imagined with hands that sag and lag."""
    steps: int = 20_000
    """Its pushes on the engine after that."""
    history_updates: int = 40
    """Updates of the encoder that reads the latent off history, on imagined pushes."""
    engine_updates: int = 4
    """The same on the engine after that."""
    start: Path = PPO
    """Weights of the policy to begin with, made on the ideal robot."""
    out: Path = Path("push-rma")
    """Folder of checkpoints and weights; a run that was stopped goes on."""


def train(settings: RmaTraining) -> Path:
    """Learn on robots with hidden parameters; the path of the weights."""
    check_ppo(settings)
    check_between("--history-updates", settings.history_updates, 1, 1_000_000)
    check_between("--engine-updates", settings.engine_updates, 0, 1_000_000)
    robot = Robot.load(settings.robot)
    known = {name: torch.tensor(value) for name, value in load_network(settings.start, NETWORK, FORMAT)[0].items()}
    own = {
        name: value for name, value in identity(settings).items() if name not in ("history_updates", "engine_updates")
    }
    folder = RunFolder(settings.out, own)
    begun = time.monotonic()
    physics = HiddenPhysics(robot, settings.environments, settings.seed)
    engine = SimulatedPushes(robot, Robots.hidden(robot, settings.environments, settings.seed), hold=HOLD)
    imagined = SaggingPushes(robot, load_push_model(), engine.target.parameters, settings.seed)
    env = PushEnv(robot, imagined, settings.seed, PushReward(shifted=0.0))
    torch.manual_seed(settings.seed)
    network = ActorCritic(settings.width, physics.size)
    teacher = ActorCritic(settings.width)
    teacher.load_state_dict(known)
    network.start_from(teacher)
    with torch.no_grad():
        network.log_deviation[3:] = -1.2  # shifts are what the ideal robot never had to try

    def renew(updates: int) -> Array:
        parameters = physics.draw(updates)
        imagined.set_parameters(parameters)
        engine.target.set_parameters(parameters)
        return physics.numbers(parameters)

    learner = Learner(network, env, folder, settings, renew, PpoSettings(learning_rate=5e-4))
    learner.run(learner.updates_of(settings.imagined), (1.0,))
    env.world = engine
    learner.run(learner.updates_of(settings.imagined) + learner.updates_of(settings.steps), (1.0,))
    knowing = learner.share()
    left = learn_history(network, env, (imagined, engine), renew, settings, folder)
    draw_curves(folder.metrics(), settings.out / "curves.png")
    made = {
        "seed": settings.seed,
        "pushes": learner.steps,
        "imagined": settings.imagined,
        "success": knowing,
        "history_updates": settings.history_updates,
        "latent_error": left,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    return save_push_network(folder.weights, learnt_tensors(network), robot, made)


class HiddenPhysics:
    """Robots with hidden parameters, and those as numbers around one.

    Args:
        robot: the ideal robot.
        trials: robots at a time.
        seed: of them.
    """

    def __init__(self, robot: Robot, trials: int, seed: int):
        self.robot, self.trials, self._seed = robot, trials, seed
        some = self._sample(SAMPLE, 0).flatten()
        self._mean, spread = some.mean(axis=0), some.std(axis=0)
        self._varies = spread > 1e-9
        self._spread = spread[self._varies]
        self.size = int(self._varies.sum())
        """Numbers that vary."""

    def draw(self, number: int) -> Parameters:
        """The robots of that number."""
        return self._sample(self.trials, number + 1)

    def numbers(self, parameters: Parameters) -> Array:
        """(trials, size)"""
        return (parameters.flatten() - self._mean)[:, self._varies] / self._spread

    def _sample(self, trials: int, number: int) -> Parameters:
        rng = np.random.default_rng(np.random.SeedSequence([self._seed, number, 7]))
        parameters = Parameters.sample(self.robot, profile_of(self.robot), trials, rng)
        return parameters.with_payload(parameters.payload_mass + rng.uniform(0.0, PAYLOAD, trials))


def learn_history(
    network: ActorCritic,
    env: PushEnv,
    worlds: tuple[PushWorld, PushWorld],
    renew: Callable[[int], Array],
    settings: RmaTraining,
    folder: RunFolder,
) -> float:
    """Teach the encoder the latent on what the policy does with the encoder's own latent; RMS error of the latent.

    Args:
        network: whose encoder learns.
        env: where it tries.
        worlds: imagined, then the engine.
        renew: other robots, and what is hidden about them.
        settings: how many updates in each.
        folder: of the run.
    """
    assert network.encoder is not None and network.physics is not None
    optimiser = torch.optim.Adam(network.encoder.parameters(), lr=1e-3)
    histories: list[torch.Tensor] = []
    latents: list[torch.Tensor] = []
    generator = torch.Generator().manual_seed(settings.seed)
    wrong = float("nan")
    with progress() as bar:
        total = settings.history_updates + settings.engine_updates
        task = bar.add_task("history", total=total)
        for number in range(total):
            if number in (0, settings.history_updates):
                env.world = worlds[int(number > 0)]
                histories, latents = [], []
            seed = settings.seed * 7919 + number
            latent = torch.tanh(network.physics(torch.as_tensor(renew(seed), dtype=torch.float32))).detach()
            env.restart(seed)
            own = PushNetwork(learnt_tensors(network))
            rows = np.arange(env.trials)
            for _ in range(settings.horizon):
                histories.append(torch.as_tensor(env.history.reshape(env.trials, -1), dtype=torch.float32))
                latents.append(latent)
                view = env.view
                preference, numbers = own(view.observe(), env.history)
                options = view.pushes(numbers)
                best = np.argmax(np.where(view.reachable(options), preference, -np.inf), axis=-1)
                _, over, late, _ = env.push(options.take(best), numbers[rows, best])
                env.begin(over | late)
            x, y = torch.cat(histories), torch.cat(latents)
            wrong = _fit(network.encoder, optimiser, x, y, generator)
            folder.note(step=settings.imagined + settings.steps + number + 1, latent_error=wrong)
            bar.advance(task)
    return wrong


def _fit(
    encoder: nn.Module, optimiser: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, generator: torch.Generator
) -> float:
    """Fit latents (rows, L) to histories (rows, H); RMS error of the last batch."""
    loss = torch.zeros(())
    for _ in range(150):
        chosen = torch.randint(len(x), (512,), generator=generator)
        loss = nn.functional.mse_loss(encoder(x[chosen]), y[chosen])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
    return float(loss.detach()) ** 0.5
