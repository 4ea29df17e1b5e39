"""Read the layout of a profile buffer, and check it.

    layout = parse_layout(text)

The JSON is written by the ``kperf-plan-buffer`` pass (docs/contracts.md, section 3). This module knows its fields and
the rules between them.
"""

from __future__ import annotations

import json
import re
from typing import Any

from kperfir._native import record

from kperfir.capture.layout import EDGES, VALUE_WORDS, BufferLayout, Event, Flow, Frame, Region, Role
from kperfir.config import KINDS
from kperfir.errors import CaptureError

# 8 has laps, 7 may have tags first, 6 has gaps, 5 sums executions up, 4 pads frames, 3 says which iterations of a loop
# are recorded where not each is, 2 gave values to marks; all else is as in 1.
LAYOUT_VERSION = 8
OLDEST_LAYOUT_VERSION = 1
BUFFERS = ("shared", "global")
STRATEGIES = ("saturate", "ring", "flush", "aggregate")
TAGS = ("first", "last")
FLOWS = ("commit_group", "mbarrier")
GAP_KINDS = ("compute", "between")
MAX_WARPS = 64
MAX_WORDS_PER_WARP = 1 << 26
MAX_FRAMES = 1 << 20
MAX_FRAME_ALIGN = 4
MAX_EVENTS_PER_STAMP = 1024
MAX_DEPTH = 1024

_HASH_FIELD = re.compile(r'(?<!\\)"hash":\s*(\d+)')
_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619


def layout_hash(text: str) -> int:
    """FNV-1a (32 bits) of the layout's JSON text with its hash set to 0, in UTF-8."""
    value = _FNV_OFFSET
    for byte in _HASH_FIELD.sub('"hash":0', text, count=1).encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


