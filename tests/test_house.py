"""The floor plan holds: one of each thing, no name twice, folders and files of a size to find one's way in."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "retorque"
FILES = sorted(SOURCE.rglob("*.py"))
MOST_FILES = 14
"""In a folder, `__init__.py` not counted."""


def classes() -> Iterator[tuple[str, str]]:
    """Name and file of every class at the top of a module."""
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                yield node.name, path.relative_to(SOURCE).as_posix()


def files_with(text: str) -> list[str]:
    return [path.relative_to(SOURCE).as_posix() for path in FILES if text in path.read_text().lower()]


def test_no_class_name_stands_for_two_things() -> None:
    homes = defaultdict(list)
    for name, path in classes():
        homes[name].append(path)
    twice = {name: where for name, where in homes.items() if len(where) > 1 and name != "Settings"}
    assert not twice  # every bench calls its own `Settings`, which the command line looks for


def test_only_benches_have_settings_without_a_name() -> None:
    where = [path for name, path in classes() if name == "Settings"]
    assert where and all(path.startswith("bench/") for path in where)


def test_no_file_name_stands_for_two_things() -> None:
    parts = ("__init__.py", "adapter.py", "train.py")  # one a package: its adapter, its training
    count = Counter(path.name for path in FILES if path.name not in parts)
    assert not {name for name, times in count.items() if times > 1}
    assert "main.py" in count


def test_folders_are_small() -> None:
    count = Counter(path.parent for path in FILES if path.name != "__init__.py")
    sizes = {str(folder.relative_to(SOURCE)): size for folder, size in count.items()}
    assert not {name for name, size in sizes.items() if size > MOST_FILES}


def test_files_are_small() -> None:
    lengths = sorted(len(path.read_text().splitlines()) for path in FILES if path.name != "__init__.py")
    assert lengths[len(lengths) // 2] <= 150
    assert sum(length > 300 for length in lengths) <= 0.05 * len(lengths)
    assert lengths[-1] <= 450


def test_one_ring_of_reports() -> None:
    rings = [path for name, path in classes() if any(word in name for word in ("History", "Ring", "Buffer"))]
    assert [path for path in rings if not path.startswith("work/")] == ["loop/history.py"]  # work/ knows no reports
    assert not [path for path in files_with("np.roll(") if path.startswith(("loop/", "adapt/"))]


def test_adapters_that_look_back_share_the_ring() -> None:
    """What keeps reports over ticks keeps them in the one ring, so that one rule says what is missing."""
    for name in ("recursive/adapter.py", "particle/adapter.py", "tam/adapter.py"):
        tree = ast.parse((SOURCE / "adapt" / name).read_text())
        made = [
            node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert "History" in made, name


def test_one_rule_for_what_is_new_or_late() -> None:
    """Nobody but the clock compares a report's time with the one before."""
    guilty = []
    for path in FILES:
        if path.name in ("clock.py", "loop.py") or {"logs", "simulate"} & set(path.parts):
            continue  # a simulated fault begins at a time
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                stamps = [s for s in sides if isinstance(s, ast.Attribute) and s.attr == "time"]
                if stamps and any(isinstance(s.value, ast.Name) and s.value.id == "state" for s in stamps):
                    guilty.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not guilty


def test_one_parameter_object() -> None:
    """What holds links, rotors and a payload at once is everything unknown about a robot, and there is one of it."""
    holding = []
    for path in FILES:
        for node in ast.parse(path.read_text()).body:
            fields = node.body if isinstance(node, ast.ClassDef) else []
            names = {f.target.id for f in fields if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)}
            if {"inertial", "armature", "payload"} <= names:
                holding.append(path.relative_to(SOURCE).as_posix())
    assert holding == ["physics/parameters.py"]
    assert [path for name, path in classes() if name == "Selection"] == ["physics/selection.py"]
    users = files_with("physics.parameters import") + files_with("physics.selection import")
    using = {path.split("/")[0] for path in users}
    assert {"simulate", "adapt", "identify", "tasks"} <= using


def test_one_file_format_for_weights_with_one_header() -> None:
    importing = [path for path in files_with("safetensors") if "import safetensors" in (SOURCE / path).read_text()]
    importing += [path for path in files_with("from safetensors") if path not in importing]
    assert importing == ["work/tensors.py"]
    assert [path for name, path in classes() if name.endswith("Header")] == ["learn/weights.py"]


def test_one_html_skeleton() -> None:
    assert files_with("<!doctype html") == ["work/page.py"]


def test_one_array_type() -> None:
    assert [path for path in files_with("array = np.ndarray")] in ([], ["work/array.py"])


def test_only_the_loop_corrects_what_goes_to_a_plant() -> None:
    """A function that writes to a plant and also asks a controller or an adapter is a second loop, `for` or not."""
    asks = {"correct", "command", "act"}
    found = []
    for path in FILES:
        if path.name == "loop.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                called = {
                    call.func.attr
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                }
                if "write" in called and called & asks:
                    found.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not found


@pytest.mark.parametrize("word", ("pickle", "eval(", "exec(", "shell=true"))
def test_nothing_runs_what_it_reads(word: str) -> None:
    allowed = {"pickle": files_with("pickle")}.get(word, [])
    found = [path for path in files_with(word) if path not in allowed and not _only_a_method(path, word)]
    assert not found


def _only_a_method(path: str, word: str) -> bool:
    """Whether the word is only a method's name, such as model.eval(), or part of a longer one."""
    text = (SOURCE / path).read_text().lower()
    return all(text[index - 1] in "._" or text[index - 1].isalnum() for index in _places(text, word))


def _places(text: str, word: str) -> list[int]:
    places, start = [], text.find(word)
    while start >= 0:
        places.append(start)
        start = text.find(word, start + 1)
    return places
