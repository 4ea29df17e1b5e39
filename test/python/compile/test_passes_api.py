"""`kperfir.passes`: callbacks, selectors, pipelines and patches decide what is recorded, and break nothing."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
import torch
import triton
import triton.language as tl

import kperfir
from kperfir import passes
from kperfir.capture.layout_json import parse_layout
from kperfir.errors import CompileError, KPerfWarning, UsageError
from kperfir.passes import PassCall, Pipeline, triton_passes
from kperfir.passes.custom import current

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kperfir.timeline import Timeline

B = 128


def make_kernel() -> Any:
    """A kernel that no other test has compiled."""

    @triton.jit
    def sum_rows(p, q, n, B: tl.constexpr):
        o = tl.arange(0, B)
        total = tl.zeros([B], tl.float32)
        first = tl.load(p + o)
        for i in range(n):
            total += tl.exp(tl.load(p + i * B + o))
        tl.store(q + o, total + first)

    return sum_rows


def run(path: Path, n: int = 3) -> Timeline:
    p, q = torch.randn(n, B), torch.zeros(B)
    with kperfir.profile(path, device="simt", simt_threads=1):
        make_kernel()[(1,)](p, q, n, B=B)
    torch.testing.assert_close(q, p.exp().sum(0) + p[0])
    return kperfir.load(path)


def names(timeline: Timeline) -> list[str]:
    spans = timeline.spans
    return spans.loc[spans["warp"] == 0, "name"].tolist()


@pytest.fixture(autouse=True)
def always_compile() -> Iterator[None]:
    """A callback is asked when a kernel is compiled, not when it is found in the cache."""
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.always_compile = True
        yield
    assert current().key == ""


def test_callback_asks_for_regions_and_marks(tmp_path: Path) -> None:
    seen: list[passes.Operation] = []

    def ask(kernel: passes.Kernel) -> None:
        seen.extend(kernel.operations)
        (load,) = kernel.select("tt.load", loop_depth=1)
        (exponential,) = kernel.select("math.exp*")
        kernel.region("outer", load, exponential)
        kernel.region("fetch", load, kind="load")
        assert load.loop is not None
        kernel.mark("turn", before=load, value=load.loop.variable)
        kernel.mark("rows", after=kernel.select("scf.for")[0], value=kernel.parameters[2])

    with passes.use(ask, automatic=False):
        timeline = run(tmp_path / "out.kpf")
    # A mark stands next to its operation, inside the regions around that.
    assert names(timeline) == ["outer", "fetch", "turn"] * 3 + ["rows"]
    marks = timeline.marks[timeline.marks["warp"] == 0]
    assert marks["value"].tolist() == [0, 1, 2, 3]
    loop = next(op for op in seen if op.name == "scf.for")
    inside = [op for op in seen if op.parent is loop]
    assert {op.loop_depth for op in inside} == {1}
    assert all(op.partition == "default" for op in seen)
    load = next(op for op in inside if op.name == "tt.load")
    assert load.kind == "load"
    assert load.file.endswith("test_passes_api.py")
    assert load.operands[0].name.startswith("result:")
    assert load.result.type.startswith("tensor<128xf32")


def test_callback_goes_with_automatic_regions(tmp_path: Path) -> None:
    def ask(kernel: passes.Kernel) -> None:
        kernel.region("the load", kernel.select(kind="load", loop_depth=0)[0])

    with passes.use(ask):
        found = names(run(tmp_path / "out.kpf"))
    assert found[0] == "sum_rows"
    assert found[found.index("the load") + 1].startswith("load")
    assert any(name.startswith("iteration") for name in found)
    assert "the load" not in names(run(tmp_path / "without.kpf"))


def test_select_takes_what_all_criteria_hold_for(tmp_path: Path) -> None:
    kernels: list[passes.Kernel] = []
    with passes.use(kernels.append):
        run(tmp_path / "out.kpf")
    (kernel,) = kernels
    loads = kernel.select(kind="load")
    assert len(loads) == 2
    assert kernel.select(kind="load", line=loads[1].line) == [loads[1]]
    assert kernel.select(kind="load", line=range(loads[0].line, loads[1].line)) == [loads[0]]
    assert kernel.select(kind="load", partition="partition*") == []
    assert kernel.select("tt.load", attribute="operandSegmentSizes", loop_depth=0) == [loads[0]]
    text = loads[0].attributes["operandSegmentSizes"]
    assert kernel.select(attribute=f"operandSegmentSizes={text}", name="tt.load") == loads
    assert kernel.select(attribute="operandSegmentSizes=array<i32: 7>") == []
    assert len(kernel.select(kind="?*")) < len(list(kernel.walk()))


def test_requests_that_make_no_sense_say_so(tmp_path: Path) -> None:
    kernels: list[passes.Kernel] = []
    with passes.use(kernels.append):
        run(tmp_path / "out.kpf")
    (kernel,) = kernels
    outside, inside = kernel.select(kind="load")
    for arguments in (("", outside), ("x", outside, inside), ("x", inside, outside)):
        with pytest.raises(UsageError, match="a region cannot be recorded"):
            kernel.region(*arguments)
    with pytest.raises(UsageError, match="kind sleep"):
        kernel.region("x", outside, kind="sleep")
    for keywords in ({}, {"before": outside, "after": inside}, {"before": outside, "value": outside.result}):
        with pytest.raises(UsageError, match="a mark cannot be recorded"):
            kernel.mark("x", **keywords)
    with pytest.raises(UsageError, match="loop variable"):
        _ = outside.variable
    assert not kernel.requests()


def test_callback_that_fails_costs_the_records_alone(tmp_path: Path) -> None:
    def ask(kernel: passes.Kernel) -> None:
        raise RuntimeError("nobody is perfect")

    with passes.use(ask), pytest.warns(KPerfWarning, match="nobody is perfect"):
        timeline = run(tmp_path / "out.kpf")
    assert len(timeline.spans) == 0


def test_regions_that_do_not_nest_cost_the_records_alone(tmp_path: Path) -> None:
    def ask(kernel: passes.Kernel) -> None:
        first, second, third, *_ = [op for op in kernel.operations if op.parent is None]
        kernel.region("a", first, second)
        kernel.region("b", second, third)

    with passes.use(ask), pytest.warns(KPerfWarning, match="must nest"):
        run(tmp_path / "out.kpf")


def test_pipeline_is_text_and_objects() -> None:
    text = "kperf-insert-regions{regions=load,dot},kperf-verify-balance"
    pipeline = Pipeline.parse(text)
    assert pipeline.calls == (PassCall("kperf-insert-regions", ("regions=load,dot",)), PassCall("kperf-verify-balance"))
    assert str(pipeline) == text
    assert Pipeline(pipeline.calls[1:]) == Pipeline.parse("kperf-verify-balance")
    with pytest.raises(UsageError, match="bad-pipeline"):
        Pipeline.parse("kperf-insert-regions{")


@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_pipeline_runs_at_the_end_of_a_stage(stage: str, tmp_path: Path) -> None:
    pipeline = Pipeline((PassCall("kperf-insert-at", ("marks=0:before:first%20one",)),))
    passes.add_pipeline(stage, pipeline)
    try:
        assert "first one" in names(run(tmp_path / "out.kpf"))
    finally:
        passes.remove_pipeline(stage, pipeline)
    with pytest.raises(UsageError, match="not-added"):
        passes.remove_pipeline(stage, pipeline)
    with pytest.raises(UsageError, match="no-such-stage"):
        passes.add_pipeline("llir", pipeline)


def test_patch_runs_passes_around_one_of_tritons(tmp_path: Path) -> None:
    names_of = triton_passes()
    assert "ttgpuir.add_pipeline" in names_of
    module, attribute = names_of["ttgpuir.add_coalesce"]
    original = getattr(module, attribute)
    passes.patch("ttgpuir.coalesce", after="kperf-insert-at{regions=1:1:user:patched}")
    try:
        patched = names(run(tmp_path / "out.kpf"))
    finally:
        passes.unpatch("ttgpuir.add_coalesce")
    assert "patched" in patched
    assert "patched" not in names(run(tmp_path / "without.kpf"))
    assert getattr(module, attribute) is original
    with pytest.raises(UsageError, match="not-patched"):
        passes.unpatch("ttgpuir.coalesce")


def test_patch_that_fails_leaves_the_kernel_alone(tmp_path: Path) -> None:
    passes.patch("ttgpuir.coalesce", before="kperf-insert-at{regions=999999:0:user:nowhere}")
    try:
        with pytest.warns(KPerfWarning, match="passes that the program added to stage ttgir"):
            timeline = run(tmp_path / "out.kpf")
    finally:
        passes.unpatch("ttgpuir.coalesce")
    assert "sum_rows" in names(timeline)


def test_unknown_passes_are_named() -> None:
    with pytest.raises(UsageError, match="add_coalesce"):
        passes.patch("coalese")
    with pytest.raises(UsageError, match="ambiguous-pass"):
        passes.patch("pipeline")


def test_changes_from_several_threads_are_all_kept() -> None:
    """Each change is made to the state that it finds: none overwrites another's."""
    count, rounds = 4, 25
    pipelines = [f"kperf-insert-at{{marks=0:before:m{n}}}" for n in range(count)]
    meet = threading.Barrier(count)

    def toggle(pipeline: str) -> None:
        for _ in range(rounds):
            meet.wait()
            passes.add_pipeline("ttgir", pipeline)
            meet.wait()
            assert len(current().pipelines) == count
            meet.wait()
            passes.remove_pipeline("ttgir", pipeline)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(toggle, pipelines))
    finally:
        sys.setswitchinterval(interval)
    assert current().pipelines == ()


