"""`kperfir report`: contents, JSON, sorting, notes, what happens where room is short."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from kperfir import load
from kperfir.cli.table import Column, bar, console, count, counted, fitting, print_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Answer


@pytest.mark.parametrize("by", ["region", "line", "kind"])
def test_corrected_means_are_of_the_same_executions_as_means(
    kperfir: Callable[..., Answer], whole: Path, by: str
) -> None:
    rows = json.loads(kperfir("report", whole, "--by", by, "--json").out)["kernels"][0]["rows"]
    known = [row for row in rows if row["corrected_cycles"] is not None]
    assert known
    assert all(0 <= row["corrected_cycles"] <= row["mean_cycles"] for row in known)
    assert all(row["uncertainty_cycles"] >= 0 for row in known)


def test_json_agrees_with_the_summary(kperfir: Callable[..., Answer], whole: Path) -> None:
    answer = kperfir("report", whole, "--json")
    assert answer.code == 0
    report = json.loads(answer.out)
    (kernel,) = report["kernels"]
    summary = load(whole).summary().set_index("name")
    assert [row["name"] for row in kernel["rows"]] == summary.index.tolist()
    for row in kernel["rows"]:
        expected = summary.loc[row["name"]]
        assert (row["count"], row["total_cycles"], row["self_cycles"]) == (
            expected["count"],
            expected["total_cycles"],
            expected["self_cycles"],
        )
        for column in ("mean_cycles", "p50_cycles", "p95_cycles", "share", "warp_spread"):
            assert row[column] == pytest.approx(expected[column])
        assert (row["file"], row["line"]) == (expected["file"], expected["line"])


def test_json_has_launches_sms_and_notes(kperfir: Callable[..., Answer], whole: Path) -> None:
    report = json.loads(kperfir("report", whole, "--json").out)
    assert report["kperfir_report"] == 1
    assert report["files"] == [str(whole)]
    assert report["notes"][0].startswith("simulated: ")
    assert report["bounds"] == [{"launches_per_kernel": 16, "file_bytes": 256 << 20}]
    (kernel,) = report["kernels"]
    assert [launch["launch"] for launch in kernel["launches"]] == [0, 1]
    assert {sm["sm"] for sm in kernel["sms"]} == {0, 1}


def test_text_says_notes_first_then_the_regions_nested(kperfir: Callable[..., Answer], whole: Path) -> None:
    lines = kperfir("report", whole).out.splitlines()
    assert lines[0] == "note: simulated: times come from the SIMT device's timing model, not from a GPU"
    assert "bounds: at most 16 launches of each kernel, 256 MiB a file" in lines
    assert "matmul_kernel" in lines
    assert any("on a100 (simulated)" in line for line in lines)
    table = [line for line in lines if "kernel.py:" in line]
    assert table[0].startswith("matmul_kernel")
    assert table[1].startswith("  loop kernel.py:20 ")
    assert table[2].startswith("    iteration kernel.py:20 ")


def test_dropped_records_are_exit_code_3(kperfir: Callable[..., Answer], lossy: Path) -> None:
    answer = kperfir("report", lossy)
    dropped = int(load(lossy).launches["dropped"].sum())
    assert answer.code == 3
    assert f"{dropped} of " in answer.out
    assert f"{dropped} records were dropped" in answer.err
    assert " partial" in answer.out


def test_several_files_are_one_report(kperfir: Callable[..., Answer], whole: Path, lossy: Path) -> None:
    answer = kperfir("report", whole, lossy, "--json")
    assert answer.code == 3
    (kernel,) = json.loads(answer.out)["kernels"]
    assert len(kernel["launches"]) == 3


@pytest.mark.parametrize(
    ("by", "keys"), [("region", {"name", "kind", "line"}), ("line", {"file", "line"}), ("kind", {"kind"})]
)
def test_self_times_add_up_whatever_the_rows(
    kperfir: Callable[..., Answer], whole: Path, by: str, keys: set[str]
) -> None:
    (kernel,) = json.loads(kperfir("report", whole, "--by", by, "--json").out)["kernels"]
    spans = load(whole).spans
    assert keys <= set(kernel["rows"][0])
    assert sum(row["self_cycles"] for row in kernel["rows"]) == spans[spans["parent"] < 0]["duration_cycles"].sum()
    assert kperfir("report", whole, "--by", by).code == 0


def test_report_tells_waiting_from_work(kperfir: Callable[..., Answer], whole: Path) -> None:
    (kernel,) = json.loads(kperfir("report", whole, "--json").out)["kernels"]
    spans = load(whole).spans
    waited = int(spans.loc[spans["kind"] == "async_wait", "duration_cycles"].sum())
    root = int(spans.loc[spans["parent"] < 0, "duration_cycles"].sum())
    (total,) = kernel["waits"]["kernel"]
    assert total == {
        **dict(cycles=root, work_cycles=root - waited, wait_cycles=waited, async_wait_cycles=waited),
        **dict(barrier_cycles=0, mbarrier_wait_cycles=0, wgmma_wait_cycles=0),
    }
    assert sum(row["wait_cycles"] for row in kernel["waits"]["warp"]) == waited
    waits_of_role = {row["role"]: row["wait_cycles"] for row in kernel["waits"]["role"]}
    assert waits_of_role == {"default": waited, "partition0": 0}
    of_kind = dict.fromkeys((row["kind"] for row in kernel["rows"]), 0)
    for row in kernel["rows"]:
        of_kind[row["kind"]] += row["wait_cycles"]
        assert row["kind"] != "async_wait" or row["wait_share"] == row["share"]
    assert of_kind["kernel"] == of_kind["iteration"] == of_kind["async_wait"] == waited
    assert of_kind["dot"] == of_kind["async_copy"] == 0

    text = kperfir("report", whole).out
    assert "  wait " in next(line for line in text.splitlines() if line.startswith("region"))
    header, line, *roles = text.splitlines()[-4:]
    assert [role.split()[0] for role in roles] == ["default", "partition0"]
    assert header.split() == ["work", "and", "wait", "total", "work", "wait", "async_wait"]
    share = f"{100 * waited / root:.1f}"
    assert line.split() == ["all", "warps", f"{root:,}", f"{100 - float(share):.1f}", "%", share, "%", share, "%"]


def test_sort_and_limit(kperfir: Callable[..., Answer], whole: Path) -> None:
    (kernel,) = json.loads(kperfir("report", whole, "--sort", "mean", "--limit", 3, "--json").out)["kernels"]
    means = [row["mean_cycles"] for row in kernel["rows"]]
    assert len(means) == 3
    assert means == sorted(means, reverse=True)
    assert kernel["rows_total"] > 3
    assert "more rows" in kperfir("report", whole, "--limit", 3).out


def test_kernel_pattern(kperfir: Callable[..., Answer], whole: Path) -> None:
    assert kperfir("report", whole, "--kernel", "matmul*").code == 0
    answer = kperfir("report", whole, "--kernel", "softmax*")
    assert answer.code == 2
    assert "expected: matmul_kernel" in answer.err


def test_file_given_twice_is_counted_once_with_a_note(
    kperfir: Callable[..., Answer], whole: Path, tmp_path: Path
) -> None:
    link = tmp_path / "again.kpf"
    link.symlink_to(whole)
    once = json.loads(kperfir("report", whole, "--json").out)
    thrice = json.loads(kperfir("report", whole, link, whole, "--json").out)
    assert thrice["kernels"] == once["kernels"]
    assert set(thrice["notes"]) - set(once["notes"]) == {f"{whole} was given 3 times; it is counted once"}


def test_kernel_pattern_on_a_capture_cut_before_its_first_launch_shows_why_it_is_empty(
    kperfir: Callable[..., Answer], whole: Path, tmp_path: Path
) -> None:
    launches = next(chunk for chunk in _chunks(kperfir, whole) if chunk["kind"] == "LNCH")
    cut = tmp_path / "cut.kpf"
    cut.write_bytes(whole.read_bytes()[: launches["offset"] + 40])
    for pattern in ([], ["--kernel", "matmul*"]):
        answer = kperfir("report", cut, *pattern)
        assert answer.code == 0
        assert "note: " in answer.out
        assert "no launch was recorded" in answer.out
    for more in (["--analysis", "waves"], ["--html", tmp_path / "page.html"]):
        answer = kperfir("report", cut, *more)
        assert answer.code == 0
        assert "note: " in answer.err
        assert "no launch was recorded; the notes may say why" in answer.out + answer.err


def test_kernels_that_are_there_are_listed_nearest_first() -> None:
    from kperfir.cli.captures import matching_kernels
    from kperfir.errors import UsageError

    names = ["softmax_kernel", "matmul_kernel", *(f"other_{number}" for number in range(20))]
    with pytest.raises(UsageError) as raised:
        matching_kernels(names, "matmull*")
    text = str(raised.value)
    assert "expected: matmul_kernel, " in text
    assert "and 14 more" in text


def test_kernel_that_is_not_there_leaves_the_notes(kperfir: Callable[..., Answer], lossy: Path) -> None:
    answer = kperfir("report", lossy, "--kernel", "softmax*")
    assert answer.code == 2
    assert "records were dropped" in answer.err


def _chunks(kperfir: Callable[..., Answer], path: Path) -> list[dict[str, Any]]:
    chunks: list[dict[str, Any]] = json.loads(kperfir("inspect", path, "--json").out)["chunks"]
    return chunks


def test_source_text_is_shown_where_the_file_is_here() -> None:
    from kperfir.cli.report import _sources
    from kperfir.report.model import _with_source
    from kperfir.source import SourceReader

    row = {"file": __file__, "line": 1, "name": "x"}
    assert _sources([_with_source(row, SourceReader())], "region") == [
        '1: """`kperfir report`: contents, JSON, sorting, notes, what ha'
    ]


