"""Training of a pushing policy by proximal policy optimisation: in the forward model first, then on the engine."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.curves import draw_curves
from retorque.learn.run_folder import RunFolder
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.push_model import load_push_model
from retorque.tasks.push.push_network import save_push_network
from retorque.tasks.push.training.actor_critic import ActorCritic, PpoSettings, Rollout, update
from retorque.tasks.push.training.push_env import PushEnv
from retorque.tasks.push.training.push_worlds import PushWorld, SimulatedPushes
from retorque.tasks.push.training.sagging_pushes import SaggingPushes
from retorque.work.array import Array
from retorque.work.checks import check_between
from retorque.work.jobs import progress

CHECKPOINT = 10
"""Updates between checkpoints; there every episode begins anew, so that a run that was stopped goes on as it was."""
LEVELS = (-1.0, 0.5, 1.0)
"""The curriculum: shares of the task's turns; below zero only the place counts."""
MASTERED = 0.85
"""Share of episodes that must end well before the next level."""
RECENT = 400
"""Episodes that the share is taken of."""


@dataclass(frozen=True, kw_only=True)
class PpoTraining:
    """Settings of `retorque train push --method ppo`."""

    robot: str = "panda"
    """An arm whose gripper points down at home."""
    imagined: int = 400_000
    """Pushes in the planner's forward model, which cost next to nothing."""
    steps: int = 20_000
    """Pushes on the engine after that."""
    environments: int = 128
    """Boxes pushed together."""
    horizon: int = 8
    """Pushes of each box between two updates."""
    width: int = 128
    """Of the hidden layers."""
    place_only: bool = False
    """Learn to push to a place, whatever the yaw."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("push-ppo")
    """Folder of checkpoints and weights; a run that was stopped goes on."""


def check_ppo(settings: PpoTraining) -> None:
    """Refuse what cannot be trained."""
    check_between("--imagined", settings.imagined, 0, 10_000_000_000)
    check_between("--steps", settings.steps, 1, 10_000_000_000)
    check_between("--environments", settings.environments, 1, 65536)
    check_between("--horizon", settings.horizon, 2, 4096)
    check_between("--width", settings.width, 8, 1024)


def identity(settings: PpoTraining) -> dict[str, object]:
    """What must not change between the parts of a run; it may be made longer."""
    return {name: value for name, value in asdict(settings).items() if name not in ("out", "steps")}


def train(settings: PpoTraining) -> Path:
    """Learn by trying; the path of the weights."""
    check_ppo(settings)
    robot = Robot.load(settings.robot)
    folder = RunFolder(settings.out, identity(settings))
    begun = time.monotonic()
    torch.manual_seed(settings.seed)
    network = ActorCritic(settings.width)

    def world(imagined: bool) -> PushWorld:
        if imagined:
            ideal = Parameters.ideal(robot, settings.environments)
            return SaggingPushes(robot, load_push_model(), ideal, settings.seed)
        return SimulatedPushes(robot, Robots.ideal(robot, settings.environments))

    env = PushEnv(robot, world(True), settings.seed)
    learner = Learner(network, env, folder, settings)
    levels = LEVELS[:1] if settings.place_only else LEVELS
    learner.run(learner.updates_of(settings.imagined), levels)
    env.world = world(False)
    if settings.imagined:
        learner.ppo = PpoSettings(learning_rate=3e-4)  # what was imagined is only to be mended
    learner.run(learner.updates_of(settings.imagined) + learner.updates_of(settings.steps), levels)
    draw_curves(folder.metrics(), settings.out / "curves.png")
    made = {
        "seed": settings.seed,
        "imagined": settings.imagined,
        "pushes": learner.steps,
        "success": learner.share(),
        "level": learner.level,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    return save_push_network(folder.weights, learnt_tensors(network), robot, made)


def learnt_tensors(network: ActorCritic) -> dict[str, Array]:
    """The actor, the critic for whoever goes on learning, and the history's encoder where there is one."""
    return {
        name: value.detach().numpy().copy()
        for name, value in network.state_dict().items()
        if name.startswith(("actor.", "critic.", "encoder.", "log_deviation"))
    }


