"""What a run of a bundle on a GPU says: the questions of docs/gpu-findings.md, answered from its results.

    print(describe(answer(Path("kit"))))

The prediction is a run of the same bundle on the SIMT device; where there is none yet, it is made (KIT/predicted).
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import kperfir
from kperfir.bundle.__main__ import RESULTS, RESULTS_FILE, main
from kperfir.bundle.collect import collect
from kperfir.bundle.execute import FAILED, OK
from kperfir.bundle.manifest import INSTRUMENTED, PLAIN, PROTON
from kperfir.errors import KPerfError
from kperfir.runtime.chip import load_chip

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from kperfir.timeline import Timeline

PREDICTED = "predicted"
# A region is compared if it takes this share of its kernel, on the GPU or as predicted.
LEAST_SHARE = 0.01


@dataclass(slots=True)
class LaunchAnswer:
    """One launch. What cannot be said is None.

    Attributes:
        launch: Its number in the bundle.
        kernel: Name.
        statuses: Of each variant, by kind.
        bits_differ: Elements in which kperfir's variant differs from the plain one in a bit.
        slowdown: Median time of each instrumented variant over the plain one's, by kind.
        record_cycles: What a record costs: the time added, in cycles, over the records of a warp.
        megahertz: The SM clock as the anchors of the CTAs give it.
        ns_uncertainty: No time of an anchor is further from the fit than this, ns.
        decoded: Whether the buffer was where the decoder looks for it, aligned and whole; else why not.
        regions: How many were compared with their prediction.
        ratio: Measured over predicted mean cycles of an execution: 10th, 50th and 90th percentile over the regions.
        rank_correlation: Spearman's, of the regions' shares.
        furthest: The region whose ratio is furthest from the median.
    """

    launch: int
    kernel: str
    statuses: dict[str, str] = field(default_factory=dict)
    bits_differ: int | None = None
    slowdown: dict[str, float] = field(default_factory=dict)
    record_cycles: float | None = None
    megahertz: float | None = None
    ns_uncertainty: float | None = None
    decoded: str = ""
    regions: int = 0
    ratio: tuple[float, float, float] | None = None
    rank_correlation: float | None = None
    furthest: str = ""


@dataclass(frozen=True, slots=True)
class Answers:
    """What a run of a bundle says. `device` is as in results.json; `prediction` the chip that it is compared with."""

    device: dict[str, Any]
    launches: list[LaunchAnswer]
    prediction: str


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The results of a run. `timeline` is None if they cannot be read, for the reason `error`.

    `launches` is, by the launch's number in the bundle, which row of the timeline's launches it is.
    """

    found: dict[str, Any]
    timeline: Timeline | None
    launches: dict[int, int]
    error: str = ""

    @classmethod
    def read(cls, folder: Path, results: str) -> _Recorded:
        """Raises BundleError, ``no-results``, if there are none."""
        timeline, error = None, ""
        try:
            read = kperfir.load(collect(folder, results))
            len(read.spans)  # Decodes all of it.
            timeline = read
        except KPerfError as problem:
            if not (folder / results / RESULTS_FILE).exists():
                raise
            error = str(problem).splitlines()[0]
        found = json.loads((folder / results / RESULTS_FILE).read_text(encoding="utf-8"))
        recorded = [row["launch"] for row in found["rows"] if row["profile"]]
        return cls(found, timeline, {launch: place for place, launch in enumerate(recorded)}, error)


def answer(folder: Path) -> Answers:
    """Read what the last run of the bundle in `folder` left, predict the same, and compare.

    Raises:
        BundleError: ``no-results`` if it was not run.
    """
    measured = _Recorded.read(folder, RESULTS)
    chip = _chip_like(int(measured.found["device"]["arch"]))
    predicted = _predict(folder, chip) if chip else None
    answers: dict[int, LaunchAnswer] = {}
    for row in measured.found["rows"]:
        one = answers.setdefault(row["launch"], LaunchAnswer(row["launch"], row["kernel"]))
        one.statuses[row["kind"]] = row["status"]
        if row["kind"] != PLAIN and row["ratio"]:
            one.slowdown[row["kind"]] = row["ratio"]
        if row["kind"] == INSTRUMENTED:
            one.bits_differ = row["bits_differ"]
            if row["profile"]:
                one.decoded = measured.error or "yes"
    for one in answers.values():
        if measured.timeline is not None and one.launch in measured.launches:
            _read_capture(one, measured)
            if predicted is not None:
                _compare(one, measured, predicted)
    return Answers(measured.found["device"], list(answers.values()), chip if predicted is not None else "")


def _chip_like(arch: int) -> str:
    """Name of the chip of that major version that the SIMT device has a model of; empty if it has none."""
    try:
        return load_chip(f"sm_{arch // 10 * 10}").name
    except KPerfError:
        return ""


def _predict(folder: Path, chip: str) -> _Recorded | None:
    """The same bundle on the SIMT device, once."""
    if not (folder / PREDICTED / RESULTS_FILE).exists():
        before = os.environ.get("TRITON_KPERF_SIMT_CHIP")
        os.environ["TRITON_KPERF_SIMT_CHIP"] = chip
        try:
            said = io.StringIO()
            with redirect_stdout(io.StringIO()), redirect_stderr(said):
                main([str(folder), "--device", "simt", "--repeat", "1", "--results", PREDICTED, "--seconds", "600"])
        finally:
            os.environ.pop("TRITON_KPERF_SIMT_CHIP")
            if before is not None:
                os.environ["TRITON_KPERF_SIMT_CHIP"] = before
        if not (folder / PREDICTED / RESULTS_FILE).exists():
            print(said.getvalue(), file=sys.stderr, end="")
            return None
    return _Recorded.read(folder, PREDICTED)


