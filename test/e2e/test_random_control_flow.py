"""Random control flow: results stay the same, and every stamp is the logged clock, in whole and in tiny buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from kernels.registry import Case
from kernels.workload import Workload
from support.ground_truth import check_enclosure, compare_stamps
from support.launch import differing_arguments, layout_of, run_plain, run_profiled
from support.random_kernels import BLOCK, PROGRAMS, ROWS, write_kernel

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(10)


def workload(seed: int, folder: Path) -> Workload:
    def arguments(generator: torch.Generator) -> dict[str, torch.Tensor]:
        return {
            "x": torch.randn(ROWS, BLOCK, generator=generator),
            "seeds": torch.randint(1, 90, (PROGRAMS,), generator=generator).int(),
            "o": torch.zeros(PROGRAMS, BLOCK),
        }

    case = Case(f"random_{seed}", write_kernel(seed, folder).kernel, ("*fp32", "*i32", "*fp32"), {"B": BLOCK})
    return Workload(case, (PROGRAMS,), arguments)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_kernel_keeps_its_results_and_decodes(seed: int, tmp_path: Path):
    random = workload(seed, tmp_path)
    strategy = ("saturate", "ring")[seed % 2]
    plain = run_plain(random)
    whole = run_profiled(random, tmp_path / "whole.kpf", log=True, strategy=strategy, buffer_bytes=256 << 10)
    assert differing_arguments(plain.arguments, whole.arguments) == []
    compared = compare_stamps(whole, strategy=strategy, merged_code=True)
    assert compared.decoded == compared.executed > 0
    check_enclosure(whole, merged_code=True)

    layout = layout_of(whole)
    smallest = layout["total_warps"] * -(-2 * layout["max_frame_words"] // 4) * 16
    tiny = run_profiled(random, tmp_path / "tiny.kpf", log=True, strategy=strategy, buffer_bytes=smallest)
    assert differing_arguments(plain.arguments, tiny.arguments) == []
    assert compare_stamps(tiny, strategy=strategy, merged_code=True).executed == compared.executed
