"""Records that make a thread spill registers are made cheaper until it does not, and a reader is told."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from kernels.cases import CASES
from kperfir.code.cubin import stack_bytes
from kperfir.compile import spills
from kperfir.compile.metadata import LAYOUT_KEY, NOTE_KEY
from kperfir.compile.plain_kernel import Footprint, PlainKernel
from kperfir.compile.spills import LADDER, Build, Rung, plan_ladder, without_spills
from kperfir.config import resolve
from support.compiling import attempt, instrumentation

if TYPE_CHECKING:
    from kernels.registry import Case
    from kperfir.compile.spills import Step

# It has just the registers that it needs without records.
SHORT = dataclasses.replace(CASES["matmul_fp64"], options={**CASES["matmul_fp64"].options, "maxnreg": 64})


@pytest.fixture(autouse=True)
def fresh(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cache."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def compiled(case: Case = SHORT, target: str = "sm_80", **options: Any) -> tuple[int, dict[str, Any], str]:
    """Bytes of a thread's stack, the layout and the note."""
    with instrumentation(**options):
        kernel = attempt(case, target).compiled
    note = getattr(kernel.metadata, NOTE_KEY, "")
    return stack_bytes(kernel.asm["cubin"]) or 0, json.loads(kernel.metadata.kperf_layout), note


def kinds(layout: dict[str, Any]) -> list[str]:
    return [region["kind"] for region in layout["regions"]]


def test_kernel_that_would_spill_loses_records_and_says_which() -> None:
    with mock.patch.object(spills, "LADDER", ()):
        all_stack, full, says = compiled()
    stack, layout, note = compiled()
    assert (stack, all_stack > 0) == (0, True)
    assert says.startswith(f"with its records a thread keeps {all_stack} bytes more on its stack than without records")
    missing = {kind: kinds(full).count(kind) - kinds(layout).count(kind) for kind in sorted(kinds(full))}
    named = ", ".join(f"{kind} ({count})" for kind, count in missing.items() if count)
    assert note.startswith(f"records of {named} were left out")
    assert f"otherwise a thread would keep {all_stack} bytes more" in note


def test_the_cache_gives_the_same_kernel_and_its_note() -> None:
    first = compiled()
    assert compiled() == first
    with mock.patch.object(spills, "LADDER", ()):
        assert compiled() != first, "the ladder is part of the key"


@pytest.mark.parametrize("choice", [{"regions": ("auto", "user")}, {"budget": 100}])
def test_records_that_were_asked_for_stay(choice: dict[str, Any]) -> None:
    with mock.patch.object(spills, "LADDER", ()):
        full = compiled(**choice)
    stack, layout, note = compiled(**choice)
    assert kinds(layout) == kinds(full[1])
    assert stack <= full[0]
    assert "left out" not in note
    assert f"{full[0]} bytes more on its stack" in note


# All of these did spill; whether they do by themselves is up to ptxas, and none of them may.
@pytest.mark.parametrize(
    ("name", "target"),
    [("randn", "sm_90"), ("matmul_bf16", "sm_80"), ("matmul_fp32_ieee", "sm_90"), ("fa_fwd_bf16_causal", "sm_100")],
)
def test_records_add_nothing_to_the_stack(name: str, target: str) -> None:
    plain = stack_bytes(attempt(CASES[name], target).compiled.asm["cubin"])
    assert plain is not None
    assert compiled(CASES[name], target)[0] <= plain


def test_kernel_without_a_stack_is_compiled_once() -> None:
    with mock.patch.object(PlainKernel, "product", side_effect=AssertionError):
        assert compiled(CASES["softmax_fp32"])[2] == ""


def test_plain_kernel_is_compiled_once_for_all_settings() -> None:
    compiled()
    with mock.patch.object(PlainKernel, "product", side_effect=AssertionError):
        assert compiled(strategy="ring")[0] == 0


# Without a compiler.

LAYOUT = {
    "target": "cuda:90",
    "total_warps": 4,
    "warp_size": 32,
    "buffer": "shared",
    "regions": [{"kind": "dot"}, {"kind": "load"}],
}
PLAIN = Footprint(registers=46, stack_bytes=8)
PTX = ".visible .entry k()\n.reqntid 128\n{\n"


