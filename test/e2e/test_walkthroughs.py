"""Each walkthrough of docs/walkthroughs.md runs by its one command and shows what the page says that it shows.

Figures of the page are of one version of the timing model; held here is which way each goes, and by how much at least.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kperfir
from kperfir.advice.advise import advise
from kperfir.analysis.registry import ANALYSES

if TYPE_CHECKING:
    from conftest import RunPython
    from kperfir.timeline import Timeline

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "walkthroughs.md").read_text()
NAMES = sorted(script.stem for script in (DOCS / "walkthroughs").glob("*.py") if script.stem != "walkthrough")


@pytest.fixture
def run(run_python: RunPython, tmp_path: Path) -> Run:
    return Run(run_python, tmp_path)


class Run:
    """Runs a walkthrough in a folder of its own."""

    def __init__(self, run_python: RunPython, folder: Path) -> None:
        self._run, self.folder = run_python, folder

    def speedup(self, name: str) -> float:
        script = DOCS / "walkthroughs" / f"{name}.py"
        result = self._run(script, cwd=self.folder, PYTHONPATH=str(script.parent))
        assert result.returncode == 0, result.stderr
        self.out = result.stdout
        found = re.search(r"^([\d.]+) times as fast \(simulated\)$", result.stdout, re.M)
        assert found is not None, result.stdout
        return float(found[1])

    def load(self, capture: str) -> Timeline:
        return kperfir.load(self.folder / f"{capture}.kpf")


def mean(timeline: Timeline, kind: str) -> float:
    spans = timeline.spans
    return float(spans[spans["kind"] == kind]["duration_cycles"].mean())


def rules(timeline: Timeline) -> set[str]:
    return {finding.rule for finding in advise(timeline).findings}


def test_page_has_each_walkthrough_with_command_and_picture() -> None:
    assert re.findall(r"^    python docs/walkthroughs/(\w+)\.py$", PAGE, re.M)[1:] == [
        "slow_load", "bubble", "imbalance", "bank_conflict", "regression", "hashed_weights",
    ]  # fmt: skip
    pictures = re.findall(r"!\[[^\]]{20,}\]\((img/walkthrough-\w+\.png)\)", PAGE)
    assert sorted(pictures) == [f"img/walkthrough-{name}.png" for name in NAMES]
    for picture in pictures:
        assert (DOCS / picture).read_bytes().startswith(b"\x89PNG")


def test_slow_load_is_slow_to_issue_where_threads_read_far_apart(run: Run) -> None:
    assert run.speedup("slow_load") > 1.1
    assert mean(run.load("slow_load-before"), "load") > 3 * mean(run.load("slow_load-after"), "load")


def test_bubble_is_found_and_more_stages_fill_it(run: Run) -> None:
    assert run.speedup("bubble") > 1.2
    before, after = run.load("bubble-before"), run.load("bubble-after")
    assert "deepen-pipeline" in rules(before)
    assert mean(before, "async_wait") > 2 * mean(after, "async_wait")


def test_imbalance_shows_in_how_the_sms_are_filled(run: Run) -> None:
    assert run.speedup("imbalance") > 1.4
    before, after = (ANALYSES["waves"].run(run.load(f"imbalance-{when}")).iloc[0] for when in ("before", "after"))
    assert before["imbalance"] > 1.5
    assert after["imbalance"] < 1.1
    assert "balance-sms" in rules(run.load("imbalance-before"))


def test_bank_conflict_is_in_the_load_and_swizzling_ends_it(run: Run) -> None:
    assert run.speedup("bank_conflict") > 1.5
    assert mean(run.load("bank_conflict-before"), "local_load") > 5 * mean(
        run.load("bank_conflict-after"), "local_load"
    )


def test_regression_is_named_and_has_an_exit_code(run: Run) -> None:
    assert run.speedup("regression") < 0.9
    assert "exit code 4" in run.out
    assert re.search(r"loop regression\.py:25 .* slower", run.out)
    assert re.search(r"loop regression\.py:23 .* removed", run.out)


def test_hashed_weights_get_faster_by_what_is_seen_and_by_what_is_advised(run: Run) -> None:
    assert run.speedup("hashed_weights") > 1.8
    by_element, by_block, staged = (run.load(f"hashed_weights-{name}") for name in ("element", "block", "stages"))
    assert mean(by_element, "load") > 3 * mean(by_block, "load")
    (finding,) = (finding for finding in advise(by_block).findings if finding.rule == "pipeline-loop")
    assert finding.change.settings == {"num_stages": 3}
    achieved = by_block.launches["cycles"].sum() / staged.launches["cycles"].sum()
    assert achieved == pytest.approx(finding.speedup, rel=0.25)
