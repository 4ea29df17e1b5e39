"""`kperfir inspect`: everything that is in the file, without its buffers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kperfir.capture.reader import Capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Answer


def test_json_holds_chunks_layout_and_launches(kperfir: Callable[..., Answer], whole: Path) -> None:
    contents = json.loads(kperfir("inspect", whole, "--json").out)
    assert [chunk["kind"] for chunk in contents["chunks"]] == ["PROC", "KERN", "LNCH", "LNCH", "END"]
    last = contents["chunks"][-1]
    assert last["offset"] < contents["file_bytes"] == whole.stat().st_size
    (kernel,) = contents["kernels"]
    layout = Capture.open(whole).kernels[0].layout
    assert len(kernel["layout"]["regions"]) == len(layout.regions)
    assert len(kernel["layout"]["frames"]) == len(layout.frames)
    assert kernel["layout"]["hash"] == layout.hash
    assert [launch["grid"] for launch in contents["launches"]] == [[4, 1, 1], [4, 1, 1]]
    assert contents["ended"]


def test_text_names_regions_and_frames(kperfir: Callable[..., Answer], whole: Path) -> None:
    answer = kperfir("inspect", whole, "--frames")
    assert answer.code == 0
    assert "kernel 0: matmul_kernel" in answer.out
    assert "      iteration kernel.py:20" in answer.out
    assert "start matmul_kernel" in answer.out
    assert "end" not in kperfir("inspect", whole).out.split("launch  kernel")[0].split("stamps")[0].split("region")[0]


def test_killed_process_is_told(kperfir: Callable[..., Answer], whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "killed.kpf"
    path.write_bytes(whole.read_bytes()[:-50])
    contents = json.loads(kperfir("inspect", path, "--json").out)
    assert not contents["ended"]
    assert contents["notes"]
    assert contents["chunks"][-1]["kind"] == "LNCH"
