"""Imbalance: CTAs with more work than others, and SMs that have nothing to do while those end.

Adds up the rows of a triangle: row i has i + 1 elements. First a program takes eight rows that follow each other, so
the last ones have the long rows. Then it takes each of its rows from another part of the triangle.
"""

import numpy as np
import triton
import triton.language as tl
from walkthrough import conclude, cycles, profile

from kperfir.analysis.registry import ANALYSES

ROWS, PROGRAMS = 256, 32


@triton.jit
def sum_rows(x_ptr, out_ptr, step, stride, ROWS: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr):
    for number in range(EACH):
        row = tl.program_id(0) * step + number * stride
        total = tl.zeros([BLOCK], tl.float32)
        for first in range(0, row + 1, BLOCK):
            columns = first + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + row * ROWS + columns, mask=columns <= row, other=0.0)
        tl.store(out_ptr + row, tl.sum(total))


def main() -> None:
    x = np.random.default_rng(0).random((ROWS, ROWS), dtype=np.float32)
    expected = np.tril(x).sum(1)
    each = ROWS // PROGRAMS
    timelines = []
    for name, step, stride in (("before", each, 1), ("after", 1, PROGRAMS)):
        out = np.zeros(ROWS, np.float32)

        def launch(step: int = step, stride: int = stride, out: np.ndarray = out) -> None:
            sum_rows[(PROGRAMS,)](x, out, step, stride, ROWS, EACH=each, BLOCK=32, num_warps=1)

        timelines.append(profile(f"imbalance-{name}", launch))
        np.testing.assert_allclose(out, expected, rtol=1e-5)
    for title, timeline in zip(("rows that follow each other", "rows from everywhere"), timelines, strict=True):
        (row,) = ANALYSES["waves"].run(timeline).itertuples(index=False)
        print(f"{title}: {cycles(timeline):,} cycles")
        print(f"    busiest SM {row.imbalance:.2f} times the mean, {row.tail_share:.1%} idle behind an SM's last CTA")
    conclude(*timelines)


if __name__ == "__main__":
    main()
