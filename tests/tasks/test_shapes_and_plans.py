"""Shapes, SVG paths, stroke plans, wiping, and a planner that does not believe everything."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from retorque.robots.state import State
from retorque.tasks.comply.comply_command import ComplySettings, planned_strokes
from retorque.tasks.comply.coverage import covered, sweep
from retorque.tasks.comply.stroke_plan import DrawingPlane, StrokePolicy, StrokeSettings, plan_strokes
from retorque.tasks.comply.stroke_shapes import GLYPHS, resampled, shape, text
from retorque.tasks.comply.svg_path import svg_path
from retorque.tasks.comply.vision_planner import VisionPlanner, VisionSettings, prompt, read_answer
from retorque.work.errors import RetorqueError


@pytest.mark.parametrize("name", ("heart", "star", "circle", "text:OK", "M0 0 L10 0 L10 5 Z"))
def test_shapes_fill_the_unit_square(name: str) -> None:
    every = np.concatenate(shape(name))
    assert np.abs(every).max() == pytest.approx(0.5)
    assert np.ptp(every, axis=0).max() == pytest.approx(1.0)


def test_every_letter_is_there_and_others_are_refused() -> None:
    assert set("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == set(GLYPHS)
    assert len(text("HI")) == 6
    with pytest.raises(RetorqueError, match="vector font"):
        text("é")
    with pytest.raises(RetorqueError, match="did you mean 'heart'"):
        shape("hart")


def test_svg_curves_end_where_they_should_and_arcs_are_round() -> None:
    (stroke,) = svg_path("M0,0 a5,5 0 1 1 0.001,0")
    radius = np.linalg.norm(stroke - stroke.mean(axis=0), axis=1)
    assert np.ptp(radius) < 0.05
    (curve,) = svg_path("M0 0 C0 10 10 10 10 0 S20 -10 20 0 Q25 5 30 0 T40 0 h5 v5")
    assert curve[-1] - curve[0] == pytest.approx([1.0, -5.0 / 45.0], abs=1e-9)  # y down in SVG
    assert len(svg_path("M0 0L1 1M2 0l1 1")) == 2


@pytest.mark.parametrize(
    "data", ("", "M0 0", "L1 1", "M0 0 L1", "M0 0 X5", "M0 0 L1 1; rm -rf", "M0 0 L" + "1 1 " * 9000)
)
def test_svg_that_is_none_is_refused(data: str) -> None:
    with pytest.raises(RetorqueError):
        svg_path(data)


def test_a_plan_approaches_presses_draws_and_retreats() -> None:
    settings = StrokeSettings()
    plane = DrawingPlane(
        centre=np.array([0.3, 0.0, 0.4]), normal=np.array([-2.0, 0.0, 0.0]), up=np.array([0.1, 0.0, 1.0])
    )
    plan = plan_strokes(shape("heart"), plane, np.array([0.2, 0.0, 0.4]), settings)
    distance = (plan.position - plane.centre) @ plan.normal
    np.testing.assert_allclose(plan.normal, [-1.0, 0.0, 0.0], atol=1e-12)
    assert np.abs(distance[plan.drawing]).max() < 1e-9
    assert np.all(plan.press[plan.drawing] == 1.0)
    assert plan.press[0] == 0.0 and plan.press[-1] == 0.0 and distance[-1] > 0.01
    assert np.all(plan.press[distance > 1e-6] == 0.0)  # nothing is pressed in the air
    speed = np.linalg.norm(np.diff(plan.position, axis=0), axis=1) / settings.period
    assert speed.max() < 1.6 * settings.free_speed
    assert np.linalg.norm(plan.velocity, axis=1)[plan.drawing].mean() == pytest.approx(settings.contact_speed, rel=0.05)
    height = (plan.position[plan.drawing] - plane.centre) @ plane.axes[1]
    assert height[0] == height.min()  # a heart begins at its tip


def test_the_policy_follows_the_plan_by_the_clock() -> None:
    plane = DrawingPlane(
        centre=np.array([0.3, 0.0, 0.4]), normal=np.array([-1.0, 0.0, 0.0]), up=np.array([0.0, 0.0, 1.0])
    )
    plan = plan_strokes(shape("star"), plane, np.array([0.2, 0.0, 0.4]))
    policy = StrokePolicy(plan, 1, np.zeros((2, 3)), np.tile(np.eye(3), (2, 1, 1)))
    zero = np.zeros(1)
    policy.reset(State(5.0, zero, zero, zero))
    row = int(np.flatnonzero(plan.drawing)[40])
    action = policy.act(State(5.0 + 0.02 * row, zero, zero, zero))
    np.testing.assert_allclose(action.position[1], plan.position[row])
    np.testing.assert_allclose(action.position[0], 0.0)
    assert action.wrench is not None
    np.testing.assert_allclose(action.wrench[1, :3], [5.0, 0.0, 0.0])
    over = policy.act(State(1e4, zero, zero, zero))
    np.testing.assert_allclose(over.position[1], plan.position[-1])


def test_the_spring_along_the_normal_is_soft_while_it_presses_only_and_keeps_its_damping() -> None:
    plane = DrawingPlane(
        centre=np.array([0.3, 0.0, 0.4]), normal=np.array([-1.0, 0.0, 0.0]), up=np.array([0.0, 0.0, 1.0])
    )
    zero, one = np.zeros(1), (np.zeros((1, 3)), np.eye(3)[None])
    plan = plan_strokes(shape("heart"), plane, np.array([0.2, 0.0, 0.4]), StrokeSettings(pressing_stiffness=5.0))
    policy = StrokePolicy(plan, 0, *one)
    policy.reset(State(0.0, zero, zero, zero))
    press = int(np.flatnonzero(plan.drawing)[0])
    free, pressing, gone = (policy.act(State(0.02 * k, zero, zero, zero)) for k in (0, press, len(plan.press)))
    np.testing.assert_allclose(np.diag(free.stiffness[0])[:3], [80.0, 800.0, 800.0])
    np.testing.assert_allclose(np.diag(pressing.stiffness[0])[:3], [5.0, 800.0, 800.0])
    assert gone.stiffness is free.stiffness and pressing.damping is free.damping is not None
    np.testing.assert_allclose(pressing.damping[0, 0, 0], 2.0 * np.sqrt(80.0))
    plain = StrokePolicy(plan_strokes(shape("heart"), plane, np.array([0.2, 0.0, 0.4])), 0, *one)
    plain.reset(State(0.0, zero, zero, zero))
    assert plain.act(State(0.02 * press, zero, zero, zero)).stiffness is plain.stiffness


def test_a_sweep_covers_its_rectangle_and_a_line_does_not() -> None:
    (path,) = sweep(1.0, 1.0, 0.25)
    dense = resampled(path, 0.01)
    assert covered(dense, 1.0, 1.0, 0.25) > 0.97
    assert covered(dense[: len(dense) // 4], 1.0, 1.0, 0.25) < 0.5
    with pytest.raises(RetorqueError, match="tool wider than 0"):
        sweep(1.0, 1.0, 0.0)


SOUND = json.dumps({"pen": [[10, 10], [100, 40], [50, 90]]})


def test_sound_answers_become_strokes_and_nothing_is_asked_offline() -> None:
    asked: list[str] = []

    def ask(words: str, image: bytes) -> str:
        asked.append(words)
        return f"```json\n{SOUND}\n```"

    (stroke,) = VisionPlanner(VisionSettings(url="https://example.org"), ask).strokes("draw", "star", "pen")
    assert "Draw the star on the whiteboard using a pen" in asked[0] and "pen: (" in asked[0]
    assert stroke[0, 1] > stroke[2, 1]  # image rows count downwards
    offline = VisionPlanner(ask=ask).strokes("draw", "heart", "pen")
    assert len(asked) == 1 and len(offline) == 1


@pytest.mark.parametrize(
    "answer",
    (
        "draw a heart!",
        "[]",
        "{}",
        '{"pen": [[1, 2]]}',
        '{"pen": [[1, 2], [1, 2]]}',
        '{"pen": [[1, 2], [3, 1e9]]}',
        '{"pen": [[1, 2], [-3, 4]]}',
        '{"pen": [[1, 2], [NaN, 4]]}',
        '{"pen": [[1, 2], [true, 4]]}',
        '{"pen": [[1, 2], ["__import__", 4]]}',
        '{"pen": [[1, 2], [3, 4]], "left_foot": [[1, 2], [3, 4]]}',
        '{"pen": ' + "[" * 5000 + "]" * 5000 + "}",
        '{"pen": ' + json.dumps([[k % 600, k % 400] for k in range(600)]) + "}",
        "x" * 300_000,
    ),
    ids=range(14),
)
def test_hostile_answers_are_refused(answer: str) -> None:
    with pytest.raises(RetorqueError, match="ask again"):
        read_answer(answer, ["pen"], 640, 480)


def test_a_service_that_is_not_there_is_one_sentence() -> None:
    planner = VisionPlanner(VisionSettings(url="http://127.0.0.1:9", timeout=1.0))
    with pytest.raises(RetorqueError, match="did not answer"):
        planner.strokes("wipe", "black ink", "pen")
    with pytest.raises(RetorqueError, match="no prompt for"):
        prompt("dance", "x", {})


def test_a_planner_that_is_named_is_asked(tmp_path: Path) -> None:
    asked: list[dict] = []

    class Service(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps({"choices": [{"message": {"content": SOUND}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    board = tmp_path / "board.png"
    board.write_bytes(b"not looked at here")
    with HTTPServer(("127.0.0.1", 0), Service) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings = ComplySettings(shape="a cat", planner=url, planner_model="eyes", image=board)
        (stroke,) = planned_strokes(settings, "draw")
        thread.join()
    assert len(stroke) == 3
    content = asked[0]["messages"][0]["content"]
    assert "Draw the a cat" in content[0]["text"] and content[1]["type"] == "image_url" and asked[0]["model"] == "eyes"
    with pytest.raises(RetorqueError, match="no image"):
        planned_strokes(ComplySettings(planner=url, image=tmp_path / "none.png"), "draw")
