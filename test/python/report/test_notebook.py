"""What a notebook shows of a timeline: all regions, all notes, nothing that is not escaped."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import kperfir
from support.synthetic import CaptureShape, matmul_plan, write_capture, write_matmul_capture


class _Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_regions_and_notes_are_shown(capture: Path) -> None:
    timeline = kperfir.load(capture)
    shown = _Reader(timeline._repr_html_())
    for name in timeline.summary()["name"]:
        assert name in shown.text
    for note in timeline.notes:
        assert note in shown.text
    assert shown.tags.count("tr") == 1 + len(timeline.summary())


def test_names_are_text(tmp_path: Path) -> None:
    plan = matmul_plan(CaptureShape())
    plan.kernel = plan.regions[0]["name"] = "<script>x</script>"
    write_capture(tmp_path / "x.kpf", plan, CaptureShape())
    shown = _Reader(kperfir.load(tmp_path / "x.kpf")._repr_html_())
    assert "script" not in shown.tags
    assert shown.text.count("<script>x</script>") == 2


def test_timeline_without_a_launch_is_shown(tmp_path: Path) -> None:
    write_matmul_capture(tmp_path / "x.kpf", CaptureShape(launches=0))
    assert "<table>" not in kperfir.load(tmp_path / "x.kpf")._repr_html_()


def test_page_is_written_from_python(capture: Path, tmp_path: Path) -> None:
    kperfir.load(capture).to_html(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text().startswith("<!DOCTYPE html>")
