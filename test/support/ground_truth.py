"""The device's event log against decoded stamps.

The log is written by the executor and knows nothing of kperfir. A stamp is right if it is the value that the clock
read at its place in the program returned, for that execution of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Collection

    from kperfir.runtime.simt import FinishedLaunch
    from support.launch import ProfiledRun, Run

# The 32-bit clock: stamps. Anchors are 64-bit reads, and so are clock reads that a kernel's author asks for.
STAMP = re.compile(r"\bmov\.[bu]32\b.*%clock;?$")

# Instructions that belong to exactly one kind of region, whatever the compiler did around them.
INSTRUCTIONS = {
    "load": re.compile(r"\bld\.global"),
    "store": re.compile(r"\bst\.global"),
    "atomic": re.compile(r"\b(atom|red)\S*\.global"),
    "async_copy": re.compile(r"\bcp\.async\.(c[ag]|mbarrier)\."),
    "async_wait": re.compile(r"\bcp\.async\.(bulk\.)?wait_(group|all)"),
    "dot": re.compile(r"\bmma\.sync"),
    "wgmma": re.compile(r"\bwgmma\.mma_async"),
    "wgmma_wait": re.compile(r"\bwgmma\.wait_group"),
    "tma": re.compile(r"\bcp\.(reduce\.)?async\.bulk\.tensor"),
    "mbarrier_wait": re.compile(r"\bmbarrier\.(try|test)_wait"),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """How much a comparison covered, so that a test can demand that it was not nothing."""

    warps: int
    executed: int
    decoded: int

    @property
    def dropped(self) -> int:
        """Stamps that were executed and not kept."""
        return self.executed - self.decoded


def executed_stamps(launch: FinishedLaunch) -> pd.DataFrame:
    """All stamps that the device executed: cta, warp, sm, pc, value, issue; in program order of each warp."""
    log = launch.result.log
    texts = [text for text, *_ in launch.kernel.module.instructions]
    is_stamp = np.array([bool(STAMP.search(text.strip())) for text in texts])
    frame = pd.DataFrame({name: log[name] for name in ("cta", "warp", "sm", "pc", "value", "issue")})
    frame = frame[is_stamp[frame["pc"].to_numpy()]]
    return frame.sort_values(["cta", "warp", "issue"], kind="stable", ignore_index=True)


def compare_stamps(run: ProfiledRun, *, strategy: str = "saturate", merged_code: bool = False) -> Compared:
    """Assert that the decoded stamps are exactly the executed ones that the strategy keeps.

    Compares for every warp of every CTA: values, order, SM, the unwrapped clock, the count of records and of drops; and
    that one place in the program always has the same frame and slot, unless `merged_code`: where the ends of two
    branches are equal, LLVM may keep one of them for both, and then the tag alone tells the frames apart.
    """
    executed = executed_stamps(run.launch)
    timeline = run.timeline
    decoded = {key: group for key, group in timeline.stamps.groupby(["cta", "warp"], sort=False)}
    tracks = timeline.tracks.set_index(["cta", "warp"])
    assert tracks.index.is_unique
    truth = {key: group for key, group in executed.groupby(["cta", "warp"], sort=False)}
    assert truth.keys() == {key for key, track in tracks.iterrows() if track["records"]}
    assert decoded.keys() <= truth.keys()

    placed = []
    for key, all_executed in truth.items():
        found = decoded.get(key, timeline.stamps.iloc[:0])
        kept = _kept(all_executed, len(found), strategy)
        what = f"cta {key[0]} warp {key[1]}"
        np.testing.assert_array_equal(found["clock_raw"].to_numpy(), kept["value"].to_numpy(), err_msg=what)
        np.testing.assert_array_equal(found["clock"].to_numpy(), kept["issue"].to_numpy(), err_msg=what)
        assert (found["sm"].to_numpy() == kept["sm"].to_numpy()).all(), what
        track = tracks.loc[key]
        assert track["stamps"] == len(found), what
        assert track["records"] == len(all_executed), what
        assert track["dropped"] == len(all_executed) - len(found), what
        placed.append(
            pd.DataFrame(
                {"pc": kept["pc"].to_numpy(), "frame": found["frame"].to_numpy(), "slot": found["slot"].to_numpy()}
            )
        )
    if not merged_code:
        _assert_one_meaning_per_pc(pd.concat(placed))
    compared = Compared(len(truth), len(executed), len(timeline.stamps))
    assert timeline.launches["dropped"].sum() == compared.dropped
    return compared


def _kept(executed: pd.DataFrame, count: int, strategy: str) -> pd.DataFrame:
    return executed.iloc[:count] if strategy == "saturate" else executed.iloc[len(executed) - count :]


def _assert_one_meaning_per_pc(placed: pd.DataFrame) -> None:
    meanings = placed.drop_duplicates()
    twice = meanings[meanings["pc"].duplicated(keep=False)]
    assert twice.empty, f"one instruction, several meanings:\n{twice}"


def check_enclosure(run: ProfiledRun, *, merged_code: bool = False, without: Collection[str] = ()) -> dict[str, int]:
    """Assert that regions and the instructions they are named after lie where each other say.

    Every load, store, atomic, copy, wait and matrix instruction that a warp executes between its first and last stamp
    is inside a span of its kind and of its source line, and every such span holds one. Lines are not compared where
    LLVM may have `merged_code` of several lines. Kinds `without` are left out.

    Returns:
        The number of instructions per kind.
    """
    log, module = run.launch.result.log, run.launch.kernel.module
    texts = [text for text, *_ in module.instructions]
    lines = np.array([line for *_, line in module.instructions])
    kinds = np.full(len(texts), "", dtype=object)
    for kind, pattern in INSTRUCTIONS.items():
        kinds[[index for index, text in enumerate(texts) if pattern.search(text)]] = kind
    source = run.compiled.asm["ptx"].splitlines()
    # Records that go to global memory are no stores of the kernel's.
    kinds[["// kperf" in source[line - 1] for line in module.ptx_lines]] = ""
    events = pd.DataFrame({name: log[name] for name in ("cta", "warp", "pc", "issue")})
    events = events.assign(kind=kinds[events["pc"]], line=lines[events["pc"]])
    events = events[events["kind"] != ""]

    checked = dict.fromkeys(INSTRUCTIONS, 0)
    spans = run.timeline.spans
    assert spans["complete"].all()
    for (cta, warp), of_warp in spans.groupby(["cta", "warp"], sort=False):
        mine = events[(events["cta"] == cta) & (events["warp"] == warp)]
        mine = mine[mine["issue"].between(of_warp["start_cycles"].min(), of_warp["end_cycles"].max())]
        for call in of_warp[of_warp["kind"] == "call"].itertuples():  # What is called is not instrumented.
            mine = mine[~mine["issue"].between(call.start_cycles, call.end_cycles)]
        for kind in INSTRUCTIONS.keys() - set(without):
            issued, around = mine[mine["kind"] == kind], of_warp[of_warp["kind"] == kind]
            what = f"cta {cta} warp {warp}: {kind}"
            span = _assert_enclosed(issued, around, what)
            if not merged_code:
                _assert_same_lines(issued, around["line"].to_numpy()[span], what)
            checked[kind] += len(issued)
    return checked


def _assert_enclosed(issued: pd.DataFrame, around: pd.DataFrame, what: str) -> np.ndarray:
    """Return the row of the span around each instruction."""
    starts, ends = around["start_cycles"].to_numpy(), around["end_cycles"].to_numpy()
    span = np.searchsorted(starts, issued["issue"].to_numpy(), side="right") - 1
    inside = (span >= 0) & (issued["issue"].to_numpy() < np.append(ends, -1)[span])
    assert inside.all(), f"{what}: outside every span: {issued[~inside].drop_duplicates('pc').to_dict('records')}"
    empty = np.setdiff1d(np.arange(len(around)), span)
    assert not len(empty), f"{what}: spans without an instruction: {around.iloc[empty]['name'].unique().tolist()}"
    return span


def _assert_same_lines(issued: pd.DataFrame, expected: np.ndarray, what: str) -> None:
    named = issued["line"].to_numpy()
    wrong = (named != expected) & (named > 0)
    assert not wrong.any(), f"{what}: source lines differ: {issued[wrong].drop_duplicates('pc').to_dict('records')}"


def spans_of(run: Run, *words: str, cta: int = 0) -> list[tuple[int, int]]:
    """Issue and completion of every instruction of a CTA whose text has all the words, as the device logged them."""
    log = run.launch.result.log
    texts = [text for text, *_ in run.launch.kernel.module.instructions]
    matches = np.array([all(word in text for word in words) for text in texts])
    mine = matches[log["pc"]] & (log["cta"] == cta)
    return sorted(zip(log["issue"][mine].tolist(), log["complete"][mine].tolist(), strict=True))
