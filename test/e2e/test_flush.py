"""Strategy `flush` keeps all records of a long kernel, changes no result, and counts what finds no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
import triton
import triton.language as tl

import kperfir
from kperfir.config import resolve
from kperfir.errors import ConfigError
from kperfir.runtime.simt import active_simt_driver
from support.launch import simt

if TYPE_CHECKING:
    from pathlib import Path

    from kperfir.timeline import Timeline

COUNT = 17_100
# What the compiler keeps of a warp in shared memory, in words: a record takes one at least.
SHARED_WORDS = 512
CHIPS = ("a100", "h100")


@triton.jit
def running_maximum(x, o, count):
    best = tl.load(x)
    for i in range(count):
        value = tl.load(x + i)
        best = tl.maximum(best, value)
        tl.store(o + i, best)


def launch() -> torch.Tensor:
    x = torch.randn(COUNT, generator=torch.Generator().manual_seed(0))
    o = torch.empty(COUNT)
    running_maximum[(2,)](x, o, COUNT, num_warps=1)
    assert o.equal(x.cummax(0).values)
    return o


def profiled(path: Path, **options: object) -> tuple[torch.Tensor, Timeline]:
    with kperfir.profile(path, device="simt", simt_threads=1, **options):
        driver = active_simt_driver()
        assert driver is not None
        with driver.observed() as launches:
            o = launch()
    assert launches[0].shape.shared_bytes == 0
    return o, kperfir.load(path)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_kernel_with_a_hundred_times_the_records_that_a_shared_buffer_holds_loses_none(chip: str, tmp_path: Path):
    with simt(chip=chip):
        plain = launch()
    o, timeline = profiled(tmp_path / "out.kpf", strategy="flush", simt_chip=chip)
    assert o.equal(plain)
    assert timeline.tracks["dropped"].tolist() == [0, 0]
    assert (timeline.tracks["records"] >= 100 * SHARED_WORDS).all()
    iterations = timeline.spans[timeline.spans["kind"] == "iteration"]
    for _, of_cta in iterations.groupby("cta"):
        assert of_cta["iteration"].tolist() == list(range(COUNT))


def test_records_that_find_no_room_are_counted_exactly(tmp_path: Path):
    _, everything = profiled(tmp_path / "all.kpf", strategy="flush")
    _, part = profiled(tmp_path / "part.kpf", strategy="flush", buffer_bytes=64 << 10)
    assert part.tracks["records"].tolist() == everything.tracks["records"].tolist()
    assert (part.tracks["stamps"] < everything.tracks["stamps"]).all()
    assert (part.tracks["records"] - part.tracks["stamps"]).tolist() == part.tracks["dropped"].tolist()


def test_flush_does_not_go_with_a_shared_buffer():
    with pytest.raises(ConfigError, match="flush with a shared buffer"):
        resolve({}, strategy="flush", buffer="shared")
