"""`retorque comply`: one run of a contact task, its figures, and a picture of what happened."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from retorque.tasks.comply.coverage import covered, sweep
from retorque.tasks.comply.draw_score import DrawScore, score
from retorque.tasks.comply.draw_task import DRAWING_METHODS, DrawSettings, DrawTask, StrokeDrawing
from retorque.tasks.comply.drawing_sites import check_drawing
from retorque.tasks.comply.stroke_shapes import Strokes, shape
from retorque.tasks.comply.vision_planner import VisionPlanner, VisionSettings
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.files import check_file, is_file
from retorque.work.outcome import Outcome

TOOL = 0.4
"""Width of the eraser, as a share of the wiped square."""
INK = "black ink"
"""What is wiped, as the paper's prompt calls it."""
OVERLAP, BEYOND = 0.5, 0.15
"""Of the eraser's lanes, and past the square's edge, as shares of its width: soft servos are some millimetres off."""


@dataclass(frozen=True, kw_only=True)
class ComplySettings:
    """Settings of `retorque comply draw`, `wipe` and `press`."""

    robot: str = "toddlerbot_2xm"
    """toddlerbot_2xm, arx_x5, leap_hand or g1 by their servos; panda and other arms by torque."""
    shape: str = "heart"
    """What is drawn: heart, star, circle, text:WORDS or an SVG path."""
    method: str = "retorque"
    """retorque, public-code, without f_ext, position; unifp or facet for toddlerbot_2xm."""
    trials: int = 1
    """Boards; the picture shows the first."""
    seed: int = 0
    """Of boards and hidden friction."""
    wrong: float = 1.0
    """Times the board's usual misplacement and tilt."""
    kinematics: str = "compiled"
    """Inverse kinematics: compiled or mink."""
    planner: str = ""
    """Address of a vision-language model (OpenAI's interface) that plans the strokes; key in RETORQUE_VLM_KEY."""
    planner_model: str = ""
    """Its model."""
    image: Path | None = None
    """PNG of the board for the planner, 640 x 480."""
    render: Path | None = None
    """Write a picture (PNG): pose, force, pitch, and what was drawn."""


def draw(settings: ComplySettings) -> Outcome:
    """Draw a shape."""
    return _run(settings, "draw")


def wipe(settings: ComplySettings) -> Outcome:
    """Sweep a square with an eraser."""
    return _run(settings, "wipe")


def press(settings: ComplySettings) -> Outcome:
    """Press on one point and hold."""
    return _run(settings, "press")


def _run(settings: ComplySettings, what: str) -> Outcome:
    check_drawing(settings.robot)
    if settings.method not in DRAWING_METHODS:
        raise unknown("method", settings.method, DRAWING_METHODS)
    check_between("--trials", settings.trials, 1, 200)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_between("--wrong", settings.wrong, 0.0, 3.0)
    if settings.render is not None:
        check_file(settings.render)
    strokes = planned_strokes(settings, what)
    task = DrawTask(
        DrawSettings(
            robot=settings.robot,
            shape="circle",
            trials=settings.trials,
            seed=settings.seed,
            wrong=settings.wrong,
            kinematics=settings.kinematics,
        )
    )
    task.strokes = strokes
    if what == "press":
        task.site = replace(task.site, strokes=replace(task.site.strokes, pause=2.0))
    drawing = task.run(settings.method)
    outcome = Outcome()
    outcome.show(_table(task, drawing, score(task, drawing), what, settings))
    if settings.render is not None:
        from retorque.tasks.comply.draw_picture import picture

        file = settings.render
        outcome.later("picture", lambda: picture(task, drawing, file, tool=TOOL if what == "wipe" else 0.0))
    return outcome


def planned_strokes(settings: ComplySettings, what: str) -> Strokes:
    """What is followed: a planner's strokes where one is named, else the shapes on board."""
    if what == "press":
        return [stroke[:2] * 1e-3 for stroke in shape("circle")]
    if not settings.planner:
        return shape(settings.shape) if what == "draw" else sweep(1.0, 1.0, TOOL, OVERLAP, BEYOND)
    image = b""
    if settings.image is not None:
        if not is_file(settings.image):
            raise RetorqueError(f"there is no image '{settings.image}'; give a PNG of the board")
        image = settings.image.read_bytes()
    planner = VisionPlanner(VisionSettings(url=settings.planner, model=settings.planner_model))
    return planner.strokes(what, settings.shape if what == "draw" else INK, "pen", image)


def _table(task: DrawTask, drawing: StrokeDrawing, found: DrawScore, what: str, settings: ComplySettings) -> Table:
    table = Table(title=f"comply {what}: {settings.robot}, {settings.method}")
    table.add_column("what")
    table.add_column("mean over trials", justify="right")
    table.add_row("position on the board [mm]".replace("[", "\\["), f"{found.position.mean():.1f}")
    table.add_row("orientation [rad]".replace("[", "\\["), f"{found.orientation.mean():.3f}")
    table.add_row("base pitch [rad]".replace("[", "\\["), f"{found.pitch.mean():.4f}")
    table.add_row(
        "force [N], commanded".replace("[", "\\["), f"{found.force.mean():.2f}, {task.site.strokes.force:.2f}"
    )
    table.add_row("largest force [N]".replace("[", "\\["), f"{found.peak.max():.2f}")
    table.add_row("contact [%]".replace("[", "\\["), f"{found.contact.mean():.1f}")
    table.add_row("fallen", f"{int(found.fallen.sum())} of {settings.trials}")
    if what == "wipe":
        right, up, _ = task.plane.axes
        local = (drawing.tip[drawing.drawing][:, 0] - task.plane.centre) / task.site.strokes.size
        path = local @ [[right[0], up[0]], [right[1], up[1]], [right[2], up[2]]]
        touching = drawing.force[drawing.drawing][:, 0] > 0.05
        table.add_row("wiped [%]".replace("[", "\\["), f"{100.0 * covered(path[touching], 1.0, 1.0, TOOL):.1f}")
    return table
