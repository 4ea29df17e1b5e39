"""A small kernel on the SIMT device, for `kperfir doctor`: ``python -m kperfir.cli.probe OUT.kpf``.

A module of its own, because Triton reads the source of a kernel from its file.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

from __future__ import annotations

import sys

import numpy as np
import triton
import triton.language as tl

import kperfir

SIZE = 256


@triton.jit
def probe_add(x, y, out, n, BLOCK: tl.constexpr):
    """Add two vectors."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=inside) + tl.load(y + offsets, mask=inside), mask=inside)


def main(path: str) -> None:
    """Run the kernel under a profile that writes `path`, and compare its result with NumPy's."""
    x, y = np.arange(SIZE, dtype=np.float32), np.full(SIZE, 0.5, np.float32)
    out = np.zeros(SIZE, np.float32)
    with kperfir.profile(path, device="simt"):
        arrays = [kperfir.simt_array(array) for array in (x, y, out)]
        probe_add[(2,)](*arrays, SIZE, BLOCK=SIZE // 2)
    if not np.array_equal(out, x + y):
        raise SystemExit("the kernel's result is wrong")


if __name__ == "__main__":
    main(sys.argv[1])
