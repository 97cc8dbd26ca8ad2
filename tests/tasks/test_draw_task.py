"""Drawing end to end on the motor-level plant: an arm, misplaced boards, contact lost and regained, the picture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.cli.main import main
from retorque.control.comply.compliance import Compliance
from retorque.control.comply.torque_compliance import TorqueCompliance
from retorque.loop.loop import Loop
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.rigid_body import RigidBody
from retorque.tasks.comply.draw_score import score
from retorque.tasks.comply.draw_task import DrawSettings, DrawTask
from retorque.tasks.comply.stroke_plan import StrokePolicy
from retorque.tasks.comply.stroke_shapes import circle
from retorque.tasks.embodiments import embodiment
from retorque.work.errors import RetorqueError


def _short(trials: int, wrong: float = 1.0) -> DrawTask:
    task = DrawTask(DrawSettings(robot="arx_x5", shape="circle", trials=trials, seed=1005, wrong=wrong))
    task.strokes = [circle()[0][:12]]
    task.site = replace(task.site, strokes=replace(task.site.strokes, contact_speed=0.04, free_speed=0.1))
    return task


def test_an_arm_keeps_contact_with_boards_that_are_off_and_position_control_does_not() -> None:
    task = _short(4)
    ours = score(task, task.run("retorque"))
    assert np.all(ours.contact > 95.0)
    assert np.all(np.abs(ours.force - 5.0) < 2.0) and ours.peak.max() < 12.0
    assert not ours.fallen.any()
    theirs = score(task, task.run("position"))
    assert theirs.contact.min() < 50.0 or theirs.peak.max() > 1.5 * ours.peak.max()


def test_contact_lost_and_regained_is_bounded() -> None:
    task = _short(1, wrong=0.0)
    target, plan = task.target(), task.plan()
    controller = task.controller("retorque")
    assert isinstance(controller, Compliance)
    position, rotation = (x[None] for x in task.poses)
    policy = StrokePolicy(plan, 0, position, rotation)
    loop = Loop(target, policy, controller)
    pressing = int(np.flatnonzero(plan.drawing)[0])
    force = []
    for tick in range(pressing + 100):
        if tick == pressing:  # the board gives way by 2 cm, and comes back
            target.place("whiteboard", task.boards + np.array([0.02, 0, 0, 0, 0, 0, 0]))
        if tick == pressing + 25:
            target.place("whiteboard", task.boards)
        loop.tick()
        force.append(float(-target.contact_force("tip", by="whiteboard")[0, 0]))
        assert np.isfinite(controller.admittance.position).all()
    assert min(force[pressing : pressing + 10]) < 0.1  # it was lost
    assert max(force[pressing + 25 :]) > 1.0 and force[-1] > 0.5  # and is there again
    assert max(force) < 40.0
    assert np.abs(controller.admittance.velocity[..., :3]).max() <= 0.1 + 1e-9


def test_the_command_prints_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = tmp_path / "press.png"
    assert main(["comply", "press", "--robot", "arx_x5", "--render", str(file)]) == 0
    assert "force" in capsys.readouterr().out
    assert file.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    "options",
    (["--robot", "toddlerbot"], ["--shape", "hart"], ["--method", "magic"], ["--trials", "0"], ["--wrong", "nan"]),
)
def test_bad_options_end_in_one_sentence(options: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(["comply", "draw", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_robots_without_a_pen_are_refused() -> None:
    with pytest.raises(RetorqueError, match="has no pen"):
        DrawTask(DrawSettings(robot="toddlerbot"))


def test_g1_stands_on_its_soles_with_knees_bent_and_its_pen_before_its_hand() -> None:
    task = DrawTask(DrawSettings(robot="g1", trials=1, seed=1000))
    feet = tuple(task.robot.frame(name) for name in task.body.feet)
    usual = embodiment("g1")
    soles = []
    for q, height in ((usual.position(task.robot), usual.base_height), (task.start, task.body.base_height)):
        tree = CompiledTree(task.robot, feet)
        tree.update(q[None], np.array([[0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0]]))
        soles.append(tree.position[0, :, 2].copy())
    np.testing.assert_allclose(soles[1], soles[0], atol=1e-3)  # as high as those of the standing robot
    assert task.body.base_height < usual.base_height
    assert task.plane.centre[0] > task.poses[0][-1][0] > task.poses[0][0][0] + 0.2  # board, pen, the other hand


def test_arms_by_torque_draw_on_a_table_and_feel_through_their_adapter() -> None:
    task = DrawTask(DrawSettings(robot="panda", shape="circle", trials=1, seed=1000))
    assert task.arm is not None
    np.testing.assert_allclose(task.poses[0][-1] - task.plane.centre, [0.0, 0.0, 0.05], atol=1e-9)
    hand = RigidBody(task.robot).frame_pose(task.robot.end_effector, task.start)[0]
    np.testing.assert_allclose(task.poses[0][-1] - hand, [0.0, 0.0, -0.1], atol=1e-9)  # the pen points down
    assert isinstance(task.controller("retorque"), TorqueCompliance)
    with pytest.raises(RetorqueError, match="reads motors"):
        task.controller("public-code")
    with pytest.raises(RetorqueError, match="has no pen"):
        DrawTask(DrawSettings(robot="iiwa14"))  # straight up at home


def test_a_finger_bends_against_a_small_board() -> None:
    task = DrawTask(DrawSettings(robot="leap_hand", shape="circle", trials=1, seed=1000, wrong=0.0))
    task.strokes = [circle()[0][:4]]
    task.site = replace(task.site, strokes=replace(task.site.strokes, contact_speed=0.03, free_speed=0.05))
    found = score(task, task.run("retorque"))
    assert found.contact[0] > 80.0
    assert found.peak[0] < 5.0  # 1 N is asked
