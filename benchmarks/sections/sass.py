"""From the cubins of ptxas: machine instructions per record in the loop of a matmul, and per PTX instruction."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from typing import Any

from kperfir._native import simt

from kernels.cases import CASES
from kernels.matmuls import tiled
from kperfir.capture.layout_json import parse_layout
from sections.table import table
from support.compiling import attempt, instrumentation
from support.sass import FILLER, disassemble, find_loop

MATMUL = tiled("matmul_128x128x32", "fp16", "fp16", tile=(128, 128, 32), options={"num_warps": 4, "num_stages": 3})
STRAIGHT = ("vadd_fp32", "gelu_tanh_fp16", "quant_int8", "rope_bf16", "transpose_fp16", "softmax_fp32", "embedding_fwd")
TARGETS = {"sm_80": r"HMMA", "sm_90": r"HGMMA", "sm_100": r"UTC\w*MMA"}


def run() -> tuple[str, int]:
    """Count instructions of the loop without and with records; fillers of ptxas apart."""
    rows = []
    for target, batch in itertools.product(TARGETS, (4, 2, 1)):
        matrix_instruction = TARGETS[target]
        plain = find_loop(disassemble(attempt(MATMUL, target).compiled.asm["cubin"]), matrix_instruction)
        with instrumentation(batch=batch):
            instrumented = attempt(MATMUL, target)
        loop = find_loop(disassemble(instrumented.compiled.asm["cubin"]), matrix_instruction)
        records = loop.count(r"\bCS2R\b")
        added = loop.useful - plain.useful
        fillers = (len(loop.instructions) - loop.useful) - (len(plain.instructions) - plain.useful)
        own = records + loop.count(r"\bSTS\b") - plain.count(r"\bSTS\b")
        rows.append([target, batch, plain.useful, loop.useful, records, own / records, added / records, fillers])
    columns = (
        "target",
        "records stored at once",
        "loop, plain",
        "loop, instrumented",
        "records in it",
        "clock reads and stores per record",
        "net instructions per record",
        "fillers added",
    )
    text = "## Machine code of a 128x128x32 fp16 matmul\n\n"
    text += "The net count includes what ptxas does differently in the rest of the loop, to either side: on sm_80 it\n"
    text += "happens to save more than a dozen PRMT. Fillers (`@!PT LDS RZ`, which do nothing) are counted apart.\n\n"
    return "\n".join((text + table(columns, rows), straight_line(), ratios())), 0


def straight_line() -> str:
    """Net instructions of whole kernels without a loop, for each record more than those of the kernel's own region."""
    rows = []
    for target, name in itertools.product(TARGETS, STRAIGHT):
        slopes = []
        for batch in (4, 1):
            one, records_of_one = _count(name, target, regions=("kernel",), batch=batch)
            made, records = _count(name, target, batch=batch)
            slopes.append((made - one) / (records - records_of_one))
        rows.append([target, name, records - records_of_one, *slopes])
    text = "## Machine code of records in a straight line\n\n"
    text += "Kernels without a loop: net instructions of the whole kernel for each record more than one region takes,\n"
    text += "with what ptxas does otherwise elsewhere (`transpose_fp16`, `rope_bf16` on sm_80).\n\n"
    return text + table(("target", "kernel", "further records", "four stored at once", "stored one at a time"), rows)


def _count(name: str, target: str, **options: Any) -> tuple[int, int]:
    """Instructions of a kernel of the tests with records, fillers left out, and how many records it has."""
    with instrumentation(**options):
        made = attempt(CASES[name], target)
    machine = [line for line in disassemble(made.compiled.asm["cubin"]) if not line.endswith(":")]
    records = sum(len(frame.stamps) for frame in parse_layout(made.layout).frames)
    return sum(not line.startswith(FILLER) for line in machine), records


def ratios() -> str:
    """What the timing model executes against what ptxas makes of it, by the module that a kernel comes from."""
    rows = []
    for target, arch in {"sm_80": 80, "sm_90": 90}.items():
        found = defaultdict(list)
        for name, case in CASES.items():
            compiled = attempt(case, target).compiled if arch in case.archs else None
            if compiled:
                machine = [line for line in disassemble(compiled.asm["cubin"]) if not line.endswith(":")]
                useful = sum(not line.startswith(FILLER) for line in machine)
                ptx = len(simt.Module(compiled.asm["ptx"]).instructions)
                found[case.kernel.fn.__module__.removeprefix("kernels.")].append((useful / ptx, name))
        for kind, pairs in sorted(found.items()):
            (least, lowest), (most, highest) = min(pairs), max(pairs)
            median = statistics.median(ratio for ratio, _ in pairs)
            rows.append([target, kind, len(pairs), median, f"{least:.2f} {lowest}", f"{most:.2f} {highest}"])
    text = "## Machine instructions per PTX instruction\n\n"
    text += (
        "Static counts of whole kernels, fillers left out: what the timing model, which executes PTX, does not see\n"
    )
    text += "of ptxas. Above 1: ptxas expands (division, 64-bit arithmetic) or unrolls; below: it folds address\n"
    text += "arithmetic and moves. Moves that only carry halves of a register are counted on neither side.\n\n"
    return text + table(("target", "kernels of", "kernels", "median", "least", "most"), rows)
