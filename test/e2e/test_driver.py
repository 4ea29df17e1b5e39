"""Unmodified Triton host code on the SIMT device: results against NumPy and torch, and faults that name their place."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

import kperfir
from kperfir.errors import DeviceError
from kperfir.runtime import select
from support.launch import simt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("simt_device")


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def add_unmasked(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) + tl.load(y + i))


@triton.jit
def add_scaled(pair, out, scales, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(pair[0] + i) * scales[0] + tl.load(pair[1] + i) * scales[1])


@triton.jit
def scalars(out, a, b, c, d, e):
    tl.store(out + 0, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e.to(tl.float64))


@triton.jit
def copy_block(source, target, R: tl.constexpr, C: tl.constexpr):
    row = tl.program_id(0) * R
    target.store([row, 0], source.load([row, 0]))


@triton.jit
def gather_tables(table, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    source = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.program_id(0) * BLOCK + i, tl.load(source + i))


@triton.jit
def talk(x):
    tl.device_print("value", tl.load(x))


@triton.jit
def insist(x):
    tl.device_assert(tl.load(x) > 0, "x must be positive")


def test_add_of_torch_tensors() -> None:
    x, y, out = torch.rand(1000), torch.rand(1000), torch.empty(1000)
    add[(4,)](x, y, out, 1000, BLOCK=256)
    assert torch.equal(out, x + y)


def test_add_of_numpy_arrays() -> None:
    random = np.random.default_rng(0)
    x, y = random.random(1000, np.float32), random.random(1000, np.float32)
    out = np.zeros_like(x)
    add[(4,)](x, y, out, 1000, BLOCK=256)
    assert np.array_equal(out, x + y)


def test_add_of_views_that_are_not_aligned() -> None:
    x, y, out = torch.rand(1001), torch.rand(1001), torch.zeros(1001)
    add[(4,)](x[1:], y[1:], out[1:], 999, BLOCK=256)
    assert torch.equal(out[1:1000], (x + y)[1:1000])
    assert out[0] == 0
    assert out[1000] == 0


def test_result_is_the_same_for_any_grid_shape() -> None:
    x = torch.rand(512)
    out = torch.empty(512)
    add[lambda meta: (triton.cdiv(512, meta["BLOCK"]), 1)](x, x, out, 512, BLOCK=128)
    assert torch.equal(out, 2 * x)


def test_tuples_of_tensors_and_numbers() -> None:
    x, y, out = torch.rand(128), torch.rand(128), torch.empty(128)
    add_scaled[(1,)]((x, y), out, (2.0, 4), BLOCK=128)
    assert torch.allclose(out, x * 2 + y * 4)


def test_scalars_of_all_kinds() -> None:
    out = torch.empty(5, dtype=torch.float64)
    scalars[(1,)](out, -5, 2**40, 1.5, True, 2**63 + 2**62)
    assert out.tolist() == [-5.0, float(2**40), 1.5, 1.0, float(2**63 + 2**62)]


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_tensor_descriptors(library: str) -> None:
    source = np.random.default_rng(0).random((32, 16), np.float32)
    target = np.zeros_like(source)
    if library == "torch":
        wrapped: list[Any] = [torch.from_numpy(array) for array in (source, target)]
    else:
        wrapped = [kperfir.simt_array(array) for array in (source, target)]
    descriptors = [TensorDescriptor.from_tensor(array, [8, 16]) for array in wrapped]
    copy_block[(4,)](*descriptors, R=8, C=16)
    assert np.array_equal(source, target)


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_memory_that_only_a_table_of_pointers_names(library: str) -> None:
    arrays = [np.random.default_rng(i).random(64, np.float32) for i in range(3)]
    tensors = [torch.from_numpy(array.copy()) for array in arrays]
    hidden: list[Any] = tensors if library == "torch" else arrays
    addresses = [t.data_ptr() if library == "torch" else t.ctypes.data for t in hidden]
    out = torch.empty(3, 64)
    gather_tables[(3,)](torch.tensor(addresses), out, BLOCK=64)
    assert np.array_equal(out.numpy(), np.stack(arrays))


def test_bfloat16_in_a_numpy_array() -> None:
    bits = np.array([0x3F80, 0x4000, 0x4040, 0x4080] * 32, np.uint16)
    x, out = kperfir.simt_array(bits, "bf16"), np.zeros(128, np.float32)
    add[(1,)](x, x, out, 128, BLOCK=128)
    assert out[:4].tolist() == [2.0, 4.0, 6.0, 8.0]


def test_autotune_chooses_by_simulated_time() -> None:
    tuned = triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 1024}, num_warps=8)], key=["n"])(add)
    x, out = torch.rand(4096), torch.empty(4096)
    tuned[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](x, x, out, 4096)
    assert torch.equal(out, 2 * x)
    timings = {config.kwargs["BLOCK"]: times[0] for config, times in tuned.configs_timings.items()}
    assert timings[64] != timings[1024]
    assert tuned.best_config.kwargs["BLOCK"] == min(timings, key=timings.__getitem__)


def test_do_bench_reports_simulated_time() -> None:
    small, large = torch.rand(256), torch.rand(1 << 16)

    def milliseconds(x: Any) -> float:
        out = torch.empty_like(x)
        grid = (triton.cdiv(x.numel(), 256),)
        return float(triton.testing.do_bench(lambda: add[grid](x, x, out, x.numel(), BLOCK=256)))

    assert 0 < milliseconds(small) < milliseconds(large) < 10


def test_launches_take_the_same_cycles_on_any_number_of_host_threads() -> None:
    x, out = torch.rand(1 << 14), torch.empty(1 << 14)
    cycles = []
    for threads in (1, 2, 3):
        select._simt_driver.cache_clear()
        with simt(threads=threads) as driver, driver.observed() as launches:
            for _ in range(3):
                add[(64,)](x, x, out, x.numel(), BLOCK=256)
        cycles.append([launch.result.cycles for launch in launches])
    select._simt_driver.cache_clear()
    assert cycles[0] == cycles[1] == cycles[2]


def test_launches_take_the_same_cycles_whatever_was_launched_before() -> None:
    x, out = torch.rand(1 << 14), torch.empty(1 << 14)
    cycles = set()
    with simt() as driver, driver.observed() as launches:
        for others in range(4):
            add[(64,)](x, x, out, x.numel(), BLOCK=256)
            cycles.add(launches[-1].result.cycles)
            for size in range(1, 1 + others):  # They leave L2 with dirty lines, and tensors come to lie elsewhere.
                y = torch.rand(5000 * size)
                add[(triton.cdiv(y.numel(), 128),)](y, y.clone(), torch.empty_like(y), y.numel(), BLOCK=128)
    assert len(cycles) == 1


def test_device_print_reaches_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    talk[(1,)](torch.tensor([42], dtype=torch.int32), num_warps=1)
    assert "42" in capfd.readouterr().out


def line_of(function: Any, text: str) -> int:
    source, first = inspect.getsourcelines(function.fn)
    return first + next(index for index, line in enumerate(source) if text in line)


def test_access_out_of_bounds_names_line_and_argument() -> None:
    x, y, out = torch.rand(1000), torch.rand(1024), torch.empty(1024)
    with pytest.raises(DeviceError) as caught:
        add_unmasked[(4,)](x, y, out, BLOCK=256)
    assert caught.value.code == "out-of-bounds"
    assert f"{__file__}:{line_of(add_unmasked, 'tl.store')}" in caught.value.where
    assert "add_unmasked" in caught.value.where
    assert "CTA 3" in caught.value.where
    assert "right behind the end of argument x (4000 bytes)" in caught.value.found


def test_store_to_read_only_array_is_an_error() -> None:
    x, out = np.ones(256, np.float32), np.zeros(256, np.float32)
    out.flags.writeable = False
    with pytest.raises(DeviceError, match="out"):
        add[(1,)](x, x, out, 256, BLOCK=256)


def test_failed_assertion_is_an_error_with_its_text() -> None:
    insist[(1,)](torch.tensor([1.0]), debug=True)
    with pytest.raises(DeviceError, match="x must be positive") as caught:
        insist[(1,)](torch.tensor([-1.0]), debug=True)
    assert caught.value.code == "assert"


def test_device_works_on_after_a_fault() -> None:
    x, out = torch.rand(256), torch.empty(256)
    with pytest.raises(DeviceError):
        add_unmasked[(2,)](x, x, out, BLOCK=256)
    add[(1,)](x, x, out, 256, BLOCK=256)
    assert torch.equal(out, 2 * x)


def test_launch_hooks_and_metadata() -> None:
    names: list[str] = []

    def enter(metadata: Any) -> None:
        names.append(metadata.get()["name"])

    x = torch.rand(128)
    triton.knobs.runtime.launch_enter_hook.add(enter)
    try:
        add[(1,)](x, x, torch.empty(128), 128, BLOCK=128)
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(enter)
    assert names == ["add"]
