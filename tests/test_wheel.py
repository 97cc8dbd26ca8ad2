"""The wheel builds, installs into a clean environment and runs."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    # The build backend is installed here already, so that nothing has to be fetched.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def test_it_holds_the_cards_the_licence_and_every_module(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = [path for path in source.rglob("*") if path.suffix in (".py", ".toml", ".safetensors", ".typed")]
    missing = {str(path.relative_to(source)) for path in wanted} - held
    assert not missing
    assert any(name.endswith("licenses/LICENSE") for name in held)


def test_it_installs_into_a_clean_environment_and_runs(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False)
    folder = tmp_path / "env" / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    pip = [sys.executable, "-m", "pip", "--python", str(tmp_path / "env"), "install", "-qq", "--no-deps", "--no-index"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / "retorque" / "robots" / "cards" / "panda.toml").is_file()
    # What Retorque depends on is lent by the environment of the tests; only Retorque itself is the wheel's.
    (folder / "lent.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    python = tmp_path / "env" / "bin" / "python"
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    where = subprocess.run(
        [python, "-c", "import retorque; print(retorque.__file__)"], capture_output=True, text=True, env=alone
    )
    assert where.stdout.startswith(str(folder)), where.stderr
    shown = subprocess.run(
        [tmp_path / "env" / "bin" / "retorque", "robots"], capture_output=True, text=True, cwd=tmp_path, env=alone
    )
    assert shown.returncode == 0, shown.stderr
    assert "panda" in shown.stdout
