"""Imports point downwards only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "retorque"

ORDER = (
    "work, robots, physics, simulate control, loop, logs learn, adapt identify sense plan, tasks, "
    "bench runtime studio envs, cli, __main__"
)
LEVEL = {room: height for height, rooms in enumerate(ORDER.split(", ")) for room in rooms.split()}
"""Rooms by height. Rooms of one height may not import each other, except those of `BESIDE`."""

BESIDE = {("bench", "runtime"), ("studio", "runtime"), ("studio", "bench")}


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}:{node.lineno}: relative import"
            yield node.lineno, node.module or ""


def _wrong(path: Path, room: str) -> Iterator[str]:
    for line, module in _imports(path):
        parts = module.split(".")
        if parts[0] != "retorque" or len(parts) < 2 or parts[1] == room:
            continue
        other = parts[1]
        if LEVEL[other] >= LEVEL[room] and (room, other) not in BESIDE:
            yield f"{path.relative_to(SOURCE)}:{line}: {room} imports {other}"


def test_no_room_imports_from_one_above_or_beside_it() -> None:
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room != "__init__":
            assert room in LEVEL, f"{path}: which room is this?"
            wrong += _wrong(path, room)
    assert not wrong, "\n".join(wrong)


def test_the_check_finds_an_import_that_points_upwards(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    bad = tmp_path / "bad.py"
    bad.write_text("from retorque.bench.report import Row\nimport retorque.robots\nimport numpy\n")
    assert list(_wrong(bad, "physics")) == ["bad.py:1: physics imports bench"]


def test_nothing_loads_pickles() -> None:
    for path in SOURCE.rglob("*.py"):
        modules = {module.split(".")[0] for _, module in _imports(path)}
        assert not modules & {"pickle", "dill", "joblib", "cloudpickle", "shelve"}, path
        assert "torch.load(" not in path.read_text(), path
