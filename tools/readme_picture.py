"""Draw one CTA of a capture as an SVG: a row per warp, a colour per kind of work. Makes the pictures in docs/img.

    python tools/readme_picture.py demo.kpf --kernel matmul --out docs/img/matmul.svg

Needs nothing but kperfir. The picture states its source, and that time is simulated where it is.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from kperfir import load
from kperfir.analysis.regions import region_statistics
from kperfir.report.colours import COLOURS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from kperfir import Timeline

WIDTH = 960
MARGIN_LEFT = 74
MARGIN_RIGHT = 16
ROW = 30
GAP = 8
TOP = 62
AXIS = 44
LEGEND_COLUMNS = 4

STRUCTURE = ("kernel", "prologue", "loop", "epilogue", "iteration")
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 16px; font-weight: 600 } .small { font-size: 12px; fill: #57606a }
  .axis { stroke: #8c959f; stroke-width: 1 } .begin { stroke: #ffffff; stroke-width: 1 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .small { fill: #9da7b1 } }
"""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps cycles to x."""

    first: int
    last: int

    def x(self, cycles: float) -> float:
        """Horizontal position of a time."""
        room = WIDTH - MARGIN_LEFT - MARGIN_RIGHT
        return MARGIN_LEFT + room * (cycles - self.first) / max(self.last - self.first, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("capture", type=Path, help=".kpf file")
    parser.add_argument("--kernel", help="name of the kernel; default: the first")
    parser.add_argument(
        "--cta", type=int, default=0, help="linear id of the CTA (default 0), in the kernel's first launch"
    )
    parser.add_argument("--title", help="first line of the picture; default: the kernel's name")
    parser.add_argument("--out", type=Path, required=True, help="SVG file to write")
    options = parser.parse_args()
    timeline = load(options.capture)
    launches = timeline.launches
    kernel = options.kernel or str(launches["kernel"].iloc[0])
    of_kernel = launches[launches["kernel"] == kernel]
    if of_kernel.empty:
        parser.error(f"no launch of {kernel}; there are {', '.join(launches['kernel'].astype(str).unique())}")
    launch = of_kernel.iloc[0]
    spans = timeline.spans
    spans = spans[(spans["launch"] == launch["launch"]) & (spans["cta"] == options.cta)]
    if spans.empty:
        parser.error(f"CTA {options.cta} of {kernel} was not recorded")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(draw(timeline, launch, spans, options.title or kernel))


def draw(timeline: Timeline, launch: pd.Series, spans: pd.DataFrame, title: str) -> str:
    """The picture of one CTA, whose `spans` are given."""
    scale = Scale(int(spans["start_cycles"].min()), int(spans["end_cycles"].max()))
    warps = sorted(spans["warp"].unique())
    legend = _legend_entries(timeline, str(launch["kernel"]))
    bottom = TOP + len(warps) * (ROW + GAP)
    height = bottom + AXIS + 24 * -(-len(legend) // LEGEND_COLUMNS)
    grid = " x ".join(str(launch[f"grid_{axis}"]) for axis in "xyz")
    simulated = "simulated " if launch["simulated"] else ""
    place = f"CTA {spans['cta'].iloc[0]} of a {grid} grid, on SM {spans['sm'].iloc[0]}"
    where = f"{place} of a {simulated}{launch['chip'].upper()}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        "<!-- Made by tools/readme_picture.py from a capture. -->",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="{MARGIN_LEFT}" y="24">{escape(title)}</text>',
        f'<text class="small" x="{MARGIN_LEFT}" y="44">{escape(where)}; a row per warp</text>',
    ]
    for row, warp in enumerate(warps):
        y = TOP + row * (ROW + GAP)
        lines.append(f'<text x="{MARGIN_LEFT - 10}" y="{y + ROW / 2 + 5}" text-anchor="end">warp {warp}</text>')
        lines += _rectangles(spans[spans["warp"] == warp], scale, y)
    lines += _axis(scale, bottom)
    lines += _legend(legend, bottom + AXIS)
    return "\n".join([*lines, "</svg>", ""])


def _rectangles(spans: pd.DataFrame, scale: Scale, y: int) -> Iterator[str]:
    """The spans of one warp. Deeper ones are drawn later, hence on top."""
    for span in spans.sort_values("depth", kind="stable").itertuples(index=False):
        left, width = scale.x(span.start_cycles), scale.x(span.end_cycles) - scale.x(span.start_cycles)
        tip = escape(f"{span.name}: {span.duration_cycles:,} cycles")
        yield (
            f'<rect x="{left:.1f}" y="{y}" width="{max(width, 0.4):.1f}" height="{ROW}" fill="{COLOURS[span.kind]}">'
            f"<title>{tip}</title></rect>"
        )
    for start in spans.loc[spans["kind"] == "iteration", "start_cycles"]:
        x = scale.x(start)
        yield f'<path class="begin" d="M{x:.1f} {y}v{ROW}"/>'


def _axis(scale: Scale, y: int) -> Iterator[str]:
    yield f'<path class="axis" d="M{MARGIN_LEFT} {y}H{WIDTH - MARGIN_RIGHT}"/>'
    step = _round_step((scale.last - scale.first) / 8)
    for cycles in range(0, scale.last - scale.first + 1, step):
        x = scale.x(scale.first + cycles)
        yield f'<path class="axis" d="M{x:.1f} {y}v5"/>'
        unit = " cycles" if cycles == 0 else ""
        yield f'<text class="small" x="{x:.1f}" y="{y + 19}" text-anchor="middle">{cycles:,}{unit}</text>'


def _round_step(rough: float) -> int:
    magnitude = 1
    while magnitude * 10 <= rough:
        magnitude *= 10
    return next((magnitude * factor for factor in (1, 2, 5) if magnitude * factor >= rough), magnitude * 10)


def _legend_entries(timeline: Timeline, kernel: str) -> list[tuple[str, str]]:
    """Colour and text per kind, by share of the CTAs' time, over the whole capture of the kernel."""
    statistics = region_statistics(timeline.spans, timeline.kernel_cycles, "kind")
    kinds = statistics[statistics["kernel"] == kernel].sort_values("self_share", ascending=False)
    entries = [
        (COLOURS[kind], f"{kind}  {100 * share:.0f} %")
        for kind, share in zip(kinds["kind"], kinds["self_share"], strict=True)
        if kind not in STRUCTURE and share >= 0.005
    ]
    other = 1 - kinds.loc[~kinds["kind"].isin(STRUCTURE), "self_share"].sum()
    return [*entries, (COLOURS["iteration"], f"anything else  {100 * other:.0f} %")]


def _legend(entries: list[tuple[str, str]], y: int) -> Iterator[str]:
    pitch = (WIDTH - MARGIN_LEFT - MARGIN_RIGHT) / LEGEND_COLUMNS
    for number, (colour, text) in enumerate(entries):
        x = MARGIN_LEFT + pitch * (number % LEGEND_COLUMNS)
        top = y + 24 * (number // LEGEND_COLUMNS)
        yield f'<rect x="{x:.1f}" y="{top - 11}" width="14" height="14" rx="2" fill="{colour}"/>'
        yield f'<text x="{x + 21:.1f}" y="{top + 1}">{escape(text)}</text>'


if __name__ == "__main__":
    main()
