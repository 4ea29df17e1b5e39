"""All rules of the advisor by name, in the order in which docs/advice.md explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from kperfir.advice.rules.accesses import avoid_bank_conflicts, coalesce_accesses, widen_accesses
from kperfir.advice.rules.grid import balance_sms, fill_device, last_wave, raise_occupancy, shorten_ends
from kperfir.advice.rules.layouts import convert_layout
from kperfir.advice.rules.pipelines import deepen_pipeline, pipeline_loop, specialise_warps, split_barrier
from kperfir.advice.rules.sharing import (
    balance_warps,
    bigger_step,
    fewer_barriers,
    overlap_products,
    reduce_after_loop,
    spread_atomics,
)

if TYPE_CHECKING:
    from kperfir.advice.case import Case
    from kperfir.advice.finding import Finding

Rule = Callable[["Case"], Iterable["Finding"]]

RULES: dict[str, Rule] = {
    "deepen-pipeline": deepen_pipeline,
    "pipeline-loop": pipeline_loop,
    "split-barrier": split_barrier,
    "specialise-warps": specialise_warps,
    "overlap-products": overlap_products,
    "bigger-step": bigger_step,
    "balance-warps": balance_warps,
    "fewer-barriers": fewer_barriers,
    "reduce-after-loop": reduce_after_loop,
    "spread-atomics": spread_atomics,
    "convert-layout": convert_layout,
    "avoid-bank-conflicts": avoid_bank_conflicts,
    "coalesce-accesses": coalesce_accesses,
    "widen-accesses": widen_accesses,
    "fill-device": fill_device,
    "last-wave": last_wave,
    "balance-sms": balance_sms,
    "shorten-ends": shorten_ends,
    "raise-occupancy": raise_occupancy,
}
