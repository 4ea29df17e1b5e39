"""Triton on the driver of the SIMT device, with a device that runs nothing: what reaches it, and what comes back."""

from __future__ import annotations

import struct
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import triton
import triton.language as tl

from kperfir.errors import DeviceError
from kperfir.runtime.select import Selection
from kperfir.runtime.simt import active_simt_driver
from support import fake_simt


@triton.jit
def copy_kernel(source, target, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.load(source + offsets, mask=offsets < count), mask=offsets < count)


@triton.jit
def descriptor_kernel(source, target):
    block = source.load([0, 0])
    tl.store(target + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], block)


def device() -> fake_simt.Device:
    return fake_simt.Device.created[-1]


def run_copy(**options: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    source = np.arange(1000, dtype=np.float32)
    target = np.zeros_like(source)
    return copy_kernel[(4,)](source, target, 1000, BLOCK=256, **options), target


@pytest.mark.usefixtures("simt_triton")
class TestLaunch:
    def test_numpy_arrays_reach_the_device_as_pointers_with_their_memory(self) -> None:
        source = np.arange(1000, dtype=np.float32)
        target = np.zeros_like(source)
        compiled = copy_kernel[(4,)](source, target, 1000, BLOCK=256, num_warps=8)
        launch = device().launches[-1]
        assert launch.grid == (4, 1, 1)
        assert launch.block_threads == 256
        assert launch.cluster == (1, 1, 1)
        assert [struct.unpack("<Q", value)[0] for value in launch.params[:2]] == [
            source.ctypes.data,
            target.ctypes.data,
        ]
        assert launch.params[2] == struct.pack("<i", 1000)
        assert launch.params[3:] == [b"\0" * 8] * 2, "global and profile scratch"
        assert launch.ranges == {
            source.ctypes.data: (4000, "source", True),
            target.ctypes.data: (4000, "target", True),
        }
        assert device().ranges == {}, "nothing stays mapped"
        assert compiled.asm["cubin"].startswith(b"//")
        assert compiled.metadata.target.arch == 80

    def test_torch_views_reach_the_device_with_their_whole_storage(self) -> None:
        torch = pytest.importorskip("torch")
        base = torch.zeros(2000)
        copy_kernel[(1,)](base[1:], base[1000:], 100, BLOCK=128)
        assert device().launches[-1].ranges == {base.data_ptr(): (8000, "source, target", True)}

    def test_launch_of_an_empty_grid_calls_hooks_only(self) -> None:
        array = np.zeros(4, np.float32)
        calls: list[str] = []

        def enter(metadata: Any) -> None:
            calls.append(metadata.get()["name"])

        triton.knobs.runtime.launch_enter_hook.add(enter)
        try:
            copy_kernel[(0,)](array, array, 4, BLOCK=128)
        finally:
            triton.knobs.runtime.launch_enter_hook.remove(enter)
        assert calls == ["copy_kernel"]
        assert not fake_simt.Device.created

    def test_launch_hooks_run_around_the_launch(self) -> None:
        run_copy()
        calls: list[Any] = []

        def enter(metadata: Any) -> None:
            calls.append(("enter", metadata.get()["name"]))

        def leave(metadata: Any) -> None:
            calls.append(("exit", metadata.get()["name"]))

        device().on_launch = lambda launch: calls.append("launch")
        triton.knobs.runtime.launch_enter_hook.add(enter)
        triton.knobs.runtime.launch_exit_hook.add(leave)
        try:
            run_copy()
        finally:
            triton.knobs.runtime.launch_enter_hook.remove(enter)
            triton.knobs.runtime.launch_exit_hook.remove(leave)
        assert calls == [("enter", "copy_kernel"), "launch", ("exit", "copy_kernel")]

    def test_printed_text_goes_to_stdout(self, capsys: pytest.CaptureFixture[str]) -> None:
        run_copy()
        device().on_launch = lambda launch: ["pid (0, 0, 0) x: 1\n", "pid (0, 0, 0) x: 2\n"]
        run_copy()
        assert capsys.readouterr().out == "pid (0, 0, 0) x: 1\npid (0, 0, 0) x: 2\n"

    def test_tensor_descriptor_is_passed_in_parts_on_sm80(self) -> None:
        from triton.tools.tensor_descriptor import TensorDescriptor

        from kperfir import simt_array

        source, target = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
        descriptor_kernel[(1,)](TensorDescriptor.from_tensor(simt_array(source), [8, 16]), target)
        launch = device().launches[-1]
        # Pointer, shape, strides, padding, tf32, shape, strides; then the target and two scratch pointers.
        assert [len(value) for value in launch.params] == [8, 8, 8, 8, 8, 1, 1, 4, 4, 8, 8, 8, 8, 8]
        assert set(launch.ranges) == {source.ctypes.data, target.ctypes.data}

    def test_observed_collects_launches_and_asks_for_the_log(self) -> None:
        run_copy()
        driver = active_simt_driver()
        assert driver is not None
        with driver.observed(log=True) as launches:
            run_copy()
        run_copy()
        assert [launch.kernel.name for launch in launches] == ["copy_kernel"]
        assert [launch.log for launch in device().launches] == [False, True, False]


@pytest.mark.usefixtures("simt_triton")
class TestTime:
    def test_do_bench_makes_two_launches_and_reports_simulated_time(self) -> None:
        assert triton.testing.do_bench(run_copy) == pytest.approx(1e-3)
        assert len(device().launches) == 2

    def test_do_bench_returns_what_was_asked_for(self) -> None:
        from triton.testing import do_bench

        assert do_bench(run_copy, quantiles=[0.5, 0.2]) == [pytest.approx(1e-3)] * 2
        assert do_bench(run_copy, return_mode="all") == [pytest.approx(1e-3)]

    def test_autotune_makes_one_launch_per_configuration(self) -> None:
        tuned = triton.autotune([triton.Config({"BLOCK": size}) for size in (128, 256)], key=["count"])(copy_kernel)
        array = np.zeros(1000, np.float32)
        tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](array, array, 1000)
        assert len(device().launches) == 3, "two to measure, one to run"

    def test_events_measure_simulated_time(self) -> None:
        interface = triton.runtime.driver.active.get_device_interface()
        start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
        start.record()
        run_copy()
        end.record()
        assert start.elapsed_time(end) == pytest.approx(1e-3)


