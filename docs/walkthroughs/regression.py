"""A regression: a change that looks harmless, found by comparing two captures.

Scales rows to their largest element. The new version is tidier, it has one loop less: it finds the row's largest
element again for each block, where the old one did so once.
"""

import numpy as np
import triton
import triton.language as tl
from walkthrough import conclude, profile

from kperfir.cli.main import main as kperfir

ROWS, COLUMNS = 16, 2048


@triton.jit
def scale_rows(x_ptr, out_ptr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr, NEW: tl.constexpr):
    row = tl.program_id(0) * COLUMNS
    inner = tl.arange(0, BLOCK)
    largest = 0.0
    if not NEW:
        for start in range(0, COLUMNS, BLOCK):
            largest = tl.maximum(largest, tl.max(tl.abs(tl.load(x_ptr + row + start + inner)), 0))
    for start in range(0, COLUMNS, BLOCK):
        if NEW:
            largest = tl.max(tl.abs(tl.load(x_ptr + row + tl.arange(0, COLUMNS))), 0)
        tl.store(out_ptr + row + start + inner, tl.load(x_ptr + row + start + inner) / largest)


def main() -> int:
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    timelines = []
    for name, new in (("good", 0), ("new", 1)):
        out = np.zeros_like(x)

        def launch(new: int = new, out: np.ndarray = out) -> None:
            scale_rows[(ROWS,)](x, out, COLUMNS, BLOCK=256, NEW=new, num_warps=1)

        timelines.append(profile(f"regression-{name}", launch))
        np.testing.assert_allclose(out, x / np.abs(x).max(1, keepdims=True), rtol=1e-6)
    code = kperfir(["compare", "regression-good.kpf", "regression-new.kpf"])
    print(f"\nexit code {code}")
    conclude(*timelines)
    return code


if __name__ == "__main__":
    main()
