"""README's Python runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_code_in_the_readme_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks, "the README shows no Python"
    for index, block in enumerate(blocks):
        script = tmp_path / f"block{index}.py"
        script.write_text(block)
        done = subprocess.run([sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{block}\n{done.stderr}"
