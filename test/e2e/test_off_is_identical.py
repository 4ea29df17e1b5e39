"""Off means off: where kperfir does not instrument, TTGIR, PTX and cubin are byte for byte plain Triton's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import RunPython

COMPILE = """
import hashlib, json, sys
{before}
import triton
from kernels.cases import CASES
from triton.backends.compiler import GPUTarget
{during}
digests = {{}}
for target in (80, 90):
    for name in ("matmul_fp16", "softmax_fp32", "fa_fwd_fp16"):
        case = CASES[name]
        compiled = triton.compile(case.source(), target=GPUTarget("cuda", target, 32), options=dict(case.options))
        for stage in ("ttgir", "llir", "ptx", "cubin"):
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


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_code_is_identical_where_nothing_is_recorded(
    state: str, run_python: RunPython, tmp_path_factory: pytest.TempPathFactory
):
    def digests(before: str, during: str) -> dict[str, object]:
        cache = tmp_path_factory.mktemp("cache")
        child = run_python("-c", COMPILE.format(before=before, during=during), cwd=cache, TRITON_CACHE_DIR=str(cache))
        assert child.returncode == 0, child.stderr
        result: dict[str, object] = json.loads(child.stdout)
        return result

    assert digests(*STATES[state]) == digests("", "")
