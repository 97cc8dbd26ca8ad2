"""The tasks as Gymnasium environments: Gymnasium's own checker, the same seed twice, actions that are no actions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from retorque.work.errors import RetorqueError

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra rl: pip install 'retorque[rl]'")

from gymnasium.utils.env_checker import check_env  # noqa: E402

from retorque.envs import TaskEnv  # noqa: E402


@pytest.mark.parametrize("task", ("push", "flip", "ball"))
def test_gymnasiums_own_checker_finds_nothing(task: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(TaskEnv(task), skip_render_check=True)


def test_the_same_seed_gives_the_same_episode_and_another_seed_another_robot() -> None:
    def episode(seed: int) -> np.ndarray:
        env = TaskEnv("flip", adapter="recursive")
        rows = [env.reset(seed=seed)[0]]
        rows += [env.step(np.array([0.1, -0.2, -0.5]))[0] for _ in range(4)]
        return np.array(rows)

    first = episode(3)
    np.testing.assert_array_equal(first, episode(3))
    assert np.abs(first - episode(4)).max() > 1e-3


def test_what_is_hidden_makes_a_difference() -> None:
    ends = []
    for hidden in (False, True):
        env = TaskEnv("push", hidden=hidden)
        env.reset(seed=5)
        for _ in range(6):
            seen, _, done, over, info = env.step(np.zeros(3))
        assert not done and not over and not info["lost"]
        ends.append(seen[:7])
    assert np.abs(ends[0] - ends[1]).max() > 1e-3


def test_actions_that_are_none() -> None:
    env = TaskEnv("ball")
    env.reset(seed=0)
    _, reward, _, _, info = env.step(np.array([np.nan, 5.0]))
    assert info["action_not_finite"] and np.isfinite(reward)
    with pytest.raises(RetorqueError, match="2 numbers"):
        env.step(np.zeros(3))
    with pytest.raises(RetorqueError, match="rgb_array"):
        TaskEnv("ball", render_mode="human")
    with pytest.raises(RetorqueError, match="did you mean 'push'"):
        TaskEnv("pusch")


def test_an_episode_ends_with_the_tasks_time() -> None:
    env = TaskEnv("flip", hidden=False)
    env.reset(seed=1)
    steps = 0
    while True:
        *_, done, over, _ = env.step(np.zeros(3))
        steps += 1
        if done or over:
            break
    assert over and not done and steps == 120
