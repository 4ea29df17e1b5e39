"""A load that is slow because neighbouring threads read far apart.

Adds up one field of many records. First a record's sixteen fields lie together, so each of the 32 addresses of a warp
is in a sector of its own, of which one element is used. Then the records lie field by field.
"""

import numpy as np
import triton
import triton.language as tl
from walkthrough import conclude, profile, show

RECORDS, FIELDS, FIELD = 32768, 16, 3


@triton.jit
def sum_field(x_ptr, out_ptr, apart: tl.constexpr, first: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, EACH, BLOCK):
        records = tl.program_id(0) * EACH + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + first + records * apart)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total))


def main() -> None:
    records = np.random.default_rng(0).random((RECORDS, FIELDS), dtype=np.float32)
    programs = 16
    each = RECORDS // programs
    expected = records[:, FIELD].reshape(programs, each).sum(1)
    timelines = []
    for name, x, apart, first in (
        ("before", records, FIELDS, FIELD),
        ("after", np.ascontiguousarray(records.T), 1, FIELD * RECORDS),
    ):
        out = np.zeros(programs, np.float32)

        def launch(x: np.ndarray = x, out: np.ndarray = out, apart: int = apart, first: int = first) -> None:
            sum_field[(programs,)](x, out, apart, first, EACH=each, BLOCK=512, num_warps=4)

        timelines.append(profile(f"slow_load-{name}", launch))
        np.testing.assert_allclose(out, expected, rtol=1e-5)
    show("record by record", timelines[0], ("load", "iteration"))
    show("field by field", timelines[1], ("load", "iteration"))
    conclude(*timelines)


if __name__ == "__main__":
    main()
