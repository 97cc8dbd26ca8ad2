"""The demo: its table, its pictures and a page that needs nothing else."""

import io
import re

import pytest
from PIL import Image

from retorque.adapt import ADAPTERS
from retorque.bench.demo.first_look import LEFT_OUT, Settings, run
from retorque.work.errors import RetorqueError


def test_the_demo_writes_a_page_that_stands_alone(tmp_path):
    out = tmp_path / "demo"
    outcome = run(Settings(trials=1, duration=2.0, workers=1, out=out))
    printed = " ".join(str(cell) for cell in outcome.shown[0].what.columns[0].cells)
    assert [name for name, _ in outcome.write_files()] == ["plot.png", "plot-dark.png", "arm.gif", "index.html"]
    page = (out / "index.html").read_text()
    for name in ("direct", "particle", "recursive", "oracle"):
        assert name in ADAPTERS and name not in LEFT_OUT
        assert name in printed and f"<code>{name}</code>" in page
    assert sorted(path.name for path in out.iterdir()) == ["arm.gif", "index.html", "plot-dark.png", "plot.png"]
    assert not re.search(r"(?:src|href|srcset)=\"(?!data:)", page)
    assert "http://" not in page and "https://" not in page
    assert "prefers-color-scheme:dark" in page
    with Image.open(io.BytesIO((out / "arm.gif").read_bytes())) as animation:
        assert animation.n_frames > 10 and animation.size == (800, 400)
    with Image.open(io.BytesIO((out / "plot.png").read_bytes())) as plot:
        assert plot.size[0] > 1000


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"trials": 0}, "--trials"), ({"duration": 0.5}, "--duration"), ({"robot": "pandda"}, "did you mean 'panda'")],
)
def test_bad_settings_are_refused_and_nothing_is_written(changes, words, tmp_path):
    with pytest.raises(RetorqueError, match=words):
        run(Settings(out=tmp_path / "demo", **changes))
    assert not (tmp_path / "demo").exists()


def test_a_file_in_the_folders_place_is_refused(tmp_path):
    (tmp_path / "demo").write_text("mine")
    with pytest.raises(RetorqueError, match="is a file"):
        run(Settings(out=tmp_path / "demo"))
    assert (tmp_path / "demo").read_text() == "mine"
