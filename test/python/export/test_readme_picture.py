"""The picture of the README is well-formed and holds what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from kperfir import load
from kperfir.config import KINDS
from kperfir.report.colours import COLOURS
from support.synthetic import CaptureShape, write_matmul_capture

TOOL = Path(__file__).parents[3] / "tools" / "readme_picture.py"
SVG = "{http://www.w3.org/2000/svg}"


def test_picture_has_a_rectangle_per_span_and_a_row_per_warp(tmp_path: Path) -> None:
    capture, picture = tmp_path / "x.kpf", tmp_path / "x.svg"
    write_matmul_capture(capture, CaptureShape(specialised=True))
    subprocess.run([sys.executable, "-P", TOOL, capture, "--cta", "2", "--out", picture], check=True)
    root = ElementTree.parse(picture).getroot()
    spans = load(capture).spans
    tips = [title.text for title in root.iter(f"{SVG}title")]
    assert len(tips) == (spans["cta"] == 2).sum()
    texts = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert [text for text in texts if text.startswith("warp ")] == [f"warp {warp}" for warp in range(5)]
    assert any("simulated A100" in text for text in texts)


def test_unknown_kernel_is_refused_with_the_names(tmp_path: Path) -> None:
    capture = tmp_path / "x.kpf"
    write_matmul_capture(capture, CaptureShape())
    command = [sys.executable, "-P", TOOL, capture, "--kernel", "softmax", "--out", tmp_path / "x.svg"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "matmul_kernel" in done.stderr


def test_every_kind_has_a_colour() -> None:
    assert set(COLOURS) == set(KINDS)
