"""`kperfir merge`: processes on one axis, read back by Perfetto's own trace_processor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kperfir
from kperfir.capture.writer import ProcessInfo
from kperfir.cli.main import main
from kperfir.export.drawing import LAUNCH_GAP_NS
from kperfir.export.merge import labels
from support.synthetic import CLOCK_HZ, CaptureShape, write_matmul_capture
from support.trace_processor import open_trace

if TYPE_CHECKING:
    import pandas as pd

LAUNCHES = """
    select s.ts, extract_arg(s.arg_set_id, 'debug.launch') launch, parent.name process
    from slice s join track t on s.track_id = t.id join track parent on t.parent_id = parent.id
    where extract_arg(s.arg_set_id, 'debug.offset_ns') is not null order by process, launch
"""


def write(
    folder: Path, name: str, timer_ns: int, *, launches: int = 2, host: str = "a", pid: int = 7, rank: int | None = None
) -> Path:
    path = folder / f"{name}.kpf"
    process = ProcessInfo(host, pid, "NVIDIA A100", simulated=False, chip="a100", rank=rank, clock_hz=CLOCK_HZ)
    write_matmul_capture(path, CaptureShape(launches=launches, simulated=False, timer_ns=timer_ns), process)
    return path


def launches_of(path: Path) -> pd.DataFrame:
    with open_trace(path) as trace:
        assert trace.problems() == []
        return trace.sql(LAUNCHES)


def test_launches_lie_where_their_timers_say(tmp_path: Path) -> None:
    first, second = write(tmp_path, "x", 10**18, rank=0), write(tmp_path, "y", 10**18 + 7000, rank=1)
    out = tmp_path / "job.pftrace"
    assert main(["merge", str(first), str(second), "-o", str(out)]) == 0
    table = launches_of(out)
    timers = [*kperfir.load(first).launches["start_timer_ns"], *kperfir.load(second).launches["start_timer_ns"]]
    assert (table["ts"] - LAUNCH_GAP_NS).tolist() == pytest.approx([timer - min(timers) for timer in timers], abs=20)
    assert [name.split(" · ")[0] for name in table["process"]] == ["rank 0", "rank 0", "rank 1", "rank 1"]


def test_first_launches_are_put_together_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [write(tmp_path, "x", 10**18, rank=0), write(tmp_path, "y", 5000, rank=1)]
    out = tmp_path / "job.pftrace"
    assert main(["merge", *map(str, files), "-o", str(out)]) == 0
    assert "277,778 hours apart by their timers; --align start" in capsys.readouterr().err
    assert main(["merge", *map(str, files), "-o", str(out), "--align", "start"]) == 0
    assert "hours apart" not in capsys.readouterr().err
    table = launches_of(out)
    assert abs(table["ts"].iloc[0] - table["ts"].iloc[2]) <= 20
    assert table["ts"].iloc[1] > table["ts"].iloc[0]


def test_processes_of_chrome_json_have_names_of_their_own(tmp_path: Path) -> None:
    """Two captures of one process id, as of two containers."""
    files = [write(tmp_path, "x", 10**18), write(tmp_path, "y", 10**18)]
    out = tmp_path / "job.json"
    assert main(["merge", *map(str, files), "-o", str(out)]) == 0
    events = json.loads(out.read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event.get("name") == "process_name"]
    assert len(set(names)) == len({event["pid"] for event in events}) == 8  # Of 2 processes, 2 launches, 2 SMs.
    assert all(name.startswith(("process 7 #1 · ", "process 7 #2 · ")) for name in names)


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ([("a", 1, 0), ("a", 2, 1)], ["rank 0", "rank 1"]),
        ([("a", 1, None), ("a", 2, None)], ["process 1", "process 2"]),
        ([("a", 1, 0), ("b", 1, 0)], ["a rank 0", "b rank 0"]),
        ([("a", 1, 0), ("a", 1, 0)], ["rank 0 #1", "rank 0 #2"]),
    ],
)
def test_labels_tell_processes_apart(
    tmp_path: Path, processes: list[tuple[str, int, int | None]], expected: list[str]
) -> None:
    files = [
        write(tmp_path, f"x{number}", 0, launches=1, host=host, pid=pid, rank=rank)
        for number, (host, pid, rank) in enumerate(processes)
    ]
    assert labels([kperfir.load(file) for file in files]) == expected


def test_process_without_a_launch_moves_nothing(tmp_path: Path) -> None:
    files = [write(tmp_path, "x", 10**18, rank=0), write(tmp_path, "y", 0, rank=1, launches=0)]
    out = tmp_path / "job.pftrace"
    assert main(["merge", *map(str, files), "-o", str(out)]) == 0
    assert launches_of(out)["ts"].iloc[0] == pytest.approx(LAUNCH_GAP_NS, abs=20)


def test_format_without_an_axis_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(write(tmp_path, "x", 0)), "-o", str(tmp_path / "x.csv")]) == 2
    assert "the other formats have no time axis" in capsys.readouterr().err
