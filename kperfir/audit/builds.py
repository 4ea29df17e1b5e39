"""Code to audit: found in Triton's cache by what a capture says of a kernel, or compiled again from what is there.

The only part of the audit that imports Triton. Disassembling is done by the tools in Triton's wheel.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import subprocess
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.compile.metadata import NOTE_KEY
from kperfir.errors import CompileError, KPerfWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.config import Options

# Options of a compilation that its caller may have chosen; the rest follows from the target.
CALLER_OPTIONS = (
    "num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion", "launch_cooperative_grid", "launch_pdl",
    "ptx_options", "default_dot_input_precision",
)  # fmt: skip
_ELF_MAGIC = b"\x7fELF"
_THREADS = re.compile(r"^\.(?:reqntid|maxntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", re.MULTILINE)
_WARP_SIZE = 32


@dataclass(frozen=True, slots=True)
class Build:
    """One variant of a kernel for one target. `layout` is empty if it has no records; `note` says what the compiler
    had to do about those.
    """

    kernel: str
    arch: int
    ptx: str
    cubin: bytes
    layout: str
    threads: int
    shared_bytes: int
    note: str = ""


class CachedKernel:
    """A kernel that Triton's cache still holds."""

    def __init__(self, name: str, facts: dict[str, Any]) -> None:
        """Look `name` up by the facts that a capture has of it.

        Raises:
            CompileError: ``not-nvidia``, ``not-in-cache``.
        """
        from triton.runtime.cache import get_cache_manager

        backend, _, arch = str(facts.get("target", "")).partition(":")
        if backend != "cuda":
            raise CompileError(
                "not-nvidia", what="only machine code of NVIDIA GPUs can be audited", where=f"kernel {name}",
                found=facts.get("target") or "no target", expected="cuda",
            )  # fmt: skip
        group = get_cache_manager(str(facts.get("hash", ""))).get_group(f"{name[:150]}.json") or {}
        self._files = {Path(file).suffix: Path(path) for file, path in group.items()}
        if not {".json", ".ptx"} <= self._files.keys():
            raise CompileError(
                "not-in-cache", what="the compiled kernel is no longer in Triton's cache", where=f"kernel {name}",
                found=f"nothing for {str(facts.get('hash', ''))[:16]}", expected="its PTX",
                fix="audit on the machine that captured, with the same TRITON_CACHE_DIR; or capture again",
            )  # fmt: skip
        self._name, self._arch = name, int(arch)
        metadata = json.loads(self._files[".json"].read_text(encoding="utf-8"))
        self._shared_bytes = int(metadata["shared"])
        self._note = str(metadata.get(NOTE_KEY, ""))
        self._options = {key: metadata[key] for key in CALLER_OPTIONS if key in metadata}

    def captured(self, layout: str) -> Build:
        """The code that was launched. Where the SIMT device ran its PTX, ptxas makes machine code of that now."""
        ptx = self._files[".ptx"].read_text(encoding="utf-8")
        cubin = self._files[".cubin"].read_bytes() if ".cubin" in self._files else b""
        if not cubin.startswith(_ELF_MAGIC):
            cubin = self._assemble(ptx)
        threads = _threads(ptx, self._options)
        return Build(self._name, self._arch, ptx, cubin, layout, threads, self._shared_bytes, self._note)

    def compile(self, options: Options | None, arch: int = 0, maxnreg: int = 0) -> Build:
        """Compile it again, for another `arch` or with another bound of registers if given; without records if
        `options` is None.

        Raises:
            CompileError: ``not-instrumented``.
        """
        from kperfir.compile import triton_hook

        source, suffix = (".ttir", ".ttir") if ".ttir" in self._files else (".source", ".glir")
        hook = contextlib.nullcontext() if options is None else triton_hook.installed(options)
        with hook, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled = self._triton_compile(source, suffix, arch or self._arch, maxnreg)
        return build_of(compiled, instrumented=options is not None, caught=caught)

    def _assemble(self, ptx: str) -> bytes:
        """What Triton makes of PTX; it cannot start a compilation there."""
        from triton.backends.compiler import GPUTarget, Language
        from triton.compiler.compiler import make_backend

        backend = make_backend(GPUTarget("cuda", self._arch, _WARP_SIZE))
        stages: dict[str, Callable[[str, dict[str, Any]], bytes]] = {}
        backend.add_stages(stages, backend.parse_options(dict(self._options)), Language.TRITON)
        return bytes(stages["cubin"](ptx, {}))

    def _triton_compile(self, source: str, suffix: str, arch: int, maxnreg: int) -> Any:
        import triton
        from triton.backends.compiler import GPUTarget

        with tempfile.TemporaryDirectory(prefix="kperfir-") as folder:
            path = Path(folder) / f"{self._name[:100]}{suffix}"
            shutil.copyfile(self._files[source], path)
            options = self._options | ({"maxnreg": maxnreg} if maxnreg else {})
            return triton.compile(str(path), target=GPUTarget("cuda", arch, _WARP_SIZE), options=options)


