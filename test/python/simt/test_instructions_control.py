"""Branch tables, exit, traps, fences and hints, uniform loads: what the engine executes and no other module checks."""

from __future__ import annotations

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

STORE = "mul.wide.u32 %rd10, %r0, 4; add.s64 %rd11, %rd0, %rd10; st.global.u32 [%rd11], %r5;"


def failure(body: str, *arrays: np.ndarray, **shape: object) -> simt.Error:
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, *arrays, **shape)
    return caught.value


def branch_by_table(suffix: str, index: str) -> str:
    return f"""
      shr.u32 %r1, %r0, 5;
      {index}
    TARGETS: .branchtargets A, B, A, C;
      brx.idx{suffix} %r1, TARGETS;
    A: mov.u32 %r5, 10; bra END;
    B: mov.u32 %r5, 20; bra END;
    C: mov.u32 %r5, 30;
    END: {STORE}
    """


@pytest.mark.parametrize("suffix", ["", ".uni"])
def test_branch_table_leads_each_warp_to_its_target(suffix: str) -> None:
    out = np.zeros(128, np.uint32)
    ptx_lab.run(branch_by_table(suffix, ""), out, threads=128)
    assert out[::32].tolist() == [10, 20, 10, 30]
    assert (out.reshape(4, 32) == out[::32, None]).all()


def test_branch_table_index_past_the_end_is_an_error() -> None:
    error = failure(branch_by_table("", "add.u32 %r1, %r1, 4;"), np.zeros(32, np.uint32))
    assert error.kind == "out-of-bounds"


def test_exit_ends_the_lanes_that_take_it_even_in_a_function() -> None:
    function = """
    .func leave(.param .b32 limit)
    {
      .reg .pred %q; .reg .b32 %a<3>;
      ld.param.b32 %a1, [limit];
      mov.u32 %a2, %laneid;
      setp.ge.u32 %q, %a2, %a1;
      @%q exit;
      ret;
    }
    """
    out = np.zeros(32, np.uint32)
    body = "{ .param .b32 p; st.param.b32 [p], 11; call.uni leave, (p); } mov.u32 %r5, 1;" + STORE
    ptx_lab.run(body, out, module_scope=function)
    assert out.tolist() == [1] * 11 + [0] * 21


@pytest.mark.parametrize(
    "hint",
    [
        "fence.acq_rel.gpu;", "fence.sc.sys;", "fence.acq_rel.cta;", "fence.proxy.async;", "membar.cta;", "membar.gl;",
        "membar.sys;", "prefetch.global.L1 [%rd0];", "prefetch.global.L2 [%rd0+64];", "prefetchu.L1 [%rd0];",
        "applypriority.global.L2::evict_normal [%rd0], 128;", "setmaxnreg.inc.sync.aligned.u32 64;",
        "setmaxnreg.dec.sync.aligned.u32 24;", "griddepcontrol.wait;", "griddepcontrol.launch_dependents;", "pmevent 1;",
        "nanosleep.u32 20;",
    ],
)  # fmt: skip
def test_fences_and_hints_change_no_value(hint: str) -> None:
    out = np.zeros(64, np.uint32)
    body = f"""
      add.u32 %r5, %r0, 7; {STORE}
      {hint}
      ld.global.u32 %r6, [%rd11];
      mad.lo.u32 %r5, %r6, 3, %r0; {STORE}
    """
    ptx_lab.run(body, out, threads=64)
    assert out.tolist() == [3 * (thread + 7) + thread for thread in range(64)]


def test_sleep_takes_its_time() -> None:
    def cycles(sleep: str) -> int:
        return int(ptx_lab.run(sleep, np.zeros(1, np.uint32)).cycles)

    assert cycles("nanosleep.u32 1000;") - cycles("") > 1000


def test_uniform_load_reads_what_a_load_reads() -> None:
    source, out = np.array([3, 4, 5, 6], np.uint32), np.zeros(32, np.uint32)
    ptx_lab.run("ldu.global.v2.u32 {%r1, %r2}, [%rd1+8]; mad.lo.u32 %r5, %r1, 100, %r2;" + STORE, out, source)
    assert (out == 506).all()


def test_breakpoint_ends_the_kernel_like_a_trap() -> None:
    error = failure("setp.eq.u32 %p1, %r0, 5; @%p1 brkpt;", np.zeros(1, np.uint32))
    assert (error.kind, error.lane) == ("trap", 5)