COLUMNS = [
    Column("region", ["dot", "load"], right=False),
    Column("share", ["60.0 %", "3.0 %"]),
    Column("p95", ["1,000", "20"], rank=2),
    Column("bar", ["██████", "▎"], rank=9, for_terminals=True),
    Column("mean", ["1", "2"], rank=1),
]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (80, ["region", "share", "p95", "bar", "mean"]),
        (30, ["region", "share", "p95", "mean"]),
        (22, ["region", "share", "mean"]),
        (5, ["region", "share"]),
    ],
)
def test_columns_go_in_order_of_rank(width: int, titles: list[str]) -> None:
    kept, _ = fitting(COLUMNS, width, terminal=True)
    assert [column.title for column in kept] == titles


@pytest.mark.parametrize("width", [12, 25, 40, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    text = io.StringIO()
    print_table(Console(file=text, width=width, force_terminal=True, color_system=None), COLUMNS)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert (width < 35) == ("(no room" in " ".join(lines))


def test_pipe_gets_every_column_but_the_bars() -> None:
    kept, left_out = fitting(COLUMNS, 10_000, terminal=False)
    assert [column.title for column in kept] == ["region", "share", "p95", "mean"]
    assert left_out == []


def test_no_colour_codes_in_a_pipe(kperfir: Callable[..., Answer], whole: Path) -> None:
    assert "\x1b" not in kperfir("report", whole).out


@pytest.mark.parametrize(("variable", "escapes"), [("1", False), ("", True)])
def test_no_color_leaves_no_escape_code_in_a_terminal(
    monkeypatch: pytest.MonkeyPatch, variable: str, *, escapes: bool
) -> None:
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", variable)
    print_table(console(), [Column("region", ["load"], style="yellow")])
    assert ("\x1b" in terminal.getvalue()) == escapes


def test_numbers_are_spelled_for_people() -> None:
    assert [counted(1, "frame"), counted(2, "frame"), counted(0, "frame")] == ["1 frame", "2 frames", "0 frames"]
    assert [count(1234567.6), count(float("nan"))] == ["1,234,568", "-"]
    assert [bar(0), bar(0.5), bar(1), bar(7)] == ["", "█████", "██████████", "██████████"]
    assert bar(0.0125) == "▏"
