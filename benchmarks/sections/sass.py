"""Machine instructions per record in the loop of a matmul, from the cubins that ptxas makes."""

from __future__ import annotations

from kernels.matmuls import tiled
from sections.table import table
from support.compiling import attempt, instrumentation
from support.sass import disassemble, find_loop

MATMUL = tiled("matmul_128x128x32", "fp16", "fp16", tile=(128, 128, 32), options={"num_warps": 4, "num_stages": 3})
TARGETS = {"sm_80": r"HMMA", "sm_90": r"HGMMA", "sm_100": r"UTC\w*MMA"}


def run() -> tuple[str, int]:
    """Count instructions of the loop without and with records; fillers of ptxas apart."""
    rows = []
    for target, matrix_instruction in TARGETS.items():
        plain = find_loop(disassemble(attempt(MATMUL, target).compiled.asm["cubin"]), matrix_instruction)
        with instrumentation():
            instrumented = attempt(MATMUL, target)
        loop = find_loop(disassemble(instrumented.compiled.asm["cubin"]), matrix_instruction)
        records = loop.count(r"\bCS2R\b")
        added = loop.useful - plain.useful
        fillers = (len(loop.instructions) - loop.useful) - (len(plain.instructions) - plain.useful)
        own = records + loop.count(r"\bSTS\b") - plain.count(r"\bSTS\b")
        rows.append([target, plain.useful, loop.useful, records, own / records, added / records, fillers])
    columns = (
        "target",
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
    return text + table(columns, rows), 0
