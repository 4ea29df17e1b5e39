"""Taking part in Triton's compilation, beside others who do, and stepping back when something fails."""

from __future__ import annotations

import gc
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import triton
from triton import knobs
from triton._instrumentation import register_instrumentation, unregister_instrumentation
from triton.backends.amd import compiler as amd
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import compiler as nvidia

from kernels.cases import CASES
from kperfir.compile import attempt as attempt_module
from kperfir.compile import triton_hook
from kperfir.compile.custom_passes import run_passes
from kperfir.compile.plugin import load_plugin
from kperfir.config import resolve
from kperfir.errors import KPerfWarning, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SM_80 = GPUTarget("cuda", 80, 32)
KERNEL = CASES["softmax_fp32"]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No cache, and nothing installed afterwards."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    yield
    triton_hook.uninstall()


def install(**options: Any) -> None:
    triton_hook.install(resolve({}, **options))


def compile_kernel(case: Any = KERNEL) -> Any:
    return triton.compile(case.source(), target=SM_80, options=dict(case.options))


def layout_of(compiled: Any) -> str:
    return getattr(compiled.metadata, "kperf_layout", "")


def test_install_instruments_and_uninstall_puts_everything_back():
    before = (knobs.runtime.add_stages_inspection_hook, nvidia.instrument, amd.instrument)
    install()
    layout = json.loads(layout_of(compile_kernel()))
    assert (layout["kernel"], layout["target"], layout["total_warps"]) == ("softmax", "cuda:80", 4)
    triton_hook.uninstall()
    assert (knobs.runtime.add_stages_inspection_hook, nvidia.instrument, amd.instrument) == before
    # The cache does not give back the instrumented kernel.
    assert layout_of(compile_kernel()) == ""


def test_install_twice_is_an_error():
    install()
    with pytest.raises(UsageError, match="installed-twice"):
        install()


def test_options_are_part_of_the_cache_key():
    install(buffer_bytes=4096)
    small = json.loads(layout_of(compile_kernel()))["words_per_warp"]
    triton_hook.uninstall()
    install(buffer_bytes=16384)
    assert json.loads(layout_of(compile_kernel()))["words_per_warp"] == 4 * small


def test_cached_kernel_keeps_its_layout():
    install()
    first = compile_kernel()
    assert layout_of(compile_kernel()) == layout_of(first) != ""


def test_key_of_the_stages_hook_is_the_same_object_every_time():
    install()
    hook = knobs.runtime.add_stages_inspection_hook
    assert hook()[0] == hook()[0]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("soft*", True),
        ("softmax", True),
        ("matmul*", False),
        ("reductions.py", True),
        ("*/kernels/*.py", True),
        ("x.py", False),
    ],
)
def test_kernels_are_chosen_by_name_or_file(pattern: str, matches: bool):
    install(kernels=[pattern])
    assert bool(layout_of(compile_kernel())) is matches


def layout_and_file(source: Any) -> tuple[bool, str]:
    """Whether the compiler instrumented it, and what the recorder takes to be its file."""
    from kperfir.runtime.kernel import describe_kernel

    compiled = triton.compile(source, target=SM_80)
    return bool(layout_of(compiled)), describe_kernel(compiled).facts["file"]


@pytest.mark.parametrize("line_info", [True, False])
def test_file_of_a_kernel_is_known_without_line_info_too(line_info: bool):
    with knobs.compilation.scope():
        knobs.compilation.disable_line_info = not line_info
        install(kernels=["*/reductions.py"])
        source = KERNEL.source()
        assert layout_and_file(source) == (True, source.fn.fn.__code__.co_filename)


def test_file_of_a_kernel_that_enters_as_ir_is_what_that_says(tmp_path: Path):
    path = tmp_path / "softmax.ttgir"
    path.write_text(compile_kernel().asm["ttgir"])
    for pattern, matches in (("*/reductions.py", True), ("softmax.py", False)):
        install(kernels=[pattern])
        recorded, file = layout_and_file(str(path))
        assert recorded is resolve({}, kernels=pattern).selects("softmax", file) is matches
        triton_hook.uninstall()


def test_kernel_is_made_with_what_was_in_force_when_its_key_was():
    from kperfir.passes import use
    from kperfir.passes.custom import current

    install()
    hook = knobs.runtime.add_stages_inspection_hook
    with use(lambda kernel: None):
        hook()
        keyed = current()
    stages = {"ttgir": lambda *_: None, "llir": lambda *_: None}
    compilation = triton_hook.Compilation(triton_hook._hooks[0], stages, None)
    assert compilation.custom is keyed
    assert current() is not keyed


def test_hook_found_at_install_still_runs(monkeypatch: pytest.MonkeyPatch):
    calls: list[int] = []

    def theirs(*arguments: Any) -> tuple[str, str] | None:
        calls.append(len(arguments))
        return None if arguments else ("their key", "their hash")

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", theirs)
    install()
    key, digest = knobs.runtime.add_stages_inspection_hook()
    assert key.startswith("their key")
    assert digest.startswith("their hash")
    assert layout_of(compile_kernel())
    assert {0, 5} <= set(calls)
    triton_hook.uninstall()
    assert knobs.runtime.add_stages_inspection_hook is theirs


