"""Trying a change: how a launch is changed, and what is said of two captures."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kperfir.advice.finding import Change, Finding
from kperfir.advice.rerun import changed
from kperfir.advice.whatif import Outcome, _most_promising, check_settings, compare
from kperfir.capture.writer import CaptureWriter, LaunchInfo
from kperfir.cli.whatif import _print
from kperfir.errors import UsageError
from kperfir.timeline import Timeline, load
from support.synthetic import CaptureShape, describe_process, matmul_plan

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("args", "kwargs", "settings", "expected"),
    [
        ((1, 2), {"B": 4}, {"B": 8}, ((1, 2), {"B": 8})),
        ((1, 2, 4), {}, {"B": 8}, ((1, 2, 8), {})),
        ((1, 2), {"B": 4}, {"num_stages": 3}, ((1, 2), {"B": 4, "num_stages": 3})),
        ((1, 2), {"B": 4, "num_warps": 4}, {"num_warps": 8, "B": 2}, ((1, 2), {"B": 2, "num_warps": 8})),
        ((1, 2), {"B": 4}, {"nothing": 3}, ((1, 2), {"B": 4})),
    ],
    ids=["keyword", "positional", "option", "both", "unknown"],
)
def test_launch_is_changed(args: Any, kwargs: Any, settings: Any, expected: Any) -> None:
    assert changed(["x", "y", "B"], settings, args, kwargs) == expected


def capture(path: Path, cycles: int, facts: dict[str, Any]) -> Timeline:
    shape = CaptureShape()
    with CaptureWriter(path, describe_process(shape)) as writer:
        layout = matmul_plan(shape).layout(strategy="saturate", words_per_warp=8)
        kernel = writer.add_kernel(layout.text, facts)
        for _ in range(2):
            writer.add_launch(kernel, LaunchInfo((1, 1, 1), cycles=cycles), bytes(layout.cta_bytes))
    return load(path)


def finding(rule: str, speedup: float, settings: dict[str, Any]) -> Finding:
    return Finding(rule, "matmul_kernel", "", (), (), speedup, 2.0, "", Change("", settings))


def test_outcome_sets_achieved_against_expected(tmp_path: Path) -> None:
    before = capture(tmp_path / "a.kpf", 300, {"num_stages": 2})
    after = capture(tmp_path / "b.kpf", 200, {"num_stages": 3})
    told = (finding("other", 1.9, {"num_stages": 4}), finding("deepen-pipeline", 1.8, {"num_stages": 3}))
    (outcome,) = compare(before, after, {"num_stages": 3}, told)
    assert (outcome.before_cycles, outcome.after_cycles) == (600, 400)
    assert outcome.achieved == 1.5
    assert (outcome.rule, outcome.expected, outcome.bound) == ("deepen-pipeline", 1.8, 2.0)
    assert outcome.error == pytest.approx(0.2)
    (outcome,) = compare(before, after, {"num_stages": 3}, ())
    assert (outcome.rule, outcome.expected, outcome.error) == ("", None, None)


@pytest.mark.parametrize("cycles", [(300, 0), (0, 300), (0, 0)])
def test_runs_without_cycles_gain_nothing_that_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cycles: tuple[int, int]
) -> None:
    before = capture(tmp_path / "a.kpf", cycles[0], {"num_stages": 2})
    after = capture(tmp_path / "b.kpf", cycles[1], {"num_stages": 3})
    (outcome,) = compare(before, after, {"num_stages": 3}, (finding("rule", 1.8, {"num_stages": 3}),))
    data = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    assert (data["achieved"], data["error"], data["expected"]) == (None, None, 1.8)
    _print(outcome)
    assert capsys.readouterr().out.splitlines() == [
        "matmul_kernel with num_stages=3",
        f"  achieved an unknown gain, as cycles are missing: {2 * cycles[0]} cycles before, {2 * cycles[1]} after",
        "  expected 1.80x, at most 2.00x (rule)",
    ]


def test_what_is_printed_is_what_was_said(capsys: pytest.CaptureFixture[str]) -> None:
    _print(Outcome("k", {"NAME": "[x]"}, 3000, 2000, 1.5, "r", 1.65, 2.0))
    assert capsys.readouterr().out.splitlines() == [
        "k with NAME=[x]",
        "  achieved 1.50x: 3,000 cycles before, 2,000 after",
        "  expected 1.65x, at most 2.00x (r): 10.0 % too high",
    ]


def test_setting_that_no_kernel_took_is_an_error(tmp_path: Path) -> None:
    before = capture(tmp_path / "a.kpf", 300, {"num_stages": 2, "constants": {"BK": 32}})
    assert compare(before, before, {"BK": 32}, ())[0].achieved == 1
    with pytest.raises(UsageError) as raised:
        compare(before, before, {"num_stages": 3}, ())
    assert raised.value.code == "setting-not-taken"


def test_without_settings_the_most_promising_finding_with_some_is_tried() -> None:
    told = (finding("a", 1.2, {"BK": 64}), finding("b", 1.5, {}), finding("c", 1.3, {"num_stages": 3}))
    assert _most_promising(told) == {"num_stages": 3}
    with pytest.raises(UsageError, match="nothing-to-try"):
        _most_promising(told[1:2])


def test_json_holds_the_error() -> None:
    data = Outcome("k", {"S": 2}, 300, 200, 1.5, "r", 1.65, 2.0).to_dict()
    assert data["error"] == pytest.approx(0.1)
    assert list(data)[:3] == ["kernel", "settings", "before_cycles"]


def test_a_run_time_argument_is_no_change_of_a_kernel(tmp_path: Path) -> None:
    signature = {"K": "i32", "BK": "constexpr"}
    recorded = capture(tmp_path / "a.kpf", 300, {"num_stages": 2, "signature": signature})
    with pytest.raises(UsageError, match="run-time argument") as raised:
        check_settings(recorded, {"K": 512}, "*")
    assert raised.value.code == "run-time-argument"
    for settings in ({"BK": 32}, {"num_warps": 4}, {"other": 1}):
        check_settings(recorded, settings, "*")
    check_settings(recorded, {"K": 512}, "another*")
