"""What a drawing was worth: position, orientation, pitch, force and contact, trial by trial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.tasks.comply.draw_task import PEN_RADIUS, DrawTask, StrokeDrawing
from retorque.work.array import Array

TOUCHING = 0.05
"""Force above which the pen is on the board [N]."""


@dataclass(frozen=True)
class DrawScore:
    """Each (trials,), over the time when the pen should be on a stroke."""

    position: Array
    """Distance from where the stroke lies on the true board [mm]."""
    deviation: Array
    """Distance from the commanded point, the board's misplacement included [mm]."""
    orientation: Array
    """[rad]"""
    pitch: Array
    """Mean size of the base's pitch [rad]."""
    force: Array
    """Mean force along the true normal [N]."""
    contact: Array
    """Share of the time in contact [%]."""
    peak: Array
    """Largest force of the whole run [N]."""
    fallen: Array


def score(task: DrawTask, drawing: StrokeDrawing) -> DrawScore:
    """Score every trial."""
    w = drawing.drawing
    tip, desired = drawing.tip[w], drawing.desired[w][:, None]
    normal = task.plane.axes[2]
    # The stroke on the true board: the commanded point moved along the planned normal, the tip's radius in front.
    gap = np.einsum("kti,ti->kt", task.boards[None, :, :3] - desired, task.normals) + PEN_RADIUS
    onto = desired + (gap / (task.normals @ normal))[..., None] * normal
    return DrawScore(
        position=1e3 * np.linalg.norm(tip - onto, axis=-1).mean(axis=0),
        deviation=1e3 * np.linalg.norm(tip - desired, axis=-1).mean(axis=0),
        orientation=drawing.turned[w].mean(axis=0),
        pitch=np.abs(drawing.pitch[w]).mean(axis=0),
        force=drawing.force[w].mean(axis=0),
        contact=100.0 * (drawing.force[w] > TOUCHING).mean(axis=0),
        peak=drawing.force.max(axis=0),
        fallen=drawing.fallen,
    )
