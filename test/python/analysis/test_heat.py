"""Heat of source lines, on a timeline worked out by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kperfir.analysis.heat import source_heat
from support.hand_made import Warp, at, hand_made


def test_heat_is_time_that_no_inner_region_takes() -> None:
    inner = [at("load", 10, 30, line=4), at("async_wait", 40, 80, line=4), at("dot", 80, 90, line=5)]
    table = source_heat(hand_made([Warp([at("kernel", 0, 100, *inner)])]).spans).set_index("line")
    assert table["self_cycles"].to_dict() == {1: 30, 4: 60, 5: 10}
    assert table["wait_cycles"].to_dict() == {1: 0, 4: 40, 5: 0}
    assert table["heat"].to_dict() == pytest.approx({1: 0.3, 4: 0.6, 5: 0.1})
    assert table.loc[4, "kinds"] == "load, async_wait"


@pytest.mark.parametrize("name", ["fifo.py", "passwd", "nul\0.py", "kernel.py"])
def test_text_is_read_of_regular_python_files_only(tmp_path: Path, name: str) -> None:
    """A FIFO that nobody writes to would hang, a zero byte be an error, and a page carry what is not the kernel's."""
    path = f"{tmp_path}/{name}"
    if name == "fifo.py":
        os.mkfifo(path)
    elif "\0" not in name:
        Path(path).write_text("  text of the file\n")
    spans = hand_made([Warp([at("kernel", 0, 100)])]).spans
    table = source_heat(spans.assign(file=path))
    assert table["source"].tolist() == ["text of the file" if name == "kernel.py" else ""]
