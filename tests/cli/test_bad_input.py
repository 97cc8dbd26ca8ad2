"""What nobody should type, and somebody will: each ends in one sentence, code 2, and nothing is left behind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import retorque
from retorque.adapt import make
from retorque.adapt.tam.tam_weights import find
from retorque.cli.main import main
from retorque.physics.default_profile import profile_of
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, save_tensors

CARD = (Path(retorque.__file__).parent / "robots" / "cards" / "z1.toml").read_text()
SMALL = ("--trials", "1", "--duration", "1", "--workers", "1")
LONG = "x" * 300
Z1 = Robot.load("z1")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence that a command ends with."""
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    lines = [line for line in err.splitlines() if line.strip()]
    assert out == "" and len(lines) == 1 and lines[0].startswith("retorque: "), err
    assert "Traceback" not in err
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    (
        (("--trials", "1e20"), "--trials"),
        (("--trials", "100000000000000000000"), "between 1 and 100000"),
        (("--trials", "-1"), "between 1 and"),
        (("--trials", "nan"), "--trials"),
        (("--seed", "-1"), "--seed must be between 0"),
        (("--seed", "99999999999999999999999"), "--seed must be between 0"),
        (("--duration", "inf"), "--duration must be between"),
        (("--duration", "nan"), "--duration must be between"),
        (("--duration", "1e308"), "--duration must be between"),
        (("--payload-step", "1e308"), "--payload-step must be between"),
        (("--workers", "1000000"), "--workers must be between"),
        (("--robots", LONG), "unknown robot"),
        (("--robots", f"{LONG}.urdf"), "there is no file"),
        (("--robots", "a\0b"), "unknown robot"),
        (("--robots", "g1"), "has a free base"),
        (("--robots", ""), "unknown robot"),
        (("--adapters", LONG), "unknown adapter"),
        (("--adapters", f"{LONG}:Class"), "cannot load the adapter"),
        (("--adapters", ":"), "cannot load the adapter"),
        (("--adapters", "retorque:Robot"), "is not an adapter"),
        (("--weights", LONG), "no file of weights"),
        (("--json", f"{LONG}/{LONG}.json"), "File name too long"),
        ((f"--{LONG}", "1"), "unknown option"),
    ),
    ids=lambda value: str(value)[:40],
)
def test_options(arguments: tuple[str, ...], said: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, "bench", "tracking", *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    (
        (r"\nmass = [\d.e-]+", "\nmass = 1e308"),
        (r"\nmass = [\d.e-]+", "\nmass = 1e400"),
        (r"\nmass = [\d.e-]+", "\nmass = nan"),
        (r"\nmass = [\d.e-]+", "\nmass = -1e308"),
        (r"\nmass = [\d.e-]+", "\nmass = true"),
        (r"\ncentre = \[[^\]]*\]", "\ncentre = [1e308, 0.0, 0.0]"),
        (r"\ncentre = \[[^\]]*\]", "\ncentre = [[0.0], 0.0, 0.0]"),
        (r"\ninertia = \[[^\]]*\]", "\ninertia = [1e308, 1e308, 1e308, 0.0, 0.0, 0.0]"),
        (r"\nposition = \[[^\]]*\]", "\nposition = [0.0, 1e308, 0.0]"),
        (r"\nhome = \[[^\]]*\]", "\nhome = [1e308, 0.0, 0.0, 0.0, 0.0, 0.0]"),
        (r"\nhome = \[[^\]]*\]", "\ngravity = [0.0, 0.0, -1e308]\nhome = [0.0]"),
    ),
    ids=lambda change: change[1].strip()[:40],
)
def test_cards_with_absurd_numbers(change: tuple[str, str], tmp_path: Path, capsys) -> None:
    text, count = re.subn(*change, CARD, count=1)
    assert count == 1
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert "bad.toml" in refused(capsys, "bench", "tracking", "--robots", str(path), *SMALL)


def test_a_file_of_another_format_with_absurd_numbers(tmp_path: Path) -> None:
    body = '<inertial pos="0 0 0.1" mass="{}" diaginertia="{} {} {}"/>'
    for mass, inertia in ((1e308, 0.1), (1.0, 1e300)):
        path = tmp_path / "bad.xml"
        path.write_text(
            '<mujoco><worldbody><body name="a"><joint name="b" axis="0 1 0"/>'
            + body.format(mass, inertia, inertia, inertia)
            + "</body></worldbody></mujoco>"
        )
        with pytest.raises(RetorqueError, match=r"bad\.xml"):
            load(path)


def test_names_of_three_hundred_letters_are_names(tmp_path: Path) -> None:
    """On a card, in a file and in an export: long is not wrong."""
    path = tmp_path / "long.toml"
    path.write_text(CARD.replace('name = "z1"', f'name = "{LONG}"', 1))
    robot = Robot.load(path)
    assert robot.name == LONG
    again = Robot.load(robot.save(tmp_path / "again.toml"))
    assert again.name == LONG and again.joint_names == robot.joint_names
    xml = tmp_path / "long.xml"
    xml.write_text(
        f'<mujoco><worldbody><body name="{LONG}"><joint name="j{LONG}" axis="0 1 0"/>'
        '<inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/></body></worldbody></mujoco>'
    )
    assert Robot.load(xml).joint_names == (f"j{LONG}",)


