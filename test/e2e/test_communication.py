"""A fused all-gather and matrix product on the SIMT device: what of the gathering is hidden behind products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import kperfir
from kperfir.analysis.registry import ANALYSES, polls_of
from support.communication_kernel import gather_and_multiply

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


def chunks(folder: Path, **shape: Any) -> pd.DataFrame:
    path = folder / "out.kpf"
    with kperfir.profile(path, device="simt", simt_threads=1, buffer_bytes=256 << 10):
        gather_and_multiply(**shape)
    timeline = kperfir.load(path)
    assert len(polls_of(timeline)) == 1
    return ANALYSES["communication"].run(timeline)


def test_the_first_chunk_is_waited_for_and_the_others_arrive_behind_products(tmp_path: Path) -> None:
    table = chunks(tmp_path)
    assert table["chunk"].tolist() == [0, 1, 2, 3]
    assert table["waiters"].tolist()[0] == 2
    assert table["exposed_share"].iloc[0] > 0.8
    assert (table["exposed_share"].iloc[1:] < 0.15).all()
    assert (table["hidden_cycles"] + table["exposed_cycles"] == table["communication_cycles"]).all()


def test_too_little_work_for_a_chunk_exposes_all_of_them(tmp_path: Path) -> None:
    table = chunks(tmp_path, tiles=1, poll=True)
    assert len(table) == 4
    assert (table["exposed_share"] > 0.15).all()
    assert table["exposed_share"].iloc[0] > 0.8
