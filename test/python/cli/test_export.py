"""`kperfir export`: formats, streams, and that the files hold the capture."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from kperfir import load
from support.trace_processor import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Answer


@pytest.mark.parametrize("suffix", ["pftrace", "json", "csv", "parquet"])
def test_suffix_names_the_format(kperfir: Callable[..., Answer], whole: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"t.{suffix}"
    answer = kperfir("export", whole, "-o", out)
    assert answer.code == 0
    assert answer.out == ""
    assert "note: simulated: " in answer.err
    spans = len(load(whole).spans)
    assert f"{spans} spans" in answer.err
    if suffix in ("csv", "parquet"):
        assert len(pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)) == spans
    else:
        with open_trace(out) as trace:
            assert trace.problems() == []
            counted = trace.sql("select count(*) n from slice where category is not null and category != 'cta'")
            assert counted["n"][0] == spans


def test_format_option_wins_over_suffix(kperfir: Callable[..., Answer], whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "spans.txt"
    assert kperfir("export", whole, "-o", out, "--format", "csv").code == 0
    assert len(pd.read_csv(out)) == len(load(whole).spans)


def test_csv_to_stdout(whole: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from kperfir.cli.main import main

    assert main(["export", str(whole), "--format", "csv"]) == 0
    assert len(pd.read_csv(io.BytesIO(capsysbinary.readouterr().out))) == len(load(whole).spans)


def test_unknown_suffix_is_refused_before_reading(kperfir: Callable[..., Answer], tmp_path: Path) -> None:
    answer = kperfir("export", tmp_path / "absent.kpf", "-o", tmp_path / "t.xyz")
    assert answer.code == 1
    assert "unknown-format" in answer.err


def test_dropped_records_are_exported_and_exit_code_3(
    kperfir: Callable[..., Answer], lossy: Path, tmp_path: Path
) -> None:
    out = tmp_path / "t.pftrace"
    assert kperfir("export", lossy, "-o", out).code == 3
    assert out.stat().st_size > 0


def test_several_captures_make_one_trace(kperfir: Callable[..., Answer], whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    copy = tmp_path / "copy.kpf"
    copy.write_bytes(whole.read_bytes())
    answer = kperfir("export", whole, copy, whole, "-o", out)
    assert answer.code == 0
    assert len(json.loads(out.read_text())["otherData"]["captures"]) == 2
    assert f"note: {whole} was given 2 times; it is counted once" in answer.err