def a_build(stack: int, **layout: Any) -> Build:
    return Build({"ptx": PTX, "cubin": stack}, {LAYOUT_KEY: json.dumps(LAYOUT | layout), "shared": 1024})


class Shop:
    """What each rung of a ladder gives."""

    def __init__(self, *builds: Build | None, plain: Footprint | None = PLAIN) -> None:
        self.builds = list(builds)
        self.plain = plain
        self.ptx = ""

    def plain_footprint(self) -> Footprint | None:
        return self.plain

    def build(self, step: Step) -> Build | None:
        return self.builds.pop(0)

    def assemble(self, build: Build, ptx: str) -> Build | None:
        self.ptx = ptx
        return self.builds.pop(0)


@pytest.fixture(autouse=True)
def of_numbers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code that is a number has that many bytes of stack."""
    of = Footprint.of

    def read(products: dict[str, Any]) -> Footprint | None:
        binary = products["cubin"]
        return Footprint(40, binary) if isinstance(binary, int) else of(products)

    monkeypatch.setattr(Footprint, "of", read)


def relieve(first: Build, shop: Shop) -> tuple[Build, str]:
    build = without_spills(first, plan_ladder(resolve({})), shop)
    return build, build.metadata.get(NOTE_KEY, "")


@pytest.mark.parametrize(("stack", "plain"), [(0, PLAIN), (8, PLAIN), (16, None)])
def test_nothing_is_done_where_nothing_is_added_or_known(stack: int, plain: Footprint | None) -> None:
    first = a_build(stack)
    assert relieve(first, Shop(plain=plain)) == (first, "")


def test_the_first_rung_that_adds_nothing_is_taken() -> None:
    shop = Shop(a_build(24), None, a_build(8, buffer="global", regions=[{"kind": "load"}]))
    build, note = relieve(a_build(40), shop)
    assert build.stack_bytes == 8
    assert not shop.builds
    assert note == (
        "records of dot (1) were left out, and records are held in global memory: "
        "otherwise a thread would keep 32 bytes more on its stack than without records"
    )


def test_fewer_records_are_stored_at_once_before_any_is_left_out() -> None:
    shop = Shop(a_build(40), a_build(24, batch=2), a_build(8, batch=1))
    build, note = relieve(a_build(40, batch=4), shop)
    assert build.stack_bytes == 8
    assert note.startswith("records are stored one at a time: otherwise")
    assert relieve(a_build(40, batch=4), Shop(None, a_build(8, batch=2)))[1].startswith(
        "records are stored 2 at a time"
    )


def test_where_no_rung_helps_the_one_that_adds_least_is_taken_and_the_rest_said() -> None:
    shop = Shop(*(a_build(stack, buffer="global") for stack in [48, 24, 16, 16, *[32] * len(LADDER)][: len(LADDER)]))
    build, note = relieve(a_build(40), shop)
    assert build.stack_bytes == 16
    assert note.endswith("than without records; 8 bytes are left")


def test_ptxas_is_told_how_many_ctas_share_an_sm_without_records() -> None:
    shop = Shop(a_build(8))
    _, note = relieve(a_build(40), shop)
    assert shop.ptx == ".visible .entry k()\n.reqntid 128\n.minnctapersm 10\n{\n"
    assert note.startswith("ptxas was told")


def test_a_choice_of_the_user_is_no_rung() -> None:
    def rungs(**options: Any) -> list[Rung]:
        return [step.rung for step in plan_ladder(resolve({}, **options))]

    assert rungs() == list(LADDER)
    assert not any(rung.loses_records for rung in rungs(budget=4))
    assert not any(rung.loses_records for rung in rungs(regions="memory"))
    assert any(rung.loses_records for rung in rungs(batch=1)), "it is no choice of records"
    for fixed in ({"buffer": "shared"}, {"strategy": "aggregate"}):
        steps = plan_ladder(resolve({}, **fixed))
        assert steps
        assert not any("buffer=global" in step.pipelines.allocation for step in steps)
