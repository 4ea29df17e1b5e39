"""Off means off: where kperfir does not instrument, TTGIR, PTX and cubin are byte for byte plain Triton's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunPython

COMPILE = """
import hashlib, json, sys
{before}
import triton
from kernels.cases import CASES
from triton.backends.compiler import GPUTarget
{during}
digests = {{}}
for target in (("cuda", 80, 32), ("cuda", 90, 32), ("cuda", 100, 32), ("hip", "gfx942", 64)):
    stages = ("ttgir", "llir", "ptx", "cubin") if target[0] == "cuda" else ("ttgir", "llir", "amdgcn", "hsaco")
    for name in ("matmul_fp16", "softmax_fp32", "fa_fwd_fp16"):
        case = CASES[name]
        compiled = triton.compile(case.source(), target=GPUTarget(*target), options=dict(case.options))
        for stage in stages:
            code = compiled.asm[stage]
            code = code if isinstance(code, bytes) else code.encode()
            digests[f"{{name}} {{target}} {{stage}}"] = hashlib.sha256(code).hexdigest()
        digests[f"{{name}} {{target}} metadata"] = sorted(compiled.metadata._asdict())
print(json.dumps(digests))
"""
INSTALL = """
from kperfir.compile import triton_hook
from kperfir.config import resolve
triton_hook.install(resolve({}, kernels=["no_such_kernel"]))
"""
STATES = {
    "imported": ("import kperfir", ""),
    "plugin loaded": ("", "from kperfir.compile.plugin import load_plugin; load_plugin()"),
    "uninstalled": ("", INSTALL + "triton_hook.uninstall()"),
    "no kernel matches": ("", INSTALL),
}


@pytest.fixture(scope="module")
def plain(run_python: RunPython, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    return digests("", "", run_python, tmp_path_factory.mktemp("cache"))


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_code_is_identical_where_nothing_is_recorded(
    state: str, plain: dict[str, object], run_python: RunPython, tmp_path: Path
):
    assert len(plain) == 4 * 3 * 5
    assert digests(*STATES[state], run_python, tmp_path) == plain


def digests(before: str, during: str, run_python: RunPython, cache: Path) -> dict[str, object]:
    child = run_python("-c", COMPILE.format(before=before, during=during), cwd=cache, TRITON_CACHE_DIR=str(cache))
    assert child.returncode == 0, child.stderr
    result: dict[str, object] = json.loads(child.stdout)
    return result
