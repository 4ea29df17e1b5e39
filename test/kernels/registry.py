"""What a kernel of the corpus is: a name, a JIT function, and how it is compiled.

A `Case` says how to compile; what to run it on, and what it must compute, is a
`Workload` (kernels/workload.py). No GPU and no torch are needed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ALL = (80, 90, 100)
HOPPER_UP = (90, 100)
HOPPER = (90,)
BLACKWELL = (100,)


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel of the corpus.

    Attributes:
        signature: Types of the parameters that are no constexpr, in order;
            `"1"` is an integer that Triton specialises to the constant 1.
        options: `num_warps`, `num_stages`, `num_ctas`, `debug`.
        archs: Compute capabilities that the kernel compiles for.
    """

    name: str
    kernel: Any
    signature: tuple[str, ...]
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    archs: tuple[int, ...] = ALL

    def source(self) -> Any:
        """Source for `triton.compile`, every pointer and integer divisible by 16."""
        types: dict[str, str] = {}
        constants: dict[tuple[int], Any] = {}
        attributes: dict[tuple[int], Any] = {}
        remaining = iter(self.signature)
        for index, name in enumerate(self.kernel.arg_names):
            kind = "constexpr" if name in self.constexprs else next(remaining)
            types[name] = "constexpr" if kind == "1" else kind
            if kind == "constexpr":
                constants[(index,)] = self.constexprs[name]
            elif kind == "1":
                constants[(index,)] = 1
            elif kind.startswith("*") or kind in ("i32", "i64"):
                attributes[(index,)] = [["tt.divisibility", 16]]
        if self.kernel.is_gluon():
            from triton.experimental.gluon._runtime import GluonASTSource

            return GluonASTSource(self.kernel, types, constants, attributes)
        from triton.compiler import ASTSource

        return ASTSource(self.kernel, types, constants, attributes)

    def compile(self, arch: int) -> Any:
        """Compile for compute capability `arch`; the result has `.asm` and `.metadata`."""
        import triton
        from triton.backends.compiler import GPUTarget

        return triton.compile(self.source(), target=GPUTarget("cuda", arch, 32), options=dict(self.options))
