"""From the cubins of ptxas: machine instructions per record in the loop of a matmul, and per PTX instruction."""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict

from kperfir._native import simt

from kernels.cases import CASES
from kernels.matmuls import tiled
from sections.table import table
from support.compiling import attempt, instrumentation
from support.sass import FILLER, disassemble, find_loop

MATMUL = tiled("matmul_128x128x32", "fp16", "fp16", tile=(128, 128, 32), options={"num_warps": 4, "num_stages": 3})
TARGETS = {"sm_80": r"HMMA", "sm_90": r"HGMMA", "sm_100": r"UTC\w*MMA"}


def run() -> tuple[str, int]:
    """Count instructions of the loop without and with records; fillers of ptxas apart."""
    rows = []
    for target, batch in itertools.product(TARGETS, (1, 4)):
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
    return text + table(columns, rows) + "\n" + ratios(), 0


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
