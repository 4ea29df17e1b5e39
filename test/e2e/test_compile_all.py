"""Every kernel of the corpus that plain Triton compiles also compiles instrumented, and has records."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kperfir.capture.layout_json import parse_layout
from support.compiling import TARGETS

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunPython

SHARED_LIMIT = {"sm_80": 166912, "sm_90": 232448, "sm_100": 232448, "gfx942": 65536}


def compile_corpus(target: str, run_python: RunPython, folder: Path) -> list[dict[str, Any]]:
    child = run_python("-m", "support.compile_corpus", target, cwd=folder)
    assert child.returncode == 0, f"after {child.stdout.splitlines()[-1:]}: {child.stderr[-2000:]}"
    return [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_corpus_compiles_instrumented(target: str, run_python: RunPython, tmp_path: Path):
    results = compile_corpus(target, run_python, tmp_path)
    assert len(results) > 40
    lost = [result["name"] for result in results if result["error"] and not result["plain_error"]]
    assert lost == []
    compiled = [result for result in results if not result["plain_error"]]
    fallbacks = {result["name"]: result["reason"] for result in compiled if not result["layout"]}
    assert fallbacks == {}  # docs/user-guide.md says that there are none.
    for result in compiled:
        if result["layout"]:
            check_layout(result, SHARED_LIMIT[target])


def check_layout(result: dict[str, Any], shared_limit: int) -> None:
    name, fields = result["name"], json.loads(result["layout"])
    layout = parse_layout(result["layout"])
    assert layout.kernel, name
    # What is full stays full, and nothing else becomes so.
    assert result["shared_instrumented"] <= max(shared_limit, result["shared"]), name
    assert fields["words_per_warp"] >= 2 * fields["max_frame_words"], name
    longest = max(len(frame["stamps"]) for frame in fields["frames"])
    assert fields["max_frame_words"] == -(-(longest + 1) // layout.frame_align) * layout.frame_align, name
    # Each region begins somewhere, and ends somewhere unless something else closes it.
    events = [tuple(event) for frame in fields["frames"] for stamp in frame["stamps"] for event in stamp]
    for region in fields["regions"]:
        edges = {edge for edge, identifier in events if identifier == region["id"]}
        wanted = {"mark": {"mark"}, "iteration": {"start"}}.get(region["kind"], {"start", "end"})
        assert edges in (wanted, {"gap"}), (name, region)
        assert region["parent"] < region["id"], (name, region)
        assert region["file"].endswith(".py"), (name, region)
        assert "/triton/" not in region["file"], (name, region)
        assert region["line"] > 0, (name, region)
    assert len({region["name"] for region in fields["regions"]}) == len(fields["regions"]), name
    warps = [w for role in fields["roles"] for w in range(role["first_warp"], role["first_warp"] + role["warps"])]
    assert sorted(warps) == list(range(fields["total_warps"])), name
