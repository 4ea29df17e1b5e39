"""The list of instructions in the documentation is the loader's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kperfir._native import simt

from support import ptx_lab

ROOT = Path(__file__).resolve().parents[3]


def test_documentation_is_up_to_date() -> None:
    command = [sys.executable, ROOT / "tools" / "generate_simt_docs.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "instruction",
    [
        "st.async.release.gpu.global.b32 [%rd1], %r2;",
        "tcgen05.alloc.sync.b32 [%r1], 32;",
    ],
)
def test_instruction_that_is_not_known_is_named_with_its_line(instruction: str) -> None:
    with pytest.raises(simt.Error) as caught:
        simt.Module(ptx_lab.ptx("\n\n" + instruction, 0, target="sm_90a"))
    assert caught.value.kind == "unsupported"
    assert caught.value.opcode == instruction.split(" ", 1)[0]
    assert caught.value.kernel == "kernel"
    assert caught.value.ptx_line > 0
