"""The layout JSON: what is accepted, what is refused and how the error says so."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from kperfir._native import record

from kperfir.capture.layout import Event
from kperfir.capture.layout_json import layout_hash, parse_layout, seal_layout
from kperfir.errors import CaptureError
from support.synthetic import CaptureShape, matmul_plan

if TYPE_CHECKING:
    from kperfir.capture.layout import BufferLayout

Change = "Callable[[dict[str, Any]], object]"


def layout() -> BufferLayout:
    return matmul_plan(CaptureShape(specialised=True)).layout(strategy="ring", words_per_warp=64)


def test_parse_returns_what_the_text_says() -> None:
    parsed = layout()
    fields = json.loads(parsed.text)
    assert parsed.kernel == "matmul_kernel"
    assert parsed.ring
    assert parsed.cta_bytes == record.cta_bytes(5, 64) == 64 + 5 * 68 * 4
    assert [role.name for role in parsed.roles] == ["default", "partition0"]
    assert parsed.role_of_warp() == [0, 0, 0, 0, 1]
    assert len(parsed.frames) == len(fields["frames"])
    assert parsed.frames[0].stamps[0] == (Event("start", 0),)
    assert parsed.frames[1].words == len(fields["frames"][1]["stamps"]) + 1


def test_parse_accepts_warps_without_a_role_and_roles_out_of_order() -> None:
    fields = json.loads(layout().text)
    fields["roles"] = [{"name": "b", "first_warp": 3, "warps": 2}, {"name": "a", "first_warp": 0, "warps": 2}]
    parsed = parse_layout(seal_layout(fields))
    assert [parsed.role_names[role] for role in parsed.role_of_warp()] == ["a", "a", "idle", "b", "b"]


def test_parse_accepts_the_end_of_an_iteration_that_is_not_always_recorded() -> None:
    fields = json.loads(layout().text)
    fields["regions"][2].update(first=1, last=9, step=4)
    fields["frames"][1]["stamps"][0][0] = ["end", 2]
    region = parse_layout(seal_layout(fields)).regions[2]
    assert (region.first, region.last, region.step) == (1, 9, 4)
    assert not region.is_every


def test_hash_is_that_of_the_text_with_hash_zero() -> None:
    parsed = layout()
    zeroed = parsed.text.replace(f'"hash":{parsed.hash}', '"hash":0')
    assert zeroed != parsed.text
    assert parsed.hash == record.fnv1a(zeroed.encode()) == layout_hash(parsed.text)


def test_hash_ignores_text_that_looks_like_the_field() -> None:
    """A file name may hold anything; in JSON its quotes are escaped."""
    fields = json.loads(layout().text)
    fields["regions"][0]["file"] = '/a "hash":123, ü\n.py'
    fields["kernel"] = '"hash":5'
    parsed = parse_layout(seal_layout(fields))
    assert parsed.regions[0].file == '/a "hash":123, ü\n.py'
    escaped = json.dumps({**fields, "hash": 0}, sort_keys=True, separators=(",", ":"))
    assert layout_hash(escaped) != parsed.hash  # The hash is of bytes, whoever wrote them.


def test_parse_refuses_a_text_that_was_edited() -> None:
    text = layout().text.replace('"line":21', '"line":22')
    with pytest.raises(CaptureError, match="changed after it was compiled") as caught:
        parse_layout(text)
    assert caught.value.code == "layout-hash"


def test_parse_names_the_version_when_it_differs() -> None:
    with pytest.raises(CaptureError, match="version 99") as caught:
        parse_layout('{"version":99}')
    assert caught.value.code == "layout-version"


DEEP = pytest.param("[" * 100_000, id="deep")


@pytest.mark.parametrize("text", ["", "[]", "{", "nul", '"x"', DEEP, "{}", '{"version":true}', '{"version":1}'])
def test_parse_refuses_what_is_no_layout(text: str) -> None:
    with pytest.raises(CaptureError) as caught:
        parse_layout(text)
    assert caught.value.code == "bad-layout"


CHANGES: dict[str, tuple[Change, str]] = {
    "kernel absent": (lambda f: f.pop("kernel"), "kernel"),
    "strategy unknown": (lambda f: f.update(strategy="lossy"), "strategy"),
    "halves": (lambda f: f.update(strategy="flush", words_per_warp=96), "words_per_warp"),
    "halves too small": (lambda f: f.update(strategy="flush", words_per_warp=4), "words_per_warp"),
    "no warps": (lambda f: f.update(total_warps=0), "total_warps"),
    "float": (lambda f: f.update(words_per_warp=64.0), "words_per_warp"),
    "words huge": (lambda f: f.update(words_per_warp=1 << 40), "words_per_warp"),
    "words too few": (lambda f: f.update(words_per_warp=f["max_frame_words"] - 1), "words_per_warp"),
    "cta_bytes": (lambda f: f.update(cta_bytes=f["cta_bytes"] + 4), "cta_bytes"),
    "roles overlap": (lambda f: f["roles"][1].update(first_warp=3), "roles[1]"),
    "role outside": (lambda f: f["roles"][1].update(warps=2), "roles[1]"),
    "role no object": (lambda f: f["roles"].append(3), "roles[2]"),
    "region ids": (lambda f: f["regions"][2].update(id=7), "regions[2]"),
    "region parent after": (lambda f: f["regions"][1].update(parent=1), "regions[1]"),
    "region kind": (lambda f: f["regions"][1].update(kind="sleep"), "regions[1]"),
    "region file": (lambda f: f["regions"][1].update(file=None), "regions[1]"),
    "iteration not in loop": (lambda f: f["regions"][2].update(parent=0), "regions[2]"),
    "frame ids": (lambda f: f["frames"][1].update(id=0), "frames[1]"),
    "frame empty": (lambda f: f["frames"][1].update(stamps=[]), "frames[1]"),
    "frame too large": (lambda f: f.update(max_frame_words=2), "frames"),
    "frame alignment": (lambda f: f.update(frame_align=8), "frame_align"),
    "tag in a ring": (lambda f: f.update(tag="first"), "tag"),
    "tag place": (lambda f: f.update(tag="middle"), "layout"),
    "stamp empty": (lambda f: f["frames"][1]["stamps"].__setitem__(0, []), "frames[1], slot 0"),
    "stamp no list": (lambda f: f["frames"][1]["stamps"].__setitem__(0, 4), "frames[1], slot 0"),
    "event region": (lambda f: f["frames"][1]["stamps"][0].__setitem__(0, ["start", 99]), "frames[1]"),
    "event negative": (lambda f: f["frames"][1]["stamps"][0].__setitem__(0, ["start", -1]), "frames[1]"),
    "event edge": (lambda f: f["frames"][1]["stamps"][0].__setitem__(0, ["stop", 0]), "frames[1], slot 0"),
    "event bool": (lambda f: f["frames"][1]["stamps"][0].__setitem__(0, ["start", True]), "frames[1], slot 0"),
    "selection of a loop": (lambda f: f["regions"][1].update(step=2), "regions[1]"),
    "selection without step": (lambda f: f["regions"][2].update(step=0), "regions[2]"),
    "iteration end": (lambda f: f["frames"][1]["stamps"][0].__setitem__(0, ["end", 2]), "frames[1]"),
    "value of a loop": (lambda f: f["regions"][1].update(value="i32"), "regions[1]"),
    "value type": (lambda f: f["regions"][1].update(value="i16"), "regions[1]"),
    "mark of a loop": (lambda f: f["frames"][1]["stamps"][0].__setitem__(0, ["mark", 1]), "frames[1]"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_parse_names_the_field_that_is_wrong(name: str) -> None:
    change, where = CHANGES[name]
    fields = json.loads(layout().text)
    change(fields)
    with pytest.raises(CaptureError) as caught:
        parse_layout(seal_layout(fields))
    error = caught.value
    assert error.code == "bad-layout"
    assert where in error.where
    assert error.found
    assert error.expected
    assert error.fix


def test_parse_replaces_what_is_no_unicode() -> None:
    """JSON can spell half of a surrogate pair; no table nor export can hold it."""
    plain = matmul_plan(CaptureShape()).layout(strategy="saturate", words_per_warp=512).text
    text = plain.replace("/src/kernel.py", r"/src/\udcff.py")
    text = re.sub(r'"hash":\d+', f'"hash":{layout_hash(text)}', text, count=1)
    assert {region.file for region in parse_layout(text).regions} == {"/src/?.py"}
