"""UP-OSI: the batch it learns in, a short training that resumes, and its networks in the loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.bench.mpc.mpc_bench import Settings, run
from retorque.physics.dynamics import make_dynamics
from retorque.robots.state import State
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.run import RunSettings, run_task
from retorque.tasks.mpc.up_osi import HISTORY, UP_OSI_TASKS, UpOsiNetwork, UpOsiPolicy, load_up_osi, observation
from retorque.work.errors import RetorqueError

TINY = {"steps": 512, "episodes": 1, "groups": 2, "each": 8, "length": 2 * HISTORY, "horizon": 16}


def test_observations_are_zero_at_the_target_but_for_the_cosines() -> None:
    task = make_task("double-pendulum")
    seen = observation(task, np.tile(task.cost.target, (3, 1)))
    np.testing.assert_allclose(seen, np.tile([0.0, 1.0, 1.0, *[0.0] * 5], (3, 1)))
    turned = task.cost.target + np.array([0.0, 2.0 * np.pi, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(observation(task, turned), seen[0], atol=1e-12)


def test_groups_move_by_their_own_parameters_and_runaways_begin_anew() -> None:
    pytest.importorskip("torch")
    from retorque.tasks.mpc.training.swing_env import FAR, SwingEnv

    task = replace(make_task("cartpole"), noise=1e-12)
    env = SwingEnv(task, 3, 4, 5, 1000)
    before, shares = env.states.copy(), np.linspace(-1.5, 1.5, 12)[:, None]
    env.states[5, 0] = before[5, 0] = 10.0 * FAR
    reward, gone, over = env.step(shares)
    dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
    for k in (0, 4, 11):
        after = dynamics.step(before[k], 20.0 * np.clip(shares[k], -1, 1), task.free.whole(env.parameters[k]))
        np.testing.assert_allclose(env.states[k], after, atol=1e-9)
    assert gone[5] and gone.sum() == 1 and reward[5] == reward.min() == 0.0 and not over
    np.testing.assert_allclose(env.states[5], task.start)
    assert [env.step(shares)[2] for _ in range(4)] == [False, False, False, True]
    best = SwingEnv(task, 1, 2, 5, 1000)
    best.states[:] = [task.cost.target, task.start]
    rewards = best._reward(np.zeros((2, 1)))
    assert rewards[0] == pytest.approx(3.0) and rewards[1] < 0.1


def test_a_short_training_resumes_and_its_networks_agree(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.mpc.training.train_up_osi import UpOsi, UpOsiTraining, train

    file = train(UpOsiTraining(out=tmp_path / "a", **TINY))
    longer = {**TINY, "steps": 1024}
    again = train(UpOsiTraining(out=tmp_path / "a", **longer))
    assert again == file and (tmp_path / "a").is_dir()
    task = make_task("cartpole")
    network = load_up_osi(task, file)
    module = UpOsi(task, 1)
    part = {"policy": network._policy, "identification": network._identification}
    state = {
        f"{name}.{2 * k}.{kind}": torch.as_tensor(value.T if kind == "weight" else value, dtype=torch.float32)
        for name, layers in part.items()
        for k, layer in enumerate(layers)
        for kind, value in zip(("weight", "bias"), layer, strict=True)
    }
    module.load_state_dict(state, strict=False)
    x, p = np.array([0.3, 2.0, -1.0, 4.0]), np.array([1.0, 3.0])
    share = 2.0 * (p - task.free.lower) / task.free.span - 1.0
    told = torch.as_tensor(np.concatenate([observation(task, x), share]), dtype=torch.float32)
    expected = float(module.policy(told).clamp(-1.0, 1.0).detach())
    assert network.act(x, p)[0] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(RetorqueError, match="not an intact"):
        file.write_bytes(file.read_bytes()[:-8])
        load_up_osi(task, file)


def test_it_acts_within_limits_whatever_it_is_told() -> None:
    task = make_task("cartpole")
    dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
    network = load_up_osi(task)
    policy = UpOsiPolicy(task, dynamics, network)
    rng = np.random.default_rng(0)
    policy.reset(State(0.0, task.start[:2], task.start[2:], np.zeros(2)))
    for k in range(HISTORY + 25):
        x = np.full(4, np.nan) if k == 20 else 10.0 * rng.standard_normal(4)
        action = policy.act(State(0.01 * k, x[:2], x[2:], 20.0 * rng.standard_normal(2)))
        assert np.all(np.abs(action.input) <= 20.0) and np.isfinite(action.input).all()
        assert np.all((policy.model.p >= task.free.lower) & (policy.model.p <= task.free.upper))
    assert policy.model.version > 20


@pytest.mark.parametrize("name", UP_OSI_TASKS)
def test_a_run_in_the_loop_repeats(name: str) -> None:
    task = replace(make_task(name), steps=40)
    one, two = (run_task(task, RunSettings(policy="up-osi", seed=1000)) for _ in range(2))
    np.testing.assert_array_equal(one.states, two.states)
    assert np.isnan(one.deviation).all() and one.p.shape == (40, 2)


def test_tasks_without_weights_are_refused() -> None:
    with pytest.raises(RetorqueError, match="on board for cartpole"):
        run(Settings(tasks=("rod",), policies=("up-osi",)))
    with pytest.raises(RetorqueError, match="rod"):
        load_up_osi(make_task("rod"))
    with pytest.raises(RetorqueError, match="takes 7 numbers"):
        UpOsiNetwork({}, make_task("cartpole"))