def _read_capture(one: LaunchAnswer, measured: _Recorded) -> None:
    timeline = measured.timeline
    assert timeline is not None
    launch = timeline.launches.iloc[measured.launches[one.launch]]
    spans = timeline.spans[timeline.spans["launch"] == launch["launch"]]
    longest = spans.loc[spans["duration_cycles"].idxmax()]
    if longest["duration_ns"] > 0:
        one.megahertz = float(longest["duration_cycles"] / longest["duration_ns"] * 1e3)
    one.ns_uncertainty = float(launch["ns_uncertainty"])
    rows = [row for row in measured.found["rows"] if row["launch"] == one.launch and row["status"] == OK]
    times = {row["kind"]: row["median_us"] for row in rows}
    if one.megahertz and times.get(PLAIN) and times.get(INSTRUMENTED):
        tracks = timeline.tracks[timeline.tracks["launch"] == launch["launch"]]
        one.record_cycles = (times[INSTRUMENTED] - times[PLAIN]) * one.megahertz / float(tracks["records"].mean())


def _compare(one: LaunchAnswer, measured: _Recorded, predicted: _Recorded) -> None:
    """Mean cycles of an execution of each region, in both."""
    if predicted.timeline is None or one.launch not in predicted.launches:
        return
    table = _regions(measured, one.launch).add_suffix("_measured")
    table = table.join(_regions(predicted, one.launch).add_suffix("_predicted"), how="inner")
    table = table[
        (table[["share_measured", "share_predicted"]].max(axis=1) >= LEAST_SHARE) & (table["mean_predicted"] > 0)
    ]
    if table.empty:
        return
    ratio = table["mean_measured"] / table["mean_predicted"]
    low, middle, high = np.percentile(ratio, (10, 50, 90))
    one.regions, one.ratio = len(table), (float(low), float(middle), float(high))
    ranks = table[["share_measured", "share_predicted"]].rank()
    one.rank_correlation = float(ranks["share_measured"].corr(ranks["share_predicted"])) if len(table) > 2 else None
    away = np.abs(np.log(ratio.clip(lower=1e-9) / max(middle, 1e-9)))
    one.furthest = f"{away.idxmax()} ({ratio[away.idxmax()]:.2f})"


def _regions(side: _Recorded, number: int) -> pd.DataFrame:
    timeline = side.timeline
    assert timeline is not None
    launch = timeline.launches["launch"].iloc[side.launches[number]]
    spans = timeline.spans[(timeline.spans["launch"] == launch) & timeline.spans["complete"]]
    found = spans.groupby(spans["name"].astype(str))["duration_cycles"].agg(["mean", "sum"])
    return found.assign(share=found["sum"] / max(1, found["sum"].max()))


def describe(answers: Answers) -> str:
    """Markdown, to be kept in docs/gpu-findings.md."""
    device = answers.device
    simulated = " (simulated time)" if device["simulated"] else ""
    lines = [f"## {device['name']}, sm_{device['arch']}{simulated}", ""]
    unequal = [one for one in answers.launches if any(status != OK for status in one.statuses.values())]
    hung = [one.kernel for one in answers.launches if FAILED in one.statuses.values()]
    bits = sum(one.bits_differ or 0 for one in answers.launches)
    lines += [
        f"* Results: {len(answers.launches) - len(unequal)} of {len(answers.launches)} launches are as expected in all "
        f"variants; {bits:,} elements differ in a bit between kperfir's variant and the plain one.",
        f"* Ends: {'all variants ended' if not hung else 'failed: ' + ', '.join(hung)}.",
        "* Predictions are those of the timing model of "
        + (answers.prediction or "no chip: none for this architecture")
        + ".",
        "",
        "| launch | kernel | status | buffer decoded | slowdown: kperfir / Proton | cycles per record | MHz | ns ± | "
        "regions | measured / predicted: p10, p50, p90 | rank correlation | furthest |",
        "| ---: | --- | --- | --- | --- | ---: | ---: | ---: | ---: | --- | ---: | --- |",
    ]
    lines += ["| " + " | ".join(_cells(one)) + " |" for one in answers.launches]
    return "\n".join(lines) + "\n"


def _cells(one: LaunchAnswer) -> tuple[str, ...]:
    statuses = sorted(set(one.statuses.values()))
    slowdown = " / ".join(_number(one.slowdown.get(kind), ".3f") for kind in (INSTRUMENTED, PROTON))
    ratio = ", ".join(format(value, ".2f") for value in one.ratio) if one.ratio else ""
    return (
        str(one.launch), one.kernel, ", ".join(statuses), one.decoded, slowdown, _number(one.record_cycles, ".1f"),
        _number(one.megahertz, ",.0f"), _number(one.ns_uncertainty, ".1f"), str(one.regions), ratio,
        _number(one.rank_correlation, ".2f"), one.furthest,
    )  # fmt: skip


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