class Learner:
    """Rollouts and updates, with checkpoints.

    Args:
        network: what learns; taken from the folder's checkpoint where there is one.
        env: where it tries.
        folder: of the run.
        settings: sizes and seed.
        renew: gives the environment other robots and says what is hidden about them (trials, numbers), for RMA; called
            with the number of updates at every checkpoint.
        ppo: settings of an update.
    """

    def __init__(
        self,
        network: ActorCritic,
        env: PushEnv,
        folder: RunFolder,
        settings: PpoTraining,
        renew: Callable[[int], Array] | None = None,
        ppo: PpoSettings | None = None,
    ):
        self.network, self.env, self.folder, self.settings = network, env, folder, settings
        self.ppo = ppo or PpoSettings()
        self._renew, self.physics = renew, torch.zeros(env.trials, 0)
        self.optimiser = torch.optim.Adam(network.parameters(), lr=self.ppo.learning_rate)
        self.updates, self.level = 0, 0
        self._recent: deque[bool] = deque(maxlen=RECENT)
        if folder.checkpoint.exists():
            header, _ = load_checkpoint(folder.checkpoint, network, self.optimiser)
            self.updates, self.level = int(header["updates"]), int(header["level"])
            self._recent.extend(bool(x) for x in header["recent"])
            folder.forget_after(self.steps)

    @property
    def steps(self) -> int:
        """Pushes so far."""
        return self.updates * self.settings.horizon * self.env.trials

    def share(self) -> float:
        """Of the recent episodes that ended well."""
        return float(np.mean(self._recent)) if self._recent else 0.0

    def updates_of(self, pushes: int) -> int:
        """Updates that so many pushes fill, the last one whole: what was imagined is never taken off the engine."""
        return -(-pushes // (self.settings.horizon * self.env.trials))

    def run(self, updates: int, levels: tuple[float, ...]) -> None:
        """Learn until so many updates were made, through the levels of the curriculum."""
        if self.updates >= updates:
            return
        begun, each = self.updates, self.settings.horizon * self.env.trials
        with progress() as bar:
            task = bar.add_task("push", total=updates * each, completed=self.steps)
            while self.updates < updates:
                self._set_level(levels)
                if self.updates % CHECKPOINT == 0 or self.updates == begun:
                    self._checkpoint()
                generator = torch.Generator().manual_seed(self.settings.seed * 1_000_003 + self.updates)
                rollout, reward = self._roll(generator)
                figures = update(self.network, self.optimiser, rollout, self.ppo, generator)
                self.updates += 1
                self.folder.note(step=self.steps, success=self.share(), level=self.level, reward=reward, **figures)
                bar.update(task, advance=each, description=f"push, level {self.level}, {self.share():.0%} arrive")
        self._checkpoint()

    def _set_level(self, levels: tuple[float, ...]) -> None:
        if len(self._recent) == RECENT and self.share() > MASTERED and self.level < len(levels) - 1:
            self.level += 1
            self._recent.clear()
        share = levels[min(self.level, len(levels) - 1)]
        self.env.any_yaw, self.env.yaw_share = share < 0.0, max(share, 0.0)
        for group in self.optimiser.param_groups:
            group["lr"] = self.ppo.learning_rate

    def _checkpoint(self) -> None:
        header = {"updates": self.updates, "level": self.level, "recent": [bool(x) for x in self._recent]}
        save_checkpoint(self.folder.checkpoint, self.network, self.optimiser, header)
        if self._renew is not None:
            self.physics = torch.as_tensor(self._renew(self.updates), dtype=torch.float32)
        self.env.restart(int(np.random.SeedSequence([self.settings.seed, self.updates]).generate_state(1)[0]))

    def _roll(self, generator: torch.Generator) -> tuple[Rollout, float]:
        """One rollout, and the mean reward of a push."""
        network, env = self.network, self.env
        kept: list[tuple[torch.Tensor, ...]] = []
        with torch.no_grad():
            for _ in range(self.settings.horizon):
                view = env.view
                observation = torch.as_tensor(view.observe(), dtype=torch.float32)
                seen = network.seen(observation, self.physics)
                choice = network.choice(seen)
                tried = choice.numbers + choice.deviation * torch.randn(choice.numbers.shape, generator=generator)
                options = view.pushes(tried.numpy().astype(float))
                fine = torch.as_tensor(view.reachable(options))
                likely = torch.softmax(choice.preference.masked_fill(~fine, -1e9), dim=-1)
                side = torch.multinomial(likely, 1, generator=generator)[:, 0]
                rows = side.numpy()
                numbers = tried.numpy().astype(float)[np.arange(env.trials), rows]
                reward, over, late, arrived = env.push(options.take(rows), numbers)
                reached = torch.as_tensor(env.view.observe(), dtype=torch.float32)
                after = network.value(network.seen(reached, self.physics))
                ended = over | late
                self._recent.extend(bool(x) for x in arrived[ended])
                probable, _ = choice.log_probability(side, tried, fine)
                flags = (torch.as_tensor(x.astype(np.float32)) for x in (reward, over, ended))
                kept.append((observation, side, tried, fine, probable, network.value(seen), after, *flags))
                env.begin(ended)
        seen, side, tried, fine, probable, value, after, gained, over_, cut = (
            torch.stack(x) for x in zip(*kept, strict=True)
        )
        rollout = Rollout(seen, side, tried, fine, probable, value, after, gained, over_, cut, self.physics)
        return rollout, float(gained.mean())