def test_two_hundred_joints_have_gains_and_ranges(tmp_path: Path) -> None:
    link = '<body name="b{0}" pos="0 0 0.1"><joint name="j{0}" axis="0 1 0"/>' + (
        '<inertial pos="0 0 0.05" mass="0.1" diaginertia="1e-3 1e-3 1e-3"/>'
    )
    path = tmp_path / "chain.xml"
    chain = "".join(link.format(i) for i in range(200)) + "</body>" * 200
    path.write_text(f"<mujoco><worldbody>{chain}</worldbody></mujoco>")
    robot = Robot.load(path)
    profile = profile_of(robot)
    assert robot.n == 200
    for values in (profile.tracking_stiffness, profile.tracking_amplitude, profile.friction_max):
        assert values.shape == (200,) and np.all(np.isfinite(values)) and np.all(values >= 0.0)


@pytest.fixture(scope="module")
def weights() -> tuple[dict[str, np.ndarray], dict]:
    """TAM's tensors and what their file says about them; rewritten below with a checksum that is right."""
    return load_tensors(find("tam", ""), "TAM weights", 1)


@pytest.mark.parametrize("spoilt", ("nan", "infinite", "missing", "shape", "type"))
def test_weights_with_bad_tensors(spoilt: str, weights, tmp_path: Path, capsys) -> None:
    tensors, header = {name: array.copy() for name, array in weights[0].items()}, weights[1]
    name = max(tensors, key=lambda key: tensors[key].size)
    if spoilt == "missing":
        del tensors[name]
    elif spoilt == "shape":
        tensors[name] = tensors[name][:-1]
    elif spoilt == "type":
        tensors[name] = tensors[name].astype(np.int32)
    else:
        tensors[name].flat[7] = np.nan if spoilt == "nan" else np.inf
    path = save_tensors(tmp_path / "bad.safetensors", tensors, "TAM weights", 1, header)
    with pytest.raises(RetorqueError, match=r"bad\.safetensors"):
        make("tam", Z1, weights=path)
    if spoilt == "nan":
        given = ("--robots", "z1", "--adapters", "tam", "--weights", str(path), *SMALL)
        assert "bad.safetensors" in refused(capsys, "bench", "tracking", *given)


@pytest.mark.parametrize(
    "change",
    (
        {"shape": 3},
        {"shape": {}},
        {"shape": {"width": "wide"}},
        {"robots": []},
        {"robots": {"z1": 7}},
        {"rate": "fast"},
        {"rate": 250.0},
        {"rate": float("nan")},
        {"gravity": "none"},
        {"gravity": None},
        {"only": 5},
        {"only": "panda"},
        {"made": "by hand"},
    ),
    ids=str,
)
def test_weights_with_a_header_of_the_wrong_type(change: dict, weights, tmp_path: Path) -> None:
    tensors, header = weights
    path = save_tensors(tmp_path / "bad.safetensors", tensors, "TAM weights", 1, {**header, **change})
    with pytest.raises(RetorqueError, match=r"bad\.safetensors"):
        make("tam", Z1, weights=path)


@pytest.mark.parametrize("value", (None, 7, "text", [], {"kind": 3}, {"format": "1"}, {"header": []}), ids=str)
def test_files_that_say_nonsense_about_themselves(value: object, weights, tmp_path: Path) -> None:
    with safe_open(find("tam", ""), framework="numpy") as file:
        ((key, text),) = file.metadata().items()
    about = {**json.loads(text), **value} if isinstance(value, dict) else value
    path = tmp_path / "bad.safetensors"
    save_file(weights[0], path, metadata={key: json.dumps(about)})
    with pytest.raises(RetorqueError, match=r"bad\.safetensors"):
        make("tam", Z1, weights=path)


def test_weights_that_are_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "bad.safetensors"
    for content in (b"", b"\x00" * 100, b"\xff" * 100, find("tam", "").read_bytes()[:5000]):
        path.write_bytes(content)
        with pytest.raises(RetorqueError, match=r"bad\.safetensors"):
            make("tam", Z1, weights=path)


def test_logs_that_hold_nothing_or_garbage(tmp_path: Path, capsys) -> None:
    for name, content in (
        ("empty.csv", b""),
        ("garbage.csv", bytes(range(256)) * 20),
        ("text.csv", b"time,q1\nhello,world\n"),
        ("huge.csv", b"time,q1,qd1,tau1\n" + b"1e308,1e308,1e308,1e308\n" * 30),
        ("broken.npz", b"PK\x03\x04 not a zip"),
        ("broken.parquet", b"PAR1PAR1"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        refused(capsys, "identify", str(path), "--robot", "z1")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_at_the_end_costs_the_file_and_not_the_table(capsys) -> None:
    assert main(["bench", "tracking", "--robots", "z1", "--adapters", "direct", *SMALL, "--json", "/dev/full"]) == 2
    out, err = capsys.readouterr()
    assert "joint RMSE" in out and "No space left on device" in err


def test_closed_standard_streams(tmp_path: Path) -> None:
    """The result still reaches its file, and nothing else is written into it."""
    command = f"{sys.executable} -m retorque bench tracking --robots z1 --adapters direct {' '.join(SMALL)}"
    done = subprocess.run(["sh", "-c", f"{command} --json out.json 0>&- 1>&- 2>&-"], cwd=tmp_path, timeout=300)
    assert done.returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["rows"]


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    """A command in a folder that was deleted meanwhile still answers."""
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && {sys.executable} -m retorque robots"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "panda" in done.stdout, done.stderr
