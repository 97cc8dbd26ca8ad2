"""The pages are true of the code: files, links, names, options and Python in them exist."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from dataclasses import fields
from pathlib import Path

import pytest

from retorque.cli.main import COMMANDS
from retorque.cli.verb import Verb
from retorque.robots import names

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@by_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


@by_page
def test_files_that_are_named_exist(page: Path) -> None:
    every = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    for name in re.findall(r"`([\w/]+\.py)`", page.read_text()):
        assert any(path.endswith(f"/{name}") or path == name for path in every), name


@by_page
def test_python_compiles_and_its_names_are_there(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        tree = ast.parse(block)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "retorque":
                module = importlib.import_module(node.module)
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, f"{node.module}: {missing}"


@by_page
def test_commands_and_their_options_exist(page: Path) -> None:
    lines = re.findall(r"^ {4}(?:torchrun .* -m )?(retorque .*)$", page.read_text(), re.MULTILINE)
    for line in lines:
        words = shlex.split(line, comments=True)
        entry = COMMANDS[words[1]]
        if not isinstance(entry, Verb):
            entry = entry.commands[words[2]]
        module = importlib.import_module(f"retorque.{entry.module}")
        options = {f"--{field.name.replace('_', '-')}" for field in fields(getattr(module, entry.settings))}
        used = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert used <= options, line


def test_the_readme_counts_the_robots_on_board() -> None:
    numbers = {13: "Thirteen", 14: "Fourteen", 15: "Fifteen", 16: "Sixteen", 17: "Seventeen", 18: "Eighteen"}
    assert f"{numbers[len(names())]} robots on board" in (ROOT / "README.md").read_text()


def test_pages_that_the_index_lists_are_the_ones_that_are_there() -> None:
    listed = set(re.findall(r"\]\((\w+\.md)\)", (ROOT / "docs" / "index.md").read_text()))
    assert {"architecture.md", "adapters.md", "identification.md", "scenes.md", "tam.md"} <= listed