def test_automatic_regions_are_left_out_as_long_as_a_callback_says_so() -> None:
    def first(kernel: passes.Kernel) -> None: ...
    def second(kernel: passes.Kernel) -> None: ...

    without, with_them = passes.use(first, automatic=False), passes.use(second)
    with without:
        with_them.__enter__()
        assert not current().automatic
    # The blocks do not nest: two threads may have one each.
    assert current().callbacks == (second,)
    assert current().automatic
    with_them.__exit__(None, None, None)
    assert current().callbacks == ()


def test_cache_key_tells_callbacks_apart_that_share_their_code(tmp_path: Path) -> None:
    class Ask:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, kernel: passes.Kernel) -> None: ...

        def ask(self, kernel: passes.Kernel) -> None: ...

    def with_default(n: int) -> Any:
        return lambda kernel, n=n: None

    keys = []
    for callback in (with_default(1), with_default(2), Ask("a").ask, Ask("b").ask):
        with passes.use(callback):
            keys.append(current().key)
    assert len(set(keys)) == len(keys)

    library = tmp_path / "policy.so"
    keys = []
    for content in (b"first", b"second"):
        library.write_bytes(content)
        passes.add_pipeline("ttgir", passes.run_policy(library, "any"))
        keys.append(current().key)
        passes.remove_pipeline("ttgir", passes.run_policy(library, "any"))
    assert keys[0] != keys[1]


