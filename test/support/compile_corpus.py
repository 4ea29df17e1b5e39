"""Compile every kernel of the corpus for one target, instrumented and up to PTX, and print one JSON line for each.

    python -m support.compile_corpus sm_90

A process of its own: libtriton has its assertions on, so a faulty pass ends the process.
"""

from __future__ import annotations

import json
import sys

from kernels.cases import CASES
from support.compiling import TARGETS, attempt, instrumentation, stop_at_ptx


def main(target: str) -> None:
    """Compile and print; where there are no records, compile again without trying to make them."""
    from triton import knobs

    backend, arch, _ = TARGETS[target]
    if backend == "cuda":
        knobs.runtime.add_stages_inspection_hook = stop_at_ptx
    for case in CASES.values():
        if backend == "cuda" and arch not in case.archs:
            continue
        with instrumentation():
            tried = attempt(case, target)
        plain = tried if tried.layout else attempt(case, target)
        print(
            json.dumps(
                {
                    "name": case.name,
                    "layout": tried.layout,
                    "reason": tried.reason,
                    "error": tried.error,
                    "plain_error": plain.error,
                    "shared": plain.compiled.metadata.shared if plain.compiled else 0,
                    "shared_instrumented": tried.compiled.metadata.shared if tried.compiled else 0,
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1])
