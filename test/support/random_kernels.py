"""Kernels with random control flow: whatever nests, a capture of it must decode.

    module = write_kernel(seed, folder)
    module.kernel[(PROGRAMS,)](x, seeds, o, B=BLOCK)

A kernel reads its decisions from memory and from a running state, so no trip count and no branch is known before it
runs, and CTAs go different ways.
"""

from __future__ import annotations

import importlib.util
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

PROGRAMS = 4
BLOCK = 256
ROWS = 8
MAX_DEPTH = 4

HEAD = """import triton
import triton.language as tl


@triton.jit
def kernel(x, seeds, o, B: tl.constexpr):
    pid = tl.program_id(0)
    i = tl.arange(0, B)
    state = tl.load(seeds + pid)
    acc = tl.zeros([B], tl.float32)
"""
TAIL = "    tl.store(o + pid * B + i, acc + state)\n"

LEAVES = (
    f"acc += tl.load(x + (state % {ROWS}) * B + i)",
    "acc = acc * 0.5 + tl.max(acc, 0)",
    "acc += tl.sum(acc, 0) * 0.125",
    "tl.store(o + pid * B + i, acc)",
    "state = (state * 5 + 3) % 97",
    "state += tl.load(seeds + state % 4) % 7",
)


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0

    def block(self, depth: int) -> None:
        """Write a few statements, `depth` loops or branches deep."""
        for _ in range(self.random.randint(1, 3)):
            kind = self.random.choice(("leaf", "leaf", "for", "while", "if"))
            if depth >= MAX_DEPTH or kind == "leaf":
                self.line(depth, self.random.choice(LEAVES))
            else:
                getattr(self, f"_{kind}")(depth)
        self.line(depth, "state = (state * 7 + 1) % 101")

    def early_return(self) -> None:
        """Write a return that some CTAs take."""
        self.line(0, f"if state % {self.random.randint(2, 5)} == 0:")
        self.line(1, "tl.store(o + pid * B + i, acc)")
        self.line(1, "return")

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * (depth + 1) + text)

    def _for(self, depth: int) -> None:
        self.names += 1
        self.line(depth, f"for _{self.names} in range(state % {self.random.randint(2, 4)}):")
        self.block(depth + 1)

    def _while(self, depth: int) -> None:
        self.names += 1
        counter = f"c{self.names}"
        self.line(depth, f"{counter} = state % {self.random.randint(2, 4)}")
        self.line(depth, f"while {counter} > 0:")
        self.line(depth + 1, f"{counter} -= 1")
        self.block(depth + 1)

    def _if(self, depth: int) -> None:
        self.line(depth, f"if state % {self.random.randint(2, 3)} == 0:")
        self.block(depth + 1)
        if self.random.random() < 0.5:
            self.line(depth, "else:")
            self.block(depth + 1)


def source(seed: int) -> str:
    """The source of kernel `seed`."""
    writer = _Writer(seed)
    for _ in range(2):
        writer.block(0)
        if writer.random.random() < 0.4:
            writer.early_return()
    return HEAD + "\n".join(writer.lines) + "\n" + TAIL


def write_kernel(seed: int, folder: Path) -> ModuleType:
    """Write kernel `seed` into `folder` and import it."""
    path = folder / f"random_kernel_{seed}.py"
    path.write_text(source(seed), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
