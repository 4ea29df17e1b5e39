"""docs/passes.md and docs/dialects.md say what the TableGen files say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_generated_docs_are_up_to_date():
    llvm = Path(os.environ.get("KPERFIR_LLVM_DIR", ROOT / ".deps" / "llvm"))
    if not (llvm / "bin" / "mlir-tblgen").exists():
        pytest.skip(f"no mlir-tblgen in {llvm}")
    command = [sys.executable, ROOT / "tools" / "generate_compiler_docs.py", "--check", "--llvm", llvm]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
