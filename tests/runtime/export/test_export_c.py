"""The exported folder compiles, proves itself, and holds under garbage and sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from retorque.cli.main import main
from retorque.runtime.export.export_c import ExportCSettings, run
from retorque.work.errors import RetorqueError

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler: cc is needed")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("export") / "panda"
    assert main(["export", "c", "--robot", "panda", "--adapter", "default", "--out", str(out), "--ticks", "600"]) == 0
    return out


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "-C", str(folder), "-j2", *arguments], capture_output=True, text=True, timeout=300)


def test_make_check_replays_the_run(folder: Path) -> None:
    done = make(folder, "check", "CFLAGS=-O1 -Wall -Wextra -Wpedantic -Werror")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "600 ticks: largest difference" in done.stdout and " 0 other codes, 0 not finite" in done.stdout


def test_a_difference_is_found(folder: Path, tmp_path: Path) -> None:
    assert make(folder, "CFLAGS=-O1").returncode == 0
    lines = (folder / "parity.txt").read_text().splitlines()
    words = lines[300].split()
    words[-1] = str(float(words[-1]) + 1e-3)
    altered = tmp_path / "altered.txt"
    altered.write_text("\n".join([*lines[:300], " ".join(words), *lines[301:]]))
    assert subprocess.run([folder / "example", altered], capture_output=True).returncode == 1
    altered.write_text("\n".join(lines[:100]))
    cut = subprocess.run([folder / "example", altered], capture_output=True, text=True)
    assert cut.returncode == 2 and "ends at tick" in cut.stderr


def test_the_header_is_c_plus_plus(folder: Path, tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "use.cpp"
    source.write_text('#include "model.h"\nint main() { return rt_bytes(&retorque_model) == 0; }\n')
    command = ["c++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{folder}", f"-I{folder}/core"]
    subprocess.run([*command, "-fsyntax-only", str(source)], check=True)
    bodies = ["-fsyntax-only", "-x", "c++", *map(str, sorted((folder / "core").glob("*.c")))]
    subprocess.run([flag for flag in command if flag != "-Wpedantic"] + bodies, check=True)


def sanitized(folder: Path, out: Path) -> Path:
    """The garbage program with the exported core, every wrong access and undefined operation ending it."""
    sources = [folder / "model.c", *sorted((folder / "core").glob("*.c")), Path(__file__).with_name("garbage.c")]
    program = out / "garbage"
    flags = ["-std=c99", "-O1", *SANITIZERS, f"-I{folder}", f"-I{folder}/core"]
    subprocess.run(["cc", *flags, "-o", program, *sources, "-lm"], check=True, timeout=600)
    return program


def test_garbage_goes_in_and_sane_torques_come_out(folder: Path, tmp_path: Path) -> None:
    done = subprocess.run([sanitized(folder, tmp_path), "4000"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert done.stdout == "4000 ticks, 0 wrong\n"


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ["direct", "recursive", "recursive-contact", "tam", "tam-recursive", "default"])
def test_a_million_ticks_of_garbage(adapter: str, tmp_path: Path) -> None:
    run(ExportCSettings(robot="panda", adapter=adapter, out=tmp_path / "out", ticks=100))
    program = sanitized(tmp_path / "out", tmp_path)
    done = subprocess.run([program, "1000000"], capture_output=True, text=True, timeout=3000)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"adapter": "particle"}, "has no compiled core"),
        ({"adapter": "recursiv"}, "did you mean 'recursive'"),
        ({"robot": "g1"}, "free base"),
        ({"ticks": 1}, "--ticks"),
        ({"timestep": 2e-3, "adapter": "tam"}, "1000 Hz"),
        ({"timestep": 0.05}, "between 100 and 2000 Hz"),
        ({"out": Path("/proc/nothing")}, "/proc/nothing"),
    ],
    ids=str,
)
def test_what_cannot_be_exported_is_refused_in_a_sentence(change: dict[str, object], says: str, tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match=says):
        run(
            ExportCSettings(
                **{"robot": "panda", "adapter": "recursive", "out": tmp_path / "out", "ticks": 100, **change}
            )
        )