def build_of(compiled: Any, *, instrumented: bool, caught: Any = ()) -> Build:
    """What Triton compiled, as a build.

    Args:
        compiled: Triton's `CompiledKernel`, for a GPU.
        instrumented: It is to have records.
        caught: Warnings of the compilation, which say why it has none.

    Raises:
        CompileError: ``not-instrumented``.
    """
    metadata = compiled.metadata
    layout = getattr(metadata, "kperf_layout", "") or ""
    if instrumented and not layout:
        reasons = [str(one.message) for one in caught if issubclass(one.category, KPerfWarning)]
        raise CompileError(
            "not-instrumented", what="the kernel has no records", where=metadata.name, found="; ".join(reasons)
        )
    ptx = compiled.asm["ptx"]
    options = {"num_warps": metadata.num_warps}
    return Build(
        metadata.name, int(metadata.target.arch), ptx, bytes(compiled.asm["cubin"]), layout, _threads(ptx, options),
        int(metadata.shared), getattr(metadata, NOTE_KEY, ""),
    )  # fmt: skip


def compile_with(options: Options | None, compile: Callable[[], Any]) -> Build:
    """Run `compile`, which returns what Triton compiled, with the records that `options` ask for, or without."""
    from kperfir.compile import triton_hook

    hook = contextlib.nullcontext() if options is None else triton_hook.installed(options)
    with hook, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = compile()
    return build_of(compiled, instrumented=options is not None, caught=caught)


def disassemble(cubin: bytes) -> str:
    """What nvdisasm prints of a cubin, with the line of the PTX that each instruction comes from."""
    return _run_tool("nvdisasm", ["-c", "-gp"], cubin)


def resource_usage(cubin: bytes, kernel: str) -> str:
    """What cuobjdump says of the registers and the stack of `kernel`."""
    text = _run_tool("cuobjdump", ["-res-usage"], cubin)
    lines = text.splitlines()
    mine = [line for before, line in itertools.pairwise(lines) if f"Function {kernel}:" in before]
    return mine[0] if mine else text


def _run_tool(name: str, arguments: list[str], cubin: bytes) -> str:
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    with tempfile.NamedTemporaryFile(prefix="kperfir-", suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([tool, *arguments, file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(
            "tool-failed", what=f"{name} cannot read a cubin", where=str(tool),
            found=done.stderr.strip()[:500] or f"exit code {done.returncode}", fix="see `kperfir doctor`",
        )  # fmt: skip
    return done.stdout


def _threads(ptx: str, options: dict[str, Any]) -> int:
    """Threads of a CTA: warp-specialised kernels have more than their options say."""
    found = _THREADS.search(ptx)
    if not found:
        return _WARP_SIZE * int(options["num_warps"])
    x, y, z = (int(extent or 1) for extent in found.groups())
    return x * y * z
