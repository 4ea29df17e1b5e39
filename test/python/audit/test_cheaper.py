"""What an audit recommends: compiled, no more than was asked for, and with all records where that is possible."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kperfir.audit import cheaper
from kperfir.audit.cheaper import Excess, find_cheaper
from kperfir.audit.resources import Footprint
from kperfir.code.residency import most_registers, occupancy
from kperfir.config import Options, resolve


def footprint(ctas: int) -> Footprint:
    return Footprint(40, 0, 0, 1024, ctas, "registers", 100)


class Compiler:
    """Knows which combinations of settings give as many CTAs as without records, and how many regions those have."""

    def __init__(self, *good: tuple[str, int], regions: int = 5) -> None:
        self.good = good
        self.regions = regions
        self.asked: list[tuple[str, int]] = []

    def __call__(self, options: Options | None, /, maxnreg: int = 0) -> Any:
        assert options is not None
        asked = (
            " ".join(f"{name.rpartition('_')[2]}={value}" for name, value in options.to_environment().items()),
            maxnreg,
        )
        self.asked.append(asked)
        if "BUDGET=8" in asked[0]:
            raise RuntimeError("does not compile")
        return SimpleNamespace(layout=str(self.regions), ctas=12 if asked in self.good else 9, note="")


@pytest.fixture(autouse=True)
def layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cheaper, "parse_layout", lambda text: SimpleNamespace(regions=range(int(text))))


def find(compile: Compiler, step: int = 40, *, buffer: str = "shared", aggregate: bool = False, **options: Any) -> str:
    layout: Any = SimpleNamespace(buffer=buffer, aggregate=aggregate, regions=range(5))
    found = find_cheaper(
        Excess(footprint(12), resolve({}, **options), layout, step), compile, lambda build: footprint(build.ctas)
    )
    return found.setting if found else ""


def test_a_bound_of_registers_comes_first_where_it_keeps_all_records() -> None:
    compile = Compiler(("", 40), ("BUFFER=global", 0))
    assert find(compile) == "maxnreg=40 (an option of the launch)"
    assert compile.asked == [("", 40)]


def test_a_bound_that_loses_records_comes_behind_settings() -> None:
    assert find(Compiler(("", 40), ("REGIONS=mma", 0), regions=3)) == "TRITON_KPERF_REGIONS=mma"
    assert find(Compiler(("", 40), regions=3)) == "maxnreg=40 (an option of the launch)"


def test_both_are_combined_where_neither_is_enough() -> None:
    compile = Compiler(("REGIONS=kernel", 40))
    assert find(compile) == "maxnreg=40 (an option of the launch), TRITON_KPERF_REGIONS=kernel"
    assert find(Compiler()) == ""


def test_without_a_step_of_registers_none_are_bound() -> None:
    compile = Compiler()
    assert find(compile, step=0) == ""
    assert {bound for _, bound in compile.asked} == {0}


@pytest.mark.parametrize(
    ("options", "tried"),
    [
        ({}, "BATCH=1|BUFFER=global|BUDGET=8|BUDGET=4|REGIONS=memory|"),
        ({"batch": 1}, "BUFFER=global BATCH=1|BUDGET=8 BATCH=1|BUDGET=4 BATCH=1|REGIONS=memory BATCH=1|"),
        ({"budget": 6}, "BUDGET=6 BATCH=1|BUDGET=6 BUFFER=global|BUDGET=4|REGIONS=memory BUDGET=6|"),
        ({"regions": "load"}, "REGIONS=load BATCH=1|REGIONS=load BUFFER=global|REGIONS=load BUDGET=8|"),
        ({"regions": "minimal"}, "REGIONS=minimal BATCH=1|REGIONS=minimal BUFFER=global|REGIONS=minimal BUDGET=8|"),
    ],
)  # fmt: skip
def test_what_is_tried_asks_for_less_than_the_user_did(options: dict[str, Any], tried: str) -> None:
    compile = Compiler()
    find(compile, step=0, **options)
    assert "|".join(text for text, _ in compile.asked).startswith(tried)


def test_records_are_not_moved_to_where_they_are() -> None:
    for where in ({"buffer": "global"}, {"aggregate": True}):
        compile = Compiler()
        find(compile, step=0, **where)
        assert not any("BUFFER" in text for text, _ in compile.asked)


@pytest.mark.parametrize("threads", [32, 64, 128, 256, 384])
def test_most_registers_are_the_last_with_which_so_many_ctas_fit(threads: int) -> None:
    for ctas in range(1, min(2048 // threads, 32) + 1):
        most = most_registers(threads=threads, ctas=ctas)
        held = [occupancy(90, threads=threads, registers=count, shared_bytes=0)[0] for count in (most, most + 1)]
        assert held[0] >= ctas
        assert most == 255 or held[1] < ctas
