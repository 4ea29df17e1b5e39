"""A kernel, compiled and run, as Perfetto reads it: the whole way from Triton source to slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

import kperfir
from kperfir import demo
from support.trace_processor import open_trace
from support.trace_slices import launch_offsets, slices_of_timeline, slices_of_trace

if TYPE_CHECKING:
    from pathlib import Path


def test_slices_equal_the_spans_of_matmul_and_flash_attention(tmp_path: Path) -> None:
    with kperfir.profile(tmp_path / "x.kpf", device="simt") as profile:
        demo.run_matmul((128, 64, 64))
        demo.run_flash_attention((1, 64, 64))
    timeline = profile.load()
    assert set(timeline.launches["kernel"]) == {"matmul", "flash_attention"}
    path = tmp_path / "x.pftrace"
    timeline.to_perfetto(path)
    with open_trace(path) as trace:
        assert trace.problems() == []
        actual = slices_of_trace(trace)
        pd.testing.assert_frame_equal(actual, slices_of_timeline(timeline, launch_offsets(trace)))
    dots = actual[actual["kind"] == "dot"] if "kind" in actual else actual
    assert dots["file"].str.endswith("kernels.py").all()
    assert (dots["iteration"] >= 0).any()