@pytest.mark.parametrize("registered_first", [True, False])
def test_instrumentation_points_stay_free_for_others(registered_first: bool):
    seen: list[Any] = []
    point = {"point": "ttgpuir-to-llvmir", "backend": "nvidia"}
    if not registered_first:
        install()
    register_instrumentation(**point, callback=seen.append)
    try:
        if registered_first:
            install()
        assert layout_of(compile_kernel())
        assert len(seen) == 1
    finally:
        unregister_instrumentation(**point)


def fail_stage(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a stage fail for code that has records in it, as ptxas might."""

    def theirs(*arguments: Any) -> tuple[str, str] | None:
        if not arguments:
            return "", ""
        stages = arguments[1]
        stage = stages[name]

        def failing(source: Any, metadata: dict[str, Any]) -> Any:
            if metadata.get("kperf_layout"):
                raise RuntimeError(message)
            return stage(source, metadata)

        stages[name] = failing
        return None

    monkeypatch.setattr(knobs.runtime, "add_stages_inspection_hook", theirs)


@pytest.mark.parametrize("stage", ["ptx", "cubin"])
def test_failure_of_a_later_stage_gives_the_plain_kernel_and_one_warning(stage: str, monkeypatch: pytest.MonkeyPatch):
    plain = compile_kernel()
    fail_stage(stage, "`ptxas` failed: error: too many registers", monkeypatch)
    install()
    with pytest.warns(KPerfWarning, match="cannot be instrumented") as caught:
        compiled = compile_kernel()
    assert len(caught) == 1
    assert "kernel softmax" in str(caught[0].message)
    assert "too many registers" in str(caught[0].message)
    assert layout_of(compiled) == ""
    assert "too many registers" in compiled.metadata.kperf_not_instrumented
    # What Triton stores is from one compilation: no record is left in any stage after the TTGIR.
    assert compiled.asm["ptx"] == plain.asm["ptx"]
    assert compiled.asm["cubin"] == plain.asm["cubin"]
    assert compiled.metadata.profile_scratch_size == 0
    assert compiled.metadata.shared == plain.metadata.shared


def test_failure_of_our_own_pass_names_its_diagnostic(capfd: pytest.CaptureFixture[str]):
    install(buffer_bytes=16)
    with pytest.warns(KPerfWarning, match=r"need at least \d+ \(buffer-bytes\)\n  fix: set TRITON_KPERF_BUFFER_BYTES"):
        compiled = compile_kernel()
    assert layout_of(compiled) == ""
    out, err = capfd.readouterr()
    assert "reproducer" not in out + err


def test_kernel_from_a_ttgir_file_is_instrumented(tmp_path: Path):
    path = tmp_path / "softmax.ttgir"
    path.write_text(compile_kernel().asm["ttgir"], encoding="utf-8")
    install()
    assert layout_of(triton.compile(str(path), target=SM_80))


def test_kernel_whose_ttgir_is_replaced_is_instrumented(tmp_path: Path):
    """As `triton.Config(ir_override=...)` does."""
    path = tmp_path / "softmax.ttgir"
    path.write_text(compile_kernel().asm["ttgir"], encoding="utf-8")
    install()
    compiled = triton.compile(KERNEL.source(), target=SM_80, options={**KERNEL.options, "ir_override": str(path)})
    assert json.loads(layout_of(compiled))["kernel"] == "softmax"
    assert "%clock" in compiled.asm["ptx"]


def test_instrumented_ttgir_file_is_not_instrumented_again(tmp_path: Path):
    install()
    path = tmp_path / "softmax.ttgir"
    first = compile_kernel()
    path.write_text(first.asm["ttgir"], encoding="utf-8")
    second = triton.compile(str(path), target=SM_80)
    assert json.loads(layout_of(second))["frames"] == json.loads(layout_of(first))["frames"]


def test_output_of_a_compilation_that_succeeds_is_not_lost(capfd: pytest.CaptureFixture[str]):
    def speak() -> int:
        print("to stdout")
        attempt_module.os.write(2, b"to stderr\n")
        return 5

    assert attempt_module.attempt(speak) == (5, None)
    assert capfd.readouterr() == ("to stdout\n", "to stderr\n")


def test_interrupt_is_not_a_failure_of_the_compilation():
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attempt_module.attempt(interrupt)


def test_nothing_is_warned_of_when_all_goes_well():
    install()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert layout_of(compile_kernel())
    assert caught == []


def test_context_may_die_with_the_kernel_that_it_keeps():
    from triton._C.libtriton import ir

    load_plugin()
    context = ir.context()
    ir.load_dialects(context)
    module = attempt_module.parse_module(
        "tt.func public @k(%p: !tt.ptr<f32>) {\n  %x = tt.load %p : !tt.ptr<f32>\n  tt.return\n}", context
    )
    run_passes(module, "kperf-keep-module,kperf-insert-regions")
    del module, context
    gc.collect()