def seal_layout(fields: dict[str, Any]) -> str:
    """The JSON text of a layout, compact, keys sorted, with its hash filled in."""
    text = json.dumps({**fields, "hash": 0}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return _HASH_FIELD.sub(f'"hash":{layout_hash(text)}', text, count=1)


def parse_layout(text: str) -> BufferLayout:
    """Parse and check the JSON text of a layout.

    Raises:
        CaptureError: ``bad-layout``, ``layout-version`` or ``layout-hash``.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad("the text", found=str(error), expected="JSON") from None
    if not isinstance(fields, dict):
        raise _bad("the text", found=type(fields).__name__, expected="a JSON object")
    version = _integer(fields, "version", 0, 0xFFFFFFFF, "layout")
    if not OLDEST_LAYOUT_VERSION <= version <= LAYOUT_VERSION:
        raise CaptureError(
            "layout-version",
            found=f"version {version}",
            expected=f"version {OLDEST_LAYOUT_VERSION} to {LAYOUT_VERSION}",
            fix="use the kperfir version that compiled the kernel, or clear Triton's cache",
        )
    layout = _read(fields, text)
    _check_hash(layout)
    _check_roles(layout)
    _check_regions(layout)
    _check_frames(layout)
    _check_flows(layout)
    _check_sizes(layout)
    return layout


def _read(fields: dict[str, Any], text: str) -> BufferLayout:
    regions = tuple(_region(at, region) for at, region in _objects(fields, "regions"))
    align = _integer(fields, "frame_align", 1, MAX_FRAME_ALIGN, "layout") if "frame_align" in fields else 1
    return BufferLayout(
        text=text,
        version=fields["version"],
        hash=_integer(fields, "hash", 0, 0xFFFFFFFF, "layout"),
        kernel=_text(fields, "kernel", "layout"),
        target=_text(fields, "target", "layout"),
        warp_size=_integer(fields, "warp_size", 1, 128, "layout"),
        strategy=_choice(fields, "strategy", STRATEGIES, "layout"),
        buffer=_choice(fields, "buffer", BUFFERS, "layout"),
        total_warps=_integer(fields, "total_warps", 1, MAX_WARPS, "layout"),
        roles=tuple(
            Role(
                _text(r, "name", at),
                _integer(r, "first_warp", 0, MAX_WARPS, at),
                _integer(r, "warps", 1, MAX_WARPS, at),
            )
            for at, r in _objects(fields, "roles")
        ),
        words_per_warp=_integer(fields, "words_per_warp", 1, MAX_WORDS_PER_WARP, "layout"),
        max_frame_words=_integer(fields, "max_frame_words", 1, MAX_WORDS_PER_WARP, "layout"),
        cta_bytes=_integer(fields, "cta_bytes", 1, 1 << 40, "layout"),
        regions=regions,
        frames=tuple(_frame(at, frame, regions, align) for at, frame in _objects(fields, "frames")),
        notes=_notes(fields),
        flows=tuple(_flow(at, flow) for at, flow in _objects(fields, "flows")) if "flows" in fields else (),
        frame_align=align,
        batch=_integer(fields, "batch", 1, MAX_FRAME_ALIGN, "layout")
        if "batch" in fields
        else _old_batch(fields, align),
        tag_first="tag" in fields and _choice(fields, "tag", TAGS, "layout") == "first",
    )


def _old_batch(fields: dict[str, Any], align: int) -> int:
    """Layouts that do not say how many words are stored at once have padded frames for nothing else."""
    return 1 if "tag" in fields else align


def _notes(fields: dict[str, Any]) -> tuple[str, ...]:
    """Absent where there is nothing to say, and from compilers that said nothing."""
    notes = _list(fields, "notes", "layout") if "notes" in fields else []
    for note in notes:
        if not isinstance(note, str):
            raise _bad("notes", found=_short(note), expected="strings")
    return tuple(notes)


def _flow(at: str, fields: dict[str, Any]) -> Flow:
    return Flow(
        id=_integer(fields, "id", 0, MAX_FRAMES, at),
        via=_choice(fields, "via", FLOWS, at),
        slots=_integer(fields, "slots", 1, 0x7FFFFFFF, at),
        scope=_integer(fields, "scope", -1, MAX_FRAMES, at),
        issue=_pairs(fields, "issue", at),
        wait=_pairs(fields, "wait", at),
    )


def _pairs(fields: dict[str, Any], key: str, at: str) -> tuple[tuple[int, int], ...]:
    pairs = _list(fields, key, at)
    for pair in pairs:
        if not (isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and n >= 0 for n in pair)):
            raise _bad(f"{at}, {key}", found=_short(pair), expected="[region id, count]")
    return tuple((region, count) for region, count in pairs)


def _region(at: str, fields: dict[str, Any]) -> Region:
    return Region(
        id=_integer(fields, "id", 0, MAX_FRAMES, at),
        parent=_integer(fields, "parent", -1, MAX_FRAMES, at),
        kind=_choice(fields, "kind", KINDS, at),
        name=_text(fields, "name", at),
        op=_text(fields, "op", at),
        file=_text(fields, "file", at),
        line=_integer(fields, "line", 0, 0x7FFFFFFF, at),
        column=_integer(fields, "column", 0, 0x7FFFFFFF, at),
        value=_choice(fields, "value", tuple(VALUE_WORDS), at) if "value" in fields else "",
        first=_integer(fields, "first", 0, 0x7FFFFFFF, at) if "first" in fields else 0,
        last=_integer(fields, "last", 0, 0x7FFFFFFF, at) if "last" in fields else 0,
        step=_integer(fields, "step", 1, 0x7FFFFFFF, at) if "step" in fields else 1,
    )


def _frame(at: str, fields: dict[str, Any], regions: tuple[Region, ...], align: int) -> Frame:
    stamps = _list(fields, "stamps", at)
    for slot, stamp in enumerate(stamps):
        if not isinstance(stamp, list) or not 1 <= len(stamp) <= MAX_EVENTS_PER_STAMP:
            raise _bad(f"{at}, slot {slot}", found=_short(stamp), expected=f"1 to {MAX_EVENTS_PER_STAMP} events")
        for event in stamp:
            well_formed = isinstance(event, list) and len(event) == 2 and event[0] in EDGES and type(event[1]) is int
            if not well_formed:
                raise _bad(f"{at}, slot {slot}", found=_short(event), expected="[edge, region id]")
    value_words = sum(
        regions[region].value_words for stamp in stamps for _, region in stamp if 0 <= region < len(regions)
    )
    return Frame(
        id=_integer(fields, "id", 0, MAX_FRAMES, at),
        stamps=tuple(tuple(Event(edge, region) for edge, region in stamp) for stamp in stamps),
        value_words=value_words,
        align=align,
    )


def _check_hash(layout: BufferLayout) -> None:
    actual = layout_hash(layout.text)
    if actual != layout.hash:
        raise CaptureError(
            "layout-hash",
            where=f"kernel {layout.kernel}",
            found=f"{actual:#010x}, computed from the text",
            expected=f"{layout.hash:#010x}, as the text says",
            fix="recompile the kernel; do not edit the layout",
        )


def _check_roles(layout: BufferLayout) -> None:
    taken: set[int] = set()
    for index, role in enumerate(layout.roles):
        warps = set(range(role.first_warp, role.first_warp + role.warps))
        if taken & warps:
            raise _bad(f"roles[{index}]", found=f"warp {min(taken & warps)}", expected="warps of no other role")
        if max(warps) >= layout.total_warps:
            raise _bad(f"roles[{index}]", found=f"warp {max(warps)}", expected=f"less than {layout.total_warps}")
        taken |= warps


def _check_regions(layout: BufferLayout) -> None:
    depth: list[int] = []
    for index, region in enumerate(layout.regions):
        at = f"regions[{index}]"
        if region.id != index:
            raise _bad(at, found=f"id {region.id}", expected=f"id {index}: ids are dense")
        if region.parent >= index:
            raise _bad(at, found=f"parent {region.parent}", expected="a region before it, or -1")
        parent = layout.regions[region.parent] if region.parent >= 0 else None
        if region.kind == "iteration" and (parent is None or parent.kind != "loop"):
            raise _bad(at, found=f"parent {region.parent}", expected="an iteration's parent is a loop")
        if parent is not None and parent.kind == "mark":
            raise _bad(at, found=f"parent {region.parent}, a mark", expected="marks have no children")
        if not region.is_every and region.kind != "iteration":
            raise _bad(at, found=f"a selection of a {region.kind}", expected="iterations are selected")
        if region.value and region.kind != "mark":
            raise _bad(at, found=f"a value of a {region.kind}", expected="values are carried by marks")
        depth.append(0 if parent is None else depth[region.parent] + 1)
        if depth[-1] > MAX_DEPTH:
            raise _bad(at, found=f"nesting {depth[-1]} deep", expected=f"at most {MAX_DEPTH}")


def _check_frames(layout: BufferLayout) -> None:
    for index, frame in enumerate(layout.frames):
        at = f"frames[{index}]"
        if frame.id != index:
            raise _bad(at, found=f"id {frame.id}", expected=f"id {index}: ids are dense")
        if not frame.stamps:
            raise _bad(at, found="no stamps", expected="at least one")
        if frame.words > layout.max_frame_words:
            raise _bad(at, found=f"{frame.words} words", expected=f"max_frame_words, {layout.max_frame_words}, at most")
        for event in (event for stamp in frame.stamps for event in stamp):
            if not 0 <= event.region < len(layout.regions):
                raise _bad(at, found=f"region {event.region}", expected=f"one of {len(layout.regions)} regions")
            region = layout.regions[event.region]
            kind = region.kind
            unending = kind == "iteration" and region.is_every
            misplaced_gap = event.edge == "gap" and kind not in GAP_KINDS
            if (event.edge == "mark") != (kind == "mark") or (event.edge == "end" and unending) or misplaced_gap:
                raise _bad(at, found=f"edge {event.edge} of a region of kind {kind}", expected="an edge of that kind")


def _check_flows(layout: BufferLayout) -> None:
    for index, flow in enumerate(layout.flows):
        regions = [flow.scope, *(region for region, _ in (*flow.issue, *flow.wait))]
        if flow.id != index or max(regions) >= len(layout.regions):
            raise _bad(
                f"flows[{index}]",
                found=f"id {flow.id}, region {max(regions)}",
                expected=f"id {index}, one of {len(layout.regions)} regions",
            )


def _check_sizes(layout: BufferLayout) -> None:
    if layout.tag_first and layout.strategy != "saturate":
        raise _bad("tag", found=f"first, with strategy {layout.strategy}", expected="last")
    sums_words = record.SUMS_WORDS * len(layout.regions)
    if layout.aggregate and layout.words_per_warp != sums_words:
        raise _bad("words_per_warp", found=str(layout.words_per_warp), expected=f"{sums_words}, for all regions")
    if layout.strategy == "flush":
        _check_halves(layout)
    if layout.words_per_warp < layout.max_frame_words:
        raise _bad("words_per_warp", found=str(layout.words_per_warp), expected=f"{layout.max_frame_words} or more")
    expected = record.cta_bytes(layout.total_warps, layout.words_per_warp)
    if layout.cta_bytes != expected:
        raise _bad("cta_bytes", found=str(layout.cta_bytes), expected=str(expected))


def _check_halves(layout: BufferLayout) -> None:
    words = layout.words_per_warp
    if words.bit_count() != 1 or words // 2 < layout.max_frame_words + record.HALF_TRAILER_WORDS:
        least = layout.max_frame_words + record.HALF_TRAILER_WORDS
        raise _bad("words_per_warp", found=str(words), expected=f"a power of two, with {least} or more in each half")


def _objects(fields: dict[str, Any], key: str) -> list[tuple[str, dict[str, Any]]]:
    items = _list(fields, key, "layout")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise _bad(f"{key}[{index}]", found=_short(item), expected="an object")
    return [(f"{key}[{index}]", item) for index, item in enumerate(items)]


def _list(fields: dict[str, Any], key: str, at: str) -> list[Any]:
    value = fields.get(key)
    if not isinstance(value, list) or len(value) > MAX_FRAMES:
        raise _bad(f"{at}, {key}", found=_short(value), expected=f"a list of at most {MAX_FRAMES}")
    return value


def _integer(fields: dict[str, Any], key: str, low: int, high: int, at: str) -> int:
    value = fields.get(key)
    if type(value) is not int or not low <= value <= high:
        raise _bad(f"{at}, {key}", found=_short(value), expected=f"an integer from {low} to {high}")
    return value


def _text(fields: dict[str, Any], key: str, at: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise _bad(f"{at}, {key}", found=_short(value), expected="a string")
    # JSON can spell what is no Unicode, and no table nor export can hold it.
    return value.encode(errors="replace").decode()


def _choice(fields: dict[str, Any], key: str, choices: tuple[str, ...], at: str) -> str:
    value = _text(fields, key, at)
    if value not in choices:
        raise _bad(f"{at}, {key}", found=value, expected=f"one of {', '.join(choices)}")
    return value


def _short(value: object) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _bad(where: str, *, found: str, expected: str) -> CaptureError:
    return CaptureError(
        "bad-layout", where=where, found=found, expected=expected, fix="recompile the kernel with this kperfir"
    )
