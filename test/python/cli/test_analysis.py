"""`kperfir report --analysis`: every analysis in text and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from kperfir.analysis.registry import ANALYSES
from kperfir.cli.analysis import show
from kperfir.timeline import load


@pytest.mark.parametrize("name", ANALYSES)
def test_analysis_prints_a_table_or_says_there_is_none(kperfir, whole, name: str) -> None:
    answer = kperfir("report", whole, "--analysis", name)
    assert answer.code == 0
    assert answer.out.startswith(f"{name}: {ANALYSES[name].about}\n")
    data = json.loads(kperfir("report", whole, "--analysis", name, "--json").out)
    assert (data["kperfir_analysis"], data["analysis"]) == (1, name)
    lines = answer.out.splitlines()[1:]
    assert len(lines) == (len(data["rows"]) + 1 if data["rows"] else 1)


def test_limit_and_kernel_apply(kperfir, whole) -> None:
    data = json.loads(kperfir("report", whole, "--analysis", "regions", "--limit", "2", "--json").out)
    assert len(data["rows"]) == 2
    assert kperfir("report", whole, "--analysis", "regions", "--kernel", "nothing").code == 2


def test_words_in_brackets_are_printed(whole, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setitem(ANALYSES, "regions", replace(ANALYSES["regions"], about="of [bold] words"))
    show(load(whole), "regions", {"matmul_kernel"}, None, as_json=False)
    assert capsys.readouterr().out.startswith("regions: of [bold] words\n")


def test_dropped_records_are_exit_code_3(kperfir, lossy) -> None:
    assert kperfir("report", lossy, "--analysis", "roles").code == 3


@pytest.mark.parametrize("option", [("--by", "line"), ("--sort", "self"), ("--by", "region")])
def test_rows_and_order_of_the_report_are_none_of_an_analysis(kperfir, whole, option: tuple[str, str]) -> None:
    answer = kperfir("report", whole, "--analysis", "roles", *option)
    assert answer.code == 2
    assert option[0] in answer.err
