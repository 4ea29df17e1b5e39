"""Every host instruction set gives the same results; one that does not exist is refused."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

MULTIPLY = """
  cvt.rn.f32.u32 %f0, %r0;
  ex2.approx.f32 %f1, 0f3E800000;
  cvt.rn.f16x2.f32 %r1, %f0, %f1;
  mov.f32 %f4, %f0; mov.f32 %f5, %f1; mov.f32 %f6, %f0; mov.f32 %f7, %f1;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%f4,%f5,%f6,%f7}, {%r1,%r1,%r1,%r1}, {%r1,%r1}, {%f4,%f5,%f6,%f7};
  mul.wide.u32 %rd8, %r0, 16;
  add.u64 %rd9, %rd0, %rd8;
  st.global.v4.f32 [%rd9], {%f4,%f5,%f6,%f7};
"""


def test_results_do_not_depend_on_the_host_instruction_set() -> None:
    names = simt.host_instruction_sets()
    assert names[0] == "baseline"
    assert simt.Module(ptx_lab.ptx(MULTIPLY, 1)).isa == names[-1]
    results = []
    for name in names:
        module = simt.Module(ptx_lab.ptx(MULTIPLY, 1), isa=name)
        assert module.isa == name
        out = np.zeros(128, np.float32)
        ptx_lab.launch(module, out)
        results.append(out)
    assert np.count_nonzero(results[0]) == 128
    for other in results[1:]:
        assert np.array_equal(results[0].view(np.uint32), other.view(np.uint32))


def test_instruction_set_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"found `neon`, expected baseline, avx2 or avx512.*its best is"):
        simt.Module(ptx_lab.ptx(MULTIPLY, 1), isa="neon")
