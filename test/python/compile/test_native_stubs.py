"""kperfir/_native/*.pyi says what the installed native module says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_stubs_of_the_native_module_are_up_to_date(tmp_path: Path) -> None:
    command = [sys.executable, "-P", ROOT / "tools" / "generate_native_stubs.py", "--check"]
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