# Frames ---------------------------------------------------------------------------------------------------------------


def choose_frames(kernel: passes.Kernel) -> None:
    new = kernel.new_frames
    (loop,) = kernel.select("scf.for")
    (load,) = kernel.select(kind="load", loop_depth=1)
    around = new.region("around", kind="loop")
    turn = new.region("turn", kind="iteration")
    fetch = new.region("the fetch", kind="load")
    row = new.region("row", kind="mark")
    new.frame().stamp(around.start, before=loop)
    new.frame().stamp(turn.start, fetch.start, before=load).stamp(fetch.end, row.mark(loop.variable), after=load)
    new.frame().stamp(around.end, after=loop)


def test_chosen_frames_are_recorded(tmp_path: Path) -> None:
    with passes.use(choose_frames, automatic=False):
        timeline = run(tmp_path / "out.kpf")
    spans = timeline.spans[timeline.spans["warp"] == 0]
    assert spans["name"].tolist() == ["around", *["turn", "the fetch", "row"] * 3]
    assert spans["depth"].tolist() == [0, *[1, 2, 2] * 3]
    assert spans["iteration"].tolist() == [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert spans["complete"].all()
    assert (spans.loc[spans["name"] == "the fetch", "file"].astype(str) == __file__).all()
    marks = timeline.marks[timeline.marks["warp"] == 0]
    assert marks["value"].tolist() == [0, 1, 2]
    assert marks["value_type"].unique().tolist() == ["i32"]
    # One clock word for the end of the load and the mark.
    ends = spans.loc[spans["name"] == "the fetch", "end_cycles"].tolist()
    assert marks["cycles"].tolist() == ends


def test_frames_that_were_compiled_are_read_back(tmp_path: Path) -> None:
    p, q = torch.randn(3, B), torch.zeros(B)
    with passes.use(choose_frames, automatic=False), kperfir.profile(tmp_path / "out.kpf", device="simt"):
        compiled = make_kernel()[(1,)](p, q, 3, B=B)
    kernel = passes.parse_kernel(compiled.asm["ttgir"])
    around, inner, last = kernel.frames
    assert [(frame.id, frame.slots, frame.value_words) for frame in kernel.frames] == [(0, 1, 0), (1, 2, 1), (2, 1, 0)]
    assert [[stamp.events for stamp in frame.stamps] for frame in (around, last)] == [
        [(passes.Event("start", 0),)],
        [(passes.Event("end", 0),)],
    ]
    assert [stamp.slot for stamp in inner.stamps] == [0, 1]
    assert inner.stamps[1].events == (passes.Event("end", 2), passes.Event("mark", 3))
    (stored,) = inner.values
    assert (stored.word, stored.value.name) == (0, f"argument:{inner.opened.parent.index}:0")
    assert inner.opened.index < inner.stamps[0].operation.index < inner.closed.index
    assert [op.name for op in kernel.select("kperf_gpu.init")] == ["kperf_gpu.init"]
    # What the compiler chooses reads the same way: its frames are those of the layout.
    with kperfir.profile(tmp_path / "auto.kpf", device="simt"):
        compiled = make_kernel()[(1,)](p, q, 3, B=B)
    layout = parse_layout(compiled.metadata.kperf_layout)
    found = [
        [[(event.edge, event.region) for event in stamp.events] for stamp in frame.stamps]
        for frame in sorted(passes.parse_kernel(compiled.asm["ttgir"]).frames, key=lambda frame: frame.id)
    ]
    assert found == [[[(e.edge, e.region) for e in stamp] for stamp in frame.stamps] for frame in layout.frames]


def test_frames_that_make_no_sense_say_so(tmp_path: Path) -> None:
    kernels: list[passes.Kernel] = []
    with passes.use(kernels.append):
        run(tmp_path / "out.kpf")
    (kernel,) = kernels
    outside, inside = kernel.select(kind="load")
    new = kernel.new_frames
    region, mark = new.region("r"), new.region("m", kind="mark")
    assert not new
    for wrong in (
        lambda: new.region(""),
        lambda: new.region("x", kind="sleep"),
        lambda: new.frame().stamp(region.start, region.end, before=outside),
        lambda: mark.start,
        lambda: mark.mark(outside.result),
        lambda: region.mark(),
        lambda: new.frame().stamp(region.start),
        lambda: new.frame().stamp(before=outside),
        lambda: new.frame().stamp(region.start, before=outside, after=outside),
        lambda: new.frame().stamp(region.start, before=outside).stamp(region.end, after=inside),
        lambda: str(new),
    ):
        with pytest.raises(UsageError, match="a frame cannot be made"):
            wrong()
    kernel.region("x", outside)
    with pytest.raises(UsageError, match="frames-and-regions"):
        kernel.requests()
    with pytest.raises(CompileError, match="not-read"):
        passes.parse_kernel("nonsense")


def test_chosen_frames_go_with_automatic_regions(tmp_path: Path) -> None:
    def choose(kernel: passes.Kernel) -> None:
        fetch = kernel.new_frames.region("fetch")
        (load,) = kernel.select(kind="load", loop_depth=1)
        kernel.new_frames.frame().stamp(fetch.start, before=load).stamp(fetch.end, after=load)

    with passes.use(choose):
        timeline = run(tmp_path / "out.kpf")
    found = names(timeline)
    assert found.count("fetch") == 3
    assert found[found.index("fetch") + 1].startswith("load")
    assert timeline.spans["complete"].all()


def test_chosen_stamps_that_do_not_nest_cost_the_records_alone(tmp_path: Path) -> None:
    def choose(kernel: passes.Kernel) -> None:
        first, second, third, *_ = [op for op in kernel.operations if op.parent is None]
        a, b = (kernel.new_frames.region(name) for name in "ab")
        frame = kernel.new_frames.frame().stamp(a.start, before=first).stamp(b.start, before=second)
        frame.stamp(a.end, before=third).stamp(b.end, after=third)

    with passes.use(choose), pytest.warns(KPerfWarning, match="must nest"):
        timeline = run(tmp_path / "out.kpf")
    assert len(timeline.spans) == 0
