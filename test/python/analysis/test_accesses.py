"""Accesses next to their time, and what is made of facts that nobody wrote."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kperfir.analysis.accesses import access_patterns
from kperfir.capture.accesses import build_accesses
from support.hand_made import Warp, at, hand_made

SHARED = {
    "region": 1, "op": "ttg.local_load", "space": "shared", "instruction": "ld.shared.b32", "bytes": 4, "requests": 2,
    "cost": 64, "ideal": 2, "bound": "exact",
}  # fmt: skip
GLOBAL = SHARED | {"region": 2, "op": "tt.load", "space": "global", "cost": 16, "ideal": 8, "run_bytes": 32}


def record(facts: Any) -> Any:
    kinds = ("kernel", "local_load", "load")
    regions = [
        SimpleNamespace(id=number, name=kind, kind=kind, file="k.py", line=number) for number, kind in enumerate(kinds)
    ]
    kernel = SimpleNamespace(name="k", layout=SimpleNamespace(regions=regions), facts={"accesses": facts})
    return SimpleNamespace(kernel=kernel)


def test_time_stands_next_to_what_is_predicted() -> None:
    root = at("kernel", 0, 400, at("local_load", 0, 100), at("load", 100, 140, line=2))
    spans = hand_made([Warp([root]), Warp([root], warp=1)]).spans
    accesses = build_accesses([record({"version": 1, "accesses": [SHARED, GLOBAL]})])
    shared, load = access_patterns(spans, accesses).to_dict("records")
    assert (shared["degree"], shared["lost_cycles"], shared["count"], shared["mean_cycles"]) == (32, 62, 2, 100)
    assert shared["share"] == pytest.approx(0.25)
    assert (load["degree"], load["lost_bytes"], load["mean_cycles"]) == (2, 256, 40)


@pytest.mark.parametrize(
    "facts",
    [
        None, [], "x", {"version": 2, "accesses": [SHARED]}, {"version": 1}, {"version": 1, "accesses": {}},
        {"version": 1, "accesses": [None, 3, {}, SHARED | {"region": 9}, SHARED | {"space": "?"}]},
    ],
)  # fmt: skip
def test_facts_of_another_form_are_no_predictions(facts: Any) -> None:
    table = build_accesses([record(facts)])
    assert table.empty
    assert access_patterns(hand_made([Warp([at("kernel", 0, 9)])]).spans, table).empty


@pytest.mark.parametrize("wrong", [{"cost": "9"}, {"cost": -1}, {"ideal": 0}, {"bound": "surely"}, {"cost": 1.5}])
def test_a_figure_of_another_form_is_not_known(wrong: dict[str, Any]) -> None:
    (row,) = build_accesses([record({"version": 1, "accesses": [SHARED | wrong]})]).to_dict("records")
    assert row["bound"] == "unknown"
    assert row["cost"] != row["cost"]
