"""Exposed communication, on a timeline worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from kperfir.analysis.communication import exposed_communication
from kperfir.analysis.registry import polls_of
from support.hand_made import Warp, at, hand_made

if TYPE_CHECKING:
    import pandas as pd


def chunks(*warps: Warp) -> pd.DataFrame:
    spans = hand_made(list(warps)).spans
    polls = {(0, int(region)) for region in spans.loc[spans["kind"] == "loop", "region"].unique()}
    return exposed_communication(spans, polls)


def sender(*signals: int, cta: int = 0) -> Warp:
    return Warp([at("kernel", 0, 9000, *(at("atomic", end - 100, end) for end in signals))], cta=cta, sm=cta)


def consumer(*polls: tuple[int, int], cta: int = 1) -> Warp:
    return Warp([at("kernel", 0, 9000, *(at("loop", start, end, line=7) for start, end in polls))], cta=cta, sm=cta)


def test_a_chunk_is_exposed_while_others_wait_for_it() -> None:
    first, second, third = chunks(sender(1000, 3000, 6000), consumer((0, 1050), (2600, 3050), (7000, 7050))).to_dict(
        "records"
    )
    assert (first["communication_cycles"], first["exposed_cycles"], first["hidden_cycles"]) == (1000, 1000, 0)
    assert (second["communication_cycles"], second["exposed_cycles"]) == (2000, 450)
    assert second["exposed_share"] == pytest.approx(0.225)
    # It was there before anybody asked; what the second one's poll took beyond its end is not waiting for it.
    assert (third["communication_cycles"], third["exposed_cycles"], third["waiters"]) == (3000, 50, 1)


def test_exposure_is_the_mean_of_those_that_wait() -> None:
    (row,) = chunks(sender(2000), consumer((0, 2050)), consumer((1000, 2050), cta=2)).to_dict("records")
    assert (row["waiters"], row["exposed_cycles"], row["hidden_cycles"]) == (2, 1500, 500)


def test_a_sender_that_waits_itself_does_not_communicate_meanwhile() -> None:
    root = at("kernel", 0, 9000, at("loop", 0, 600, line=7), at("atomic", 1900, 2000))
    rows = chunks(Warp([root]), sender(500, cta=2), consumer((0, 2050)))
    own = rows[rows["cta"] == 0].iloc[0]
    assert (own["communication_cycles"], own["exposed_cycles"]) == (1400, 1400)


def test_without_polls_there_is_nothing_to_say() -> None:
    assert chunks(sender(1000)).empty
    assert exposed_communication(hand_made([sender(1000)]).spans, set()).empty


@pytest.mark.parametrize(
    ("leaves", "op", "polls"),
    [
        (("atomic",), "scf.while", True),
        (("atomic", "compute", "barrier"), "scf.while", True),
        (("load",), "scf.while", True),
        (("load", "compute"), "scf.while", False),
        (("barrier",), "scf.while", False),
        (("atomic", "store"), "scf.while", False),
        (("atomic",), "scf.for", False),
    ],
)
def test_a_poll_is_a_while_loop_that_only_looks(leaves: tuple[str, ...], op: str, *, polls: bool) -> None:
    regions: list[Any] = [
        SimpleNamespace(id=0, parent=-1, kind="kernel", op="tt.func"),
        SimpleNamespace(id=1, parent=0, kind="loop", op=op),
        SimpleNamespace(id=2, parent=1, kind="iteration", op=op),
    ]
    regions += [SimpleNamespace(id=3 + number, parent=2, kind=kind, op="") for number, kind in enumerate(leaves)]
    record = SimpleNamespace(kernel=SimpleNamespace(layout=SimpleNamespace(regions=regions)))
    timeline: Any = SimpleNamespace(captures=[SimpleNamespace(launches=[record])])
    assert polls_of(timeline) == ({(0, 1)} if polls else set())


def test_an_atomic_that_polls_by_itself_is_a_poll() -> None:
    regions = [SimpleNamespace(id=0, parent=-1, kind="atomic", op="tt.atomic_poll")]
    record = SimpleNamespace(kernel=SimpleNamespace(layout=SimpleNamespace(regions=regions)))
    timeline: Any = SimpleNamespace(captures=[SimpleNamespace(launches=[record])])
    assert polls_of(timeline) == {(0, 0)}
