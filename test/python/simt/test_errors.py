"""Launches that cannot be, programs that do not end, and what a kernel says about itself."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from kperfir._native import simt

from support import ptx_lab

FOREVER = "LOOP: add.u32 %r1, %r1, 1; bra LOOP;"


def test_trap_names_the_thread_and_line() -> None:
    body = "setp.eq.u32 %p1, %r0, 37; @%p1 trap;"
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(body, np.zeros(1, np.uint32), threads=64)
    error = caught.value
    assert (error.kind, error.warp, error.lane, error.kernel) == ("trap", 1, 5, "kernel")
    assert error.ptx_line > 0


def test_source_line_comes_from_loc() -> None:
    body = ".loc 1 42 7\n trap;\n"
    text = ptx_lab.ptx(body, 1).replace(".visible", '.file 1 "/somewhere/kernels.py"\n.visible')
    with pytest.raises(simt.Error) as caught:
        ptx_lab.launch(simt.Module(text), np.zeros(1, np.uint32))
    assert caught.value.line == 42
    assert caught.value.file.endswith("kernels.py")
    assert "kernels.py:42" in str(caught.value)


def test_endless_loop_meets_the_limit() -> None:
    device = ptx_lab.device(instruction_limit=100_000)
    with pytest.raises(simt.Error) as caught:
        ptx_lab.run(FOREVER, np.zeros(1, np.uint32), on=device)
    assert caught.value.kind == "limit"
    assert "100000 warp instructions" in caught.value.message


def test_device_works_after_an_error() -> None:
    device = ptx_lab.device(instruction_limit=100_000)
    out = np.zeros(1, np.uint32)
    for body in (FOREVER, "trap;", "ld.global.u32 %r1, [%rd0+400];"):
        with pytest.raises(simt.Error):
            ptx_lab.run(body, out, on=device)
    ptx_lab.run("st.global.u32 [%rd0], 7;", out, on=device)
    assert out[0] == 7


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Python's own handler of SIGINT: a shell starts its background jobs with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_ends_a_launch() -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ptx_lab.run(FOREVER, np.zeros(1, np.uint32))
    timer.join()
    assert time.monotonic() - start < 5


def test_other_python_threads_run_during_a_launch() -> None:
    ticks = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(simt.Error):
        ptx_lab.run(FOREVER, np.zeros(1, np.uint32), on=ptx_lab.device(instruction_limit=5_000_000))
    stop.set()
    thread.join()
    assert len(ticks) > 3


def test_wrong_parameters_are_refused_by_number_and_size() -> None:
    module = simt.Module(ptx_lab.ptx("", 2))
    device = ptx_lab.device()
    shape = {"grid": (1, 1, 1), "block_threads": 32, "shared_bytes": 0}
    with pytest.raises(ValueError, match="found 1 parameters, expected 2"):
        device.launch(module, params=[bytes(8)], **shape)
    with pytest.raises(ValueError, match=r"parameter 1 .*found 4 bytes, expected 8"):
        device.launch(module, params=[bytes(8), bytes(4)], **shape)


def test_required_threads_are_checked() -> None:
    text = ptx_lab.ptx("", 1).replace("\n{\n", "\n.reqntid 64\n{\n", 1)
    module = simt.Module(text)
    assert module.reqntid == (64, 1, 1)
    with pytest.raises(ValueError, match="expected 64"):
        ptx_lab.launch(module, np.zeros(1, np.uint32), threads=32)


def test_cta_that_does_not_fit_names_the_resource() -> None:
    for shape, limiter in (({"shared": 200_000}, "shared memory"), ({"registers": 255, "threads": 1024}, "registers")):
        with pytest.raises(simt.Error) as caught:
            ptx_lab.run("", np.zeros(1, np.uint32), **shape)
        assert caught.value.kind == "limit"
        assert limiter in caught.value.message


def test_estimate_of_registers_leaves_room_for_one_cta() -> None:
    loads = "".join(f"ld.volatile.global.u32 %r{i}, [%rd0];" for i in range(1, 90))
    uses = "".join(f"add.u32 %r1, %r1, %r{i};" for i in range(2, 90))
    result = ptx_lab.run(loads + uses + "st.global.u32 [%rd0], %r1;", np.zeros(1, np.uint32), threads=1024, registers=0)
    assert result.occupancy == 1


def test_bad_chip_is_refused() -> None:
    with pytest.raises(ValueError, match=r"chip file|JSON"):
        simt.Device("{}")
    with pytest.raises(ValueError, match="l2_latency"):
        simt.Device(ptx_lab.chip_text().replace('"l2_latency"', '"l2"'))


def test_ranges_may_not_overlap() -> None:
    device = ptx_lab.device()
    device.map(4096, 100, "x", True)
    with pytest.raises(ValueError, match="overlaps"):
        device.map(4100, 4, "y", True)
    device.unmap(4096)
    with pytest.raises(ValueError, match="unmap"):
        device.unmap(4096)


PRINTF = """
  .local .align 8 .b8 args[32];
  mov.u64 %rd5, args;
  cvta.local.u64 %rd6, %rd5;
  mov.u64 %rd7, text;
  cvta.global.u64 %rd8, %rd7;
  st.local.u32 [%rd5], %r0;
  mov.f64 %fd1, 0d3FF8000000000000;
  st.local.f64 [%rd5+8], %fd1;
  mov.u64 %rd9, -5;
  st.local.u64 [%rd5+16], %rd9;
  st.local.u64 [%rd5+24], %rd8;
  {
    .param .b64 p0; .param .b64 p1; .param .b32 r;
    st.param.b64 [p0], %rd8;
    st.param.b64 [p1], %rd6;
    call.uni (r), vprintf, (p0, p1);
    ld.param.b32 %r5, [r];
  }
"""


def test_printf_formats_per_lane() -> None:
    text = "n=%u f=%.2f l=%lld %%\n"
    data = ", ".join(str(byte) for byte in text.encode() + b"\0")
    scope = f"""
.extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[{len(text) + 1}] = {{{data}}};
"""
    result = ptx_lab.run(PRINTF, np.zeros(1, np.uint32), module_scope=scope, threads=3)
    assert "".join(result.printf) == "".join(f"n={i} f=1.50 l=-5 %\n" for i in range(3))
