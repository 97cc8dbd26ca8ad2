"""The picture of a training's curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from retorque.learn.curves import draw_curves


def test_every_figure_gets_a_panel(tmp_path: Path) -> None:
    points = [{"step": k, "loss": 1.0 / (k + 1)} for k in range(20)]
    one = draw_curves(points, tmp_path / "one.png")
    assert one is not None
    few = np.asarray(Image.open(one))
    for point in points:
        point |= {"success": 0.5, "level": 1, "reward": 0.0, "divergence": 1.0}
    points.append({"step": 21, "latent_error": 0.2})
    points.append({"note": 1.0})  # without a step it is nowhere on a curve
    more = draw_curves(points, tmp_path / "more.png")
    assert more is not None
    assert np.asarray(Image.open(more)).shape[0] == 2 * few.shape[0]
    assert len(np.unique(few.reshape(-1, few.shape[-1]), axis=0)) > 10


def test_nothing_noted_is_no_picture(tmp_path: Path) -> None:
    assert draw_curves([], tmp_path / "none.png") is None
    assert draw_curves([{"step": 3}], tmp_path / "none.png") is None
    assert not (tmp_path / "none.png").exists()
