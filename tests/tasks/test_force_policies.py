"""UniFP and FACET: the arm they move, what they are told and paid for, their training, and their part in drawing."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.tasks.comply.draw_task import DrawSettings, DrawTask
from retorque.tasks.force_policies.force_arm import force_arm
from retorque.tasks.force_policies.force_network import ForceNetwork, load_force_policy, save_force_policy
from retorque.tasks.force_policies.force_view import ACTION, MOST, STIFFNESS, ForceView
from retorque.tasks.force_policies.learned_force import LearnedForce
from retorque.tasks.force_policies.training.force_env import LENGTH, REWARDS, ForceEnv
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

TASK = DrawTask(DrawSettings(trials=1, seed=1000))
ARM, JOINTS = force_arm(TASK.robot, TASK.start)


def _layers(part: str, *widths: int, seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    found = {}
    for k, (a, b) in enumerate(pairwise(widths)):
        found[f"{part}.{2 * k}.weight"] = 0.1 * rng.standard_normal((b, a)).astype(np.float32)
        found[f"{part}.{2 * k}.bias"] = np.zeros(b, dtype=np.float32)
    return found


def test_the_arm_is_the_whole_robots_arm() -> None:
    assert ARM.n == 7 and not ARM.floating
    assert [TASK.robot.joint_names[k] for k in JOINTS] == list(ARM.joint_names)
    arm = CompiledTree(ARM, (ARM.frame("pen"),))
    arm.update(np.asarray(ARM.home)[None])
    whole = CompiledTree(TASK.robot, (TASK.robot.frame("pen"),))
    base = np.array([[*TASK.robot.links[0].position, 1.0, 0.0, 0.0, 0.0]])
    whole.update(TASK.start[None], base)
    np.testing.assert_allclose(arm.position, whole.position, atol=1e-9)
    np.testing.assert_allclose(arm.rotation, whole.rotation, atol=1e-9)


def test_what_is_told_and_asked_stays_within_bounds() -> None:
    view = ForceView(ARM, 1)
    home, still = np.array([ARM.home]), np.zeros((1, 7))
    place, rotation = view.place[None], view.rotation[None]
    stiff = np.array([[80.0, 800.0, 800.0, 40.0]])  # what drawing commands, beyond Table II
    seen = view.observe(home, still, place, rotation, np.zeros((1, 3)), stiff)
    assert seen.shape == (1, view.size)
    np.testing.assert_allclose(seen[0, -4:], [-1.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(seen[0, :-4], 0.0, atol=1e-9)
    told = view.targets(np.full((1, 7), 1e9))
    assert (told <= ARM.upper).all() and (told <= np.asarray(ARM.home) + MOST * ACTION + 1e-9).all()
    later = view.observe(home, still, place, rotation, np.zeros((1, 3)), STIFFNESS.mean(axis=1)[None])
    assert np.abs(later[0, 14:28]).min() > 0.0  # what was asked, and the servo error that came of it


def _rest(method: str) -> tuple[ForceEnv, Array]:
    env = ForceEnv(method, ARM, TASK.body, 2, 1000)
    env._begin[:], env._end[:] = 0, LENGTH
    for _ in range(60):
        env.step(np.zeros((2, 7)))
    return env, env._reference()[0]


def test_both_references_end_where_the_spring_rests() -> None:
    (uni, at_once), (facet, later) = _rest("unifp"), _rest("facet")
    np.testing.assert_allclose(uni._force, facet._force)  # the same commands
    spring = uni._desired()[0] + (uni._force + uni.pushed) / uni._stiffness[:, :3]
    np.testing.assert_allclose(at_once, spring)
    np.testing.assert_allclose(later, spring, atol=2e-3)  # a mass on it gets there


def test_pay_is_table_three_and_best_at_the_reference() -> None:
    env, wanted = _rest("facet")
    w = REWARDS["facet"]
    best = w.position + w.velocity + w.rotation + w.motor
    still, (_, rotation) = np.zeros((2, 7)), env._desired()
    env._mass.velocity[:] = 0.0
    at_home = env._reward(rotation, still)
    env.target.position[...], env.target.velocity[...] = env._inverse.q, 0.0
    env.view.tree.update(env.target.position)
    env._pen = env.view.tree.position[:, 0].copy()  # it has not just jumped there
    there = env._reward(rotation, still)
    assert (there > at_home).all() and (there <= best).all()
    shaken = env._reward(rotation, still + 1.0)
    np.testing.assert_allclose(there - shaken, w.action_rate, atol=0.01)  # for an action that changes by 1
    assert REWARDS["unifp"].position == 10.0 and REWARDS["unifp"].action_rate == 0.08
    assert np.isfinite(wanted).all()


def test_a_training_that_was_stopped_goes_on_as_if_it_was_not(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from retorque.tasks.force_policies.training.train_force import ForceTraining, train

    def settings(folder: str, steps: int) -> ForceTraining:
        return ForceTraining(method="unifp", steps=steps, arms=2, horizon=2, width=8, out=tmp_path / folder)

    first = train(settings("parts", 4))
    assert load_force_policy("unifp", TASK.robot, ForceView(ARM, 1).size, 7, first)
    before = first.read_bytes()
    again = train(settings("parts", 8))  # longer: it goes on from there
    assert again == first and again.read_bytes() != before
    with pytest.raises(RetorqueError, match="other settings"):
        train(ForceTraining(method="facet", steps=4, arms=2, horizon=2, width=8, out=tmp_path / "parts"))
    with pytest.raises(RetorqueError, match="facet, unifp"):
        train(ForceTraining(method="uni", out=tmp_path / "other"))


def test_numpy_and_pytorch_act_the_same() -> None:
    torch = pytest.importorskip("torch")
    from retorque.tasks.force_policies.training.train_force import ForceActorCritic

    torch.manual_seed(0)
    module = ForceActorCritic("unifp", 11, 7, 8)
    kept = {k: v.detach().numpy() for k, v in module.state_dict().items() if k.startswith(("policy", "estimator"))}
    seen = np.random.default_rng(0).standard_normal((5, 11))
    share, force = ForceNetwork(kept, 11, 7)(seen)
    with torch.no_grad():
        told = torch.tensor(seen).float()
        np.testing.assert_allclose(share, module.mean(told).numpy(), atol=1e-5)
        assert module.estimator is not None
        np.testing.assert_allclose(force, 5.0 * module.estimator(told).numpy(), atol=1e-5)


def test_the_controller_moves_the_arm_and_leaves_the_other_joints_where_they_start() -> None:
    view = ForceView(ARM, 1)
    network = ForceNetwork(_layers("policy", view.size, 8, 7), view.size, 7)
    controller = LearnedForce("facet", TASK.robot, TASK.start, 1, None, network)
    state = TASK.target().read()
    action_at = TASK.poses[0][None], TASK.poses[1][None]
    from retorque.control.comply.compliance_action import ComplianceAction, isotropic

    action = ComplianceAction(*action_at, np.broadcast_to(isotropic(300.0, 30.0), (1, 2, 6, 6)))
    controller.reset(state)
    told = controller.command(state, action).position
    assert told is not None and np.isfinite(told).all()
    others = np.setdiff1d(np.arange(TASK.robot.n), JOINTS)
    np.testing.assert_array_equal(told[0, others], TASK.start[others])
    assert np.abs(told[0, JOINTS] - TASK.start[JOINTS]).max() > 1e-4


def test_foreign_networks_and_robots_are_refused(tmp_path: Path) -> None:
    size = ForceView(ARM, 1).size
    file = save_force_policy(tmp_path / "w.safetensors", _layers("policy", size, 8, 7), TASK.robot, {"method": "facet"})
    assert load_force_policy("facet", TASK.robot, size, 7, file)
    with pytest.raises(RetorqueError, match="holds facet"):
        load_force_policy("unifp", TASK.robot, size, 7, file)
    with pytest.raises(RetorqueError, match="train it again"):
        load_force_policy("facet", TASK.robot, size + 1, 7, file)
    with pytest.raises(RetorqueError, match="toddlerbot_2xm"):
        DrawTask(DrawSettings(robot="arx_x5", trials=1)).check("unifp")