@pytest.mark.usefixtures("simt_triton")
class TestFaults:
    def test_fault_of_the_device_names_kernel_line_thread_and_argument(self) -> None:
        source = np.zeros(1000, np.float32)
        copy_kernel[(4,)](source, source, 1000, BLOCK=256)

        def fault(launch: Any) -> None:
            raise fake_simt.Error(
                "out-of-bounds", "load of 4 bytes", kernel="copy_kernel", file="/src/k.py", line=17, cta=3, warp=1,
                lane=5, address=source.ctypes.data + 4000,
            )  # fmt: skip

        device().on_launch = fault
        with pytest.raises(DeviceError) as caught:
            copy_kernel[(4,)](source, source, 1000, BLOCK=256)
        assert caught.value.code == "out-of-bounds"
        assert caught.value.where == "kernel copy_kernel, /src/k.py:17, CTA 3, warp 1, lane 5"
        assert caught.value.found == (
            f"load of 4 bytes; {source.ctypes.data + 4000:#x} is right behind the end of "
            "the memory of arguments source, target (4000 bytes)"
        )
        assert device().ranges == {}, "nothing stays mapped"
        device().on_launch = None
        copy_kernel[(4,)](source, source, 1000, BLOCK=256)

    def test_kernel_that_the_device_cannot_parse_is_an_error_at_load(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(ptx: str, source: str = "") -> None:
            raise fake_simt.Error("unsupported", "wgmma.mma_async", kernel=source, ptx_line=40)

        monkeypatch.setattr(fake_simt, "Module", refuse)
        with pytest.raises(DeviceError, match=r"kernel copy_kernel, line 40 of its PTX"):
            run_copy(num_stages=1)

    def test_kernel_is_parsed_once_however_often_it_is_loaded(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parsed: list[str] = []
        parse = fake_simt.Module

        def note(ptx: str, source: str = "") -> fake_simt.Module:
            parsed.append(source)
            return parse(ptx, source)

        monkeypatch.setattr(fake_simt, "Module", note)
        run_copy(num_stages=2)
        run_copy(num_stages=2)
        copy_kernel.device_caches.clear()  # Triton takes the kernel from its own cache, and loads it again.
        run_copy(num_stages=2)
        assert parsed == ["copy_kernel"]

    def test_cubin_is_refused(self) -> None:
        driver = active_simt_driver()
        assert driver is not None
        with pytest.raises(DeviceError, match="cannot run a cubin"):
            driver.load("k", b"\x7fELF...")

    def test_resolver_finds_arrays_that_only_a_pointer_table_names(self) -> None:
        hidden = np.arange(3000, dtype=np.float64)
        table = np.array([hidden.ctypes.data], np.int64)
        found: list[Any] = []

        def follow(launch: Any) -> None:
            found.append(device().resolve(int(table[0]) + 16))
            found.append(device().resolve(0x40))

        run_copy()
        device().on_launch = follow
        copy_kernel[(1,)](table, table, 1, BLOCK=128)
        assert found[0][:2] == (hidden.ctypes.data, hidden.nbytes)
        assert "3000" in found[0][2]
        assert found[1] is None
        assert device().ranges == {}, "nothing stays mapped"


class TestSelection:
    def test_uninstall_leaves_triton_as_it_was(self, fake_native: None, options: Any) -> None:
        import triton.testing
        from triton.backends.nvidia.compiler import CUDABackend
        from triton.compiler import compiler
        from triton.runtime import jit

        config = sys.modules["triton.runtime.driver"].driver

        def state() -> list[Any]:
            return [
                vars(CUDABackend)["make_cubin"], vars(CUDABackend)["hash"], jit.native_specialize_impl,
                triton.testing.do_bench, compiler.get_sass, config._default, config._active,
                vars(sys.modules["triton.runtime.driver"])["_create_driver"],
            ]  # fmt: skip

        before = state()
        selection = Selection(options)
        selection.install()
        run_copy()
        assert state() != before
        selection.uninstall()
        assert state() == before

    def test_auto_takes_the_simt_device_when_triton_finds_no_gpu(
        self, fake_native: None, options: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dataclasses import replace

        from kperfir.runtime import select

        selection = Selection(replace(options, device="auto"))
        monkeypatch.setattr(select, "gpu_is_visible", lambda: False)
        selection.install()
        try:
            assert active_simt_driver() is None, "nothing is chosen before Triton asks"
            run_copy()
            assert active_simt_driver() is not None
        finally:
            selection.uninstall()
        assert active_simt_driver() is None

    def test_auto_leaves_triton_its_gpu(self, fake_native: None, options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        from dataclasses import replace

        from kperfir.runtime import select

        gpu_driver = SimpleNamespace()
        monkeypatch.setattr(select, "gpu_is_visible", lambda: True)
        monkeypatch.setattr(sys.modules["triton.runtime.driver"], "_create_driver", lambda: gpu_driver)
        config = sys.modules["triton.runtime.driver"].driver
        monkeypatch.setattr(config, "_default", None)
        monkeypatch.setattr(config, "_active", None)
        selection = Selection(replace(options, device="auto"))
        selection.install()
        try:
            assert config.active is gpu_driver
        finally:
            selection.uninstall()

    def test_kernel_survives_the_end_of_a_selection_and_runs_under_the_next(
        self, fake_native: None, options: Any
    ) -> None:
        for _ in range(2):
            selection = Selection(options)
            selection.install()
            run_copy()
            selection.uninstall()
        assert len(device().launches) == 2

    def test_ptx_and_cubins_do_not_share_cache_keys(self, fake_native: None, options: Any) -> None:
        from triton.backends.nvidia.compiler import CUDABackend

        target = triton.backends.compiler.GPUTarget("cuda", 80, 32)
        plain = CUDABackend(target).hash()
        selection = Selection(options)
        selection.install()
        try:
            assert CUDABackend(target).hash() != plain
            other = triton.backends.compiler.GPUTarget("cuda", 90, 32)
            assert "simt" not in CUDABackend(other).hash(), "only what is compiled for the device is PTX"
        finally:
            selection.uninstall()
        assert CUDABackend(target).hash() == plain


@pytest.mark.usefixtures("simt_triton")
class TestCompiled:
    def test_kernel_from_a_ttgir_file_launches(self, tmp_path: Any) -> None:
        compiled, _ = run_copy()
        path = tmp_path / "copy_kernel.ttgir"
        path.write_text(compiled.asm["ttgir"])
        again = triton.compile(str(path))
        source, target = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
        again[(4, 1, 1)](source, target, 1000)
        first, second = device().launches
        assert second.grid == first.grid
        assert [len(value) for value in second.params] == [len(value) for value in first.params]

    def test_sass_says_that_there_is_none(self) -> None:
        compiled, _ = run_copy()
        assert "no SASS" in compiled.asm["sass"].replace("No", "no")

    def test_compiling_for_another_target_makes_a_real_cubin(self) -> None:
        run_copy()
        source = triton.compiler.ASTSource(
            copy_kernel, {"source": "*fp32", "target": "*fp32", "count": "i32", "BLOCK": "constexpr"}, {(3,): 128}
        )
        compiled = triton.compile(source, target=triton.backends.compiler.GPUTarget("cuda", 90, 32))
        assert compiled.asm["cubin"].startswith(b"\x7fELF")
