"""`kperfir.language`: scopes and marks in kernels, recorded where they should be, and nothing where kperfir is not."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

import kperfir
import kperfir.language as kl
from kperfir.capture.layout_json import parse_layout
from kperfir.errors import KPerfWarning
from kperfir.runtime.simt import active_simt_driver
from support.compiling import TARGETS, compile_to_texts, instrumentation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from kperfir.timeline import Timeline

B = 128


def profiled(path: Path, launch: Any, **options: Any) -> Timeline:
    with kperfir.profile(path, device="simt", simt_threads=1, **options):
        launch()
    return kperfir.load(path)


def warp0(table: pd.DataFrame, cta: int = 0) -> pd.DataFrame:
    return table[(table["cta"] == cta) & (table["warp"] == 0)]


@triton.jit
def scaled(x):
    with kl.scope("helper"):
        y = x * 2.0 + 1.0
    return y


@triton.jit
def rows(p, q, n, B: tl.constexpr):
    pid = tl.program_id(0)
    kl.mark("pid", pid)
    o = tl.arange(0, B)
    acc = tl.zeros([B], tl.float32)
    with kl.scope("main"):
        for i in range(n):
            with kl.scope("load"):
                x = tl.load(p + (pid * n + i) * B + o)
            kl.mark("row", pid.to(tl.int64) * 10000000000 - i)
            acc += scaled(x)
            kl.mark("sum", tl.sum(x))
    with kl.scope("helper"):
        acc = scaled(acc)
        tl.store(q + pid * B + o, acc)
    kl.mark("half", tl.sum(acc).to(tl.float16))
    kl.mark("constants", 7)
    kl.mark("done")


def test_scopes_nest_with_regions_and_marks_carry_values(tmp_path: Path) -> None:
    n, ctas = 3, 2
    p, q = torch.randn(ctas, n, B), torch.zeros(ctas, B)
    timeline = profiled(tmp_path / "out.kpf", lambda: rows[(ctas,)](p, q, n, B=B))
    torch.testing.assert_close(q, (p * 2 + 1).sum(1) * 2 + 1)

    spans = timeline.spans
    one = warp0(spans)
    parents = spans["name"].astype(str).reindex(one["parent"]).tolist()
    nested = list(zip(one["name"].astype(str), one["kind"], parents, one["iteration"], strict=True))
    user = [span for span in nested if span[1] == "user"]
    iteration = next(name for name in one["name"] if name.startswith("iteration"))
    epilogue = next(name for name in one["name"] if name.startswith("epilogue"))
    assert [name for name, *_ in user].count("load") == n
    assert user[0] == ("main", "user", "rows", -1)
    assert [span for span in user if span[0] == "load"] == [("load", "user", iteration, i) for i in range(n)]
    # The helper's scope stands in three places: in the loop, and inside a scope of the same name.
    assert [span[2] for span in user if span[0] == "helper"] == [iteration] * n + [epilogue, "helper"]
    assert one["complete"].all()
    source, first = inspect.getsourcelines(rows.fn)
    (line,) = [first + at for at, text in enumerate(source) if 'kl.scope("load")' in text]
    assert one.loc[one["name"] == "load", "line"].unique().tolist() == [line]

    for cta in range(ctas):
        marks = warp0(timeline.marks, cta)
        values = {name: list(rows["value"]) for name, rows in marks.groupby("name", observed=True)}
        assert values["pid"] == [cta]
        assert values["row"] == [cta * 10_000_000_000 - i for i in range(n)]
        assert values["sum"] == pytest.approx(p[cta].sum(1).tolist(), rel=1e-4, abs=1e-4)
        assert values["half"] == pytest.approx([q[cta].sum().item()], rel=1e-2)
        assert values["constants"] == [7]
        assert values["done"] == [None]
        assert marks.loc[marks["name"] == "row", "iteration"].tolist() == [0, 1, 2]
        assert marks["cycles"].is_monotonic_increasing


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("strategy", ["saturate", "ring"])
def test_values_of_marks_survive_a_full_buffer(strategy: str, batch: int, tmp_path: Path) -> None:
    n = 40
    p, q = torch.randn(1, n, B), torch.zeros(1, B)
    options = {"strategy": strategy, "batch": batch, "buffer_bytes": 4 * 4 * 60}
    timeline = profiled(tmp_path / "out.kpf", lambda: rows[(1,)](p, q, n, B=B), **options)
    assert timeline.launches["dropped"].item() > 0
    values = [-value for value in warp0(timeline.marks[timeline.marks["name"] == "row"])["value"]]
    assert 2 < len(values) < n
    assert values == (list(range(len(values))) if strategy == "saturate" else list(range(n - len(values), n)))


@triton.jit
def branches(p, q, n, B: tl.constexpr):
    o = tl.arange(0, B)
    x = tl.load(p + o)
    i = 0
    with kl.scope("while"):
        while i < n:
            if i % 2 == 0:
                with kl.scope("even"):
                    x += tl.load(p + i * B + o)
                kl.mark("even", i)
            else:
                with kl.scope("odd"), kl.scope("inner"):
                    x -= tl.load(p + i * B + o)
            i += 1
    tl.store(q + o, x)


def test_scopes_in_branches_and_while_loops(tmp_path: Path) -> None:
    p, q = torch.randn(5, B), torch.zeros(B)
    timeline = profiled(tmp_path / "out.kpf", lambda: branches[(1,)](p, q, 5, B=B), regions="user,mark")
    torch.testing.assert_close(q, p[0] + p[0] - p[1] + p[2] - p[3] + p[4])
    one = warp0(timeline.spans)
    assert one["name"].tolist() == [
        "while",
        "even",
        "even",
        "odd",
        "inner",
        "even",
        "even",
        "odd",
        "inner",
        "even",
        "even",
    ]
    assert one["kind"].tolist() == ["user"] + ["user", "mark", "user", "user"] * 2 + ["user", "mark"]
    assert warp0(timeline.marks)["value"].tolist() == [0, 2, 4]
    # Scope and mark of one name are two rows of the summary.
    summary = timeline.summary()
    assert summary["name"].tolist().count("even") == 2


@triton.jit
def clear(q, o):
    with kl.scope("clear"):
        tl.store(q + o, 1.0)


@triton.jit
def clear_twice(q, o, B: tl.constexpr):
    clear(q, o)
    clear(q + B, o)


@triton.jit
def repeats(q, B: tl.constexpr):
    o = tl.arange(0, B)
    for i in tl.static_range(3):
        clear(q + i * B, o)
    for i in tl.static_range(2):
        clear_twice(q + (3 + 2 * i) * B, o, B)


@pytest.mark.parametrize("regions", ["user", "auto"])
def test_scope_of_a_helper_that_is_repeated_is_recorded_each_time(regions: str, tmp_path: Path) -> None:
    """All calls of the loop are inlined from one place, with nothing between the stores but addresses."""
    q = torch.zeros(7, B)
    timeline = profiled(tmp_path / "out.kpf", lambda: repeats[(1,)](q, B=B), regions=regions)
    assert (q == 1).all()
    one = warp0(timeline.spans)
    assert (one["name"] == "clear").sum() == 7
    stores = one[one["kind"] == "store"]
    assert stores["parent"].nunique() == (0 if regions == "user" else 7)


@triton.jit
def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for i in tl.range(0, K, BK, num_stages=3):
        with kl.scope("fetch"):
            x = tl.load(a + m[:, None] * K + i + k[None, :])
            y = tl.load(b + (i + k)[:, None] * BN + n[None, :])
        with kl.scope("multiply"):
            acc = tl.dot(x, y, acc)
        kl.mark("k", i)
    tl.store(c + m[:, None] * BN + n[None, :], acc)


def test_scopes_follow_what_the_pipeliner_makes_of_them(tmp_path: Path) -> None:
    """Triton fetches two iterations ahead: the first two fetches are before the loop."""
    K = 128
    a, b, c = torch.randn(32, K).half(), torch.randn(K, 32).half(), torch.zeros(32, 32)
    compiled: list[Any] = []
    sizes = {"BM": 32, "BN": 32, "BK": 32}
    timeline = profiled(tmp_path / "out.kpf", lambda: compiled.append(matmul[(1,)](a, b, c, K, **sizes)))
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-2)
    assert "ttg.async_copy_global_to_local" in compiled[0].asm["ttgir"]
    spans = timeline.spans
    one = warp0(spans)
    parent_kind = spans["kind"].astype(str).reindex(one["parent"]).to_numpy()
    fetches, products = one["name"] == "fetch", one["name"] == "multiply"
    assert (fetches & (parent_kind == "prologue")).sum() > 0
    assert (fetches & (parent_kind == "iteration")).sum() >= 4
    # The pipeliner cut each product in two, and fetches the operands of the second half between them.
    assert (products & (parent_kind == "iteration")).sum() == 8
    children = spans[spans["parent"].isin(one.index[products])]
    assert "dot" in set(children["kind"])
    assert set(spans.loc[spans["parent"].isin(one.index[fetches]), "kind"]) <= {
        "async_copy",
        "compute",
        "local_load",
        "async_wait",
    }
    assert warp0(timeline.marks)["value"].tolist() == [0, 32, 64, 96]


@gluon.jit
def twice(x):
    with kl.scope("twice"):
        y = x * 2.0
    return y


@gluon.jit
def producer(p, q, n, B: gl.constexpr):
    i = gl.arange(0, B, layout=gl.BlockedLayout([1], [32], [4], [0]))
    for row in range(n):
        with kl.scope("row"):
            gl.store(q + row * B + i, twice(gl.load(p + row * B + i)))


@gluon.jit
def consumer(p, s, n, B: gl.constexpr):
    i = gl.arange(0, B, layout=gl.BlockedLayout([4], [32], [1], [0]))
    for row in range(n):
        with kl.scope("row"):
            gl.store(s + row * B + i, gl.load(p + row * B + i) - 1.0)
        kl.mark("row", row)


@gluon.jit
def specialised(p, q, s, n, B: gl.constexpr):
    kl.mark("start", gl.program_id(0))
    with kl.scope("both"):
        gl.warp_specialize([(producer, (p, q, n, B)), (consumer, (p, s, n, B))], [1])


def test_scopes_of_gluon_kernels_and_their_partitions(tmp_path: Path) -> None:
    n = 3
    p = torch.randn(n, B)
    q, s = torch.zeros(n, B), torch.zeros(n, B)
    timeline = profiled(tmp_path / "out.kpf", lambda: specialised[(1,)](p, q, s, n, B))
    torch.testing.assert_close(q, p * 2)
    torch.testing.assert_close(s, p - 1)
    spans = timeline.spans
    per_warp = spans.groupby(["role", "warp", "name"], observed=True).size()
    assert per_warp["default", 0]["row"] == per_warp["default", 0]["twice"] == n
    partition = spans[spans["role"] == "partition0"]
    assert partition["name"].tolist().count("row") == 2 * n  # The scope and the mark.
    assert partition["warp"].nunique() == 1
    assert per_warp["default", 0]["both"] == 1
    assert timeline.marks.loc[timeline.marks["role"] == "partition0", "value"].tolist() == [0, 1, 2]
    assert spans["complete"].all()


# Free where nothing is recorded ---------------------------------------------------------------------------------------


def plain_rows() -> Any:
    @triton.jit
    def scaled(x):
        y = x * 2.0 + 1.0
        return y

    @triton.jit
    def rows(p, q, n, B: tl.constexpr):
        pid = tl.program_id(0)
        o = tl.arange(0, B)
        acc = tl.zeros([B], tl.float32)
        for i in range(n):
            x = tl.load(p + (pid * n + i) * B + o)
            acc += scaled(x)
        acc = scaled(acc)
        tl.store(q + pid * B + o, acc)

    return rows


def plain_matmul() -> Any:
    @triton.jit
    def matmul(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
        m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
        acc = tl.zeros([BM, BN], tl.float32)
        for i in tl.range(0, K, BK, num_stages=3):
            x = tl.load(a + m[:, None] * K + i + k[None, :])
            y = tl.load(b + (i + k)[:, None] * BN + n[None, :])
            acc = tl.dot(x, y, acc)
        tl.store(c + m[:, None] * BN + n[None, :], acc)

    return matmul


def plain_repeats() -> Any:
    @triton.jit
    def clear(q, o):
        tl.store(q + o, 1.0)

    @triton.jit
    def clear_twice(q, o, B: tl.constexpr):
        clear(q, o)
        clear(q + B, o)

    @triton.jit
    def repeats(q, B: tl.constexpr):
        o = tl.arange(0, B)
        for i in tl.static_range(3):
            clear(q + i * B, o)
        for i in tl.static_range(2):
            clear_twice(q + (3 + 2 * i) * B, o, B)

    return repeats


PAIRS = {
    "repeats": (repeats, plain_repeats, {"q": "*fp32"}, {"B": B}),
    "rows": (rows, plain_rows, {"p": "*fp32", "q": "*fp32", "n": "i32"}, {"B": B}),
    "matmul": (
        matmul,
        plain_matmul,
        {"a": "*fp16", "b": "*fp16", "c": "*fp32", "K": "i32"},
        {"BM": 64, "BN": 64, "BK": 32},
    ),
}


@pytest.fixture
def no_line_info() -> Iterator[None]:
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.disable_line_info = True
        yield


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("state", ["off", "not selected", "kinds without scopes"])
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.usefixtures("no_line_info")
def test_code_is_that_of_the_source_without_scopes(name: str, state: str, arch: int) -> None:
    """Without locations the texts of all stages are equal."""
    with_scopes, make_plain, signature, constants = PAIRS[name]
    with contextlib.ExitStack() as stack:
        if state != "off":
            options = {"kernels": "other"} if state == "not selected" else {"regions": "store"}
            stack.enter_context(instrumentation(**options))
        assert compile_to_texts(with_scopes, signature, constants, arch) == compile_to_texts(
            make_plain(), signature, constants, arch
        )


def test_stripped_locations_are_those_of_the_source(no_line_info: None) -> None:
    """A kernel that is not recorded does not show in its locations that kperfir was there."""
    triton.knobs.compilation.disable_line_info = False
    with_scopes, _, signature, constants = PAIRS["rows"]
    off = compile_to_texts(with_scopes, signature, constants, 80)
    with instrumentation(kernels="other"):
        assert compile_to_texts(with_scopes, signature, constants, 80) == off


@pytest.mark.parametrize("target", ["sm_90", "sm_100", "gfx942"])
def test_marks_compile_for_other_targets(target: str) -> None:
    _, _, signature, constants = PAIRS["rows"]
    source = ASTSource(rows, signature | {"B": "constexpr"}, constants)
    with warnings.catch_warnings(), instrumentation():
        warnings.simplefilter("error", KPerfWarning)
        compiled = triton.compile(source, target=GPUTarget(*TARGETS[target]))
    layout = parse_layout(compiled.metadata.kperf_layout)
    values = {region.name: region.value for region in layout.regions if region.kind == "mark"}
    assert values == {"pid": "i32", "row": "i64", "sum": "f32", "half": "f32", "constants": "i32", "done": ""}


def test_front_end_is_as_before_once_kperfir_is_gone(tmp_path: Path) -> None:
    from triton._C.libtriton import ir

    before = ir.builder.set_loc
    p, q = torch.randn(1, 2, 64), torch.zeros(1, 64)
    with kperfir.profile(tmp_path / "out.kpf", device="simt"):
        rows[(1,)](p, q, 2, B=64)
        assert ir.builder.set_loc is not before
    assert ir.builder.set_loc is before


def test_kernel_that_cannot_be_recorded_runs_without_a_trace_of_marks(tmp_path: Path) -> None:
    p, q = torch.randn(1, 2, B), torch.zeros(1, B)
    with kperfir.profile(tmp_path / "out.kpf", device="simt", buffer_bytes=16):
        driver = active_simt_driver()
        assert driver is not None
        with pytest.warns(KPerfWarning, match="buffer-bytes"), driver.observed(log=False) as launches:
            compiled = rows[(1,)](p, q, 2, B=B)
    torch.testing.assert_close(q, (p * 2 + 1).sum(1) * 2 + 1)
    assert "kperf" not in compiled.asm["ptx"]
    assert "vprintf" not in compiled.asm["ptx"]
    assert list(launches[0].result.printf) == []


def test_disabled_line_info_is_said_to_hide_scopes(no_line_info: None) -> None:
    _, _, signature, constants = PAIRS["rows"]
    with instrumentation(), pytest.warns(KPerfWarning, match="TRITON_DISABLE_LINE_INFO"):
        compile_to_texts(rows, signature, constants | {"B": 256}, 80)


@triton.autotune(configs=[triton.Config({"B": 64}), triton.Config({"B": 128})], key=["n"])
@triton.jit
def tuned(p, q, n, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    with kl.scope("copy"):
        tl.store(q + o, tl.load(p + o, mask=o < n), mask=o < n)
    kl.mark("block", B)


def test_autotuned_kernels_have_their_scopes(tmp_path: Path) -> None:
    p, q = torch.randn(256), torch.zeros(256)
    grid = lambda meta: (triton.cdiv(256, meta["B"]),)  # noqa: E731
    timeline = profiled(tmp_path / "out.kpf", lambda: tuned[grid](p, q, 256))
    torch.testing.assert_close(p, q)
    assert "copy" in set(timeline.spans["name"])
    assert set(timeline.marks["value"]) <= {64, 128}
    assert len(timeline.marks) > 0


@triton.jit(noinline=True)
def marked_apart(n):
    kl.mark("apart", n)
    with kl.scope("apart"):
        doubled = n * 2
    return doubled


@triton.jit
def calls_marked(p, q, n, B: tl.constexpr):
    o = tl.arange(0, B)
    kl.mark("here", n)
    tl.store(q + o, tl.load(p + o) * marked_apart(n))


def test_marks_of_functions_that_are_not_inlined_are_left_out_and_the_rest_is_recorded(tmp_path: Path) -> None:
    p, q = torch.randn(B), torch.zeros(B)
    timeline = profiled(tmp_path / "out.kpf", lambda: calls_marked[(1,)](p, q, 7, B=B))
    torch.testing.assert_close(q, p * 14)
    assert set(timeline.marks["name"]) == {"here"}
    assert {"call", "load", "store"} <= set(timeline.spans["kind"])
