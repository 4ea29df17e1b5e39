"""The kernel as it is without records, compiled beside the one with them as far as somebody asks, each stage once.

    plain = PlainKernel(stages, module, metadata)
    plain.product("ptx")
    plain.footprint()          # what machine code of it takes; known from an earlier compilation, if there was one

Nobody asks for most kernels. What is asked for more than once, by each attempt to compile with fewer records and by
each session with other settings, is kept: products here, the footprint in Triton's cache.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.code import cubin
from kperfir.compile.custom_passes import run_passes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FILE = "kperfir_footprint.json"


@dataclass(frozen=True, slots=True)
class Footprint:
    """What one thread of a kernel takes."""

    registers: int
    stack_bytes: int

    @classmethod
    def of(cls, products: Mapping[str, Any]) -> Footprint | None:
        """What a compilation's machine code says; None where ptxas made none."""
        binary = products.get("cubin", b"")
        registers, stack = cubin.registers(binary), cubin.stack_bytes(binary)
        return None if registers is None or stack is None else cls(registers, stack)


class PlainKernel:
    """See the module. `stages` are Triton's from ``llir`` on, in order; `metadata` those that ``llir`` is given.

    `module` is the instrumented one, which has kept what it was (`kperf-keep-module`). Whoever asks for anything finds
    it without records.
    """

    def __init__(self, stages: Mapping[str, Callable[..., Any]], module: Any, metadata: Mapping[str, Any]) -> None:
        self._stages = stages
        self._module = module
        self._metadata = dict(metadata)
        self._products: dict[str, Any] = {}

    def product(self, wanted: str) -> Any:
        """What the stage of that name makes."""
        source: Any = None
        for name, stage in self._stages.items():
            if name not in self._products:
                source = self._restored() if source is None else source
                self._products[name] = stage(source, self._metadata)
            source = self._products[name]
            if name == wanted:
                break
        return source

    def footprint(self, options: Any) -> Footprint | None:
        """What the kernel takes; `options` are those of Triton's backend."""
        from triton.runtime.cache import get_cache_manager

        cache = get_cache_manager(self._key(options))
        if found := cache.get_file(_FILE):
            return Footprint(**json.loads(Path(found).read_text(encoding="utf-8")))
        footprint = Footprint.of({"cubin": self.product("cubin")}) if "cubin" in self._stages else None
        if footprint is not None:
            text = json.dumps({"registers": footprint.registers, "stack_bytes": footprint.stack_bytes})
            cache.put(text, _FILE, binary=False)
        return footprint

    def _key(self, options: Any) -> str:
        """All that the machine code follows from, as Triton's own key has it; the source is the TTGIR."""
        from triton._C.libtriton import get_cache_invalidating_env_vars
        from triton.compiler.compiler import make_backend
        from triton.runtime.cache import triton_key

        parts = (
            "kperfir footprint", triton_key(), make_backend(self._metadata["target"]).hash(), options.hash(),
            sorted(get_cache_invalidating_env_vars().items()), self._restored().str(),
        )  # fmt: skip
        return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()

    def _restored(self) -> Any:
        restored = run_passes(self._module, "kperf-keep-module{action=restore},kperf-keep-module")
        return run_passes(restored, "kperf-drop-scopes")
