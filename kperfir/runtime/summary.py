"""What a session did, in one line for people: launches that are in the file, and why others are not."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Why a launch that was recorded is not in the file, where the writer has no bound to name.
AUTOTUNING = "autotune"
BEFORE_WINDOW = "before-first-launch"
FAILED = "failed"
IN_GRAPH = "cuda-graph"
NOT_INSTRUMENTED = "not-instrumented"

_REASONS = {
    "launches-per-kernel": "past the bound per kernel (TRITON_KPERF_LAUNCHES)",
    "file-bytes": "past the size of the file (TRITON_KPERF_FILE_BYTES)",
    AUTOTUNING: "made by the autotuner",
    BEFORE_WINDOW: "before the first one to keep (TRITON_KPERF_FIRST_LAUNCH)",
    FAILED: "failed",
    IN_GRAPH: "put into a CUDA graph (its replays are not recorded)",
    NOT_INSTRUMENTED: "not instrumented",
}

_NAMED = 8  # Kernels that a message lists at most.


@dataclass(frozen=True, slots=True)
class Summary:
    """What a session has done.

    Attributes:
        path: The file; None if there is none, because no kernel that was to be recorded was launched.
        kept: Launches in it, per kernel.
        skipped: Launches that are not, per kernel and reason.
        unmatched: Kernels that were launched, but match none of the patterns in `patterns`.
        patterns: Which kernels were to be recorded.
        not_instrumented: Why kernels could not be instrumented.
        simulated: Times are simulated.
    """

    path: Path | None
    kept: Mapping[str, int]
    skipped: Mapping[tuple[str, str], int]
    not_instrumented: Mapping[str, str]
    simulated: bool
    unmatched: Sequence[str] = ()
    patterns: Sequence[str] = ("*",)

    def __str__(self) -> str:
        reasons: Counter[str] = Counter()
        for (_, reason), count in self.skipped.items():
            reasons[reason] += count
        why = "; ".join(f"kernel {kernel}: {reason}" for kernel, reason in self.not_instrumented.items())
        skipped = ", ".join(f"{count} {_REASONS.get(reason, reason)}" for reason, count in sorted(reasons.items()))
        skipped += f" ({why})" if why else ""
        if not self.kept:
            text = f"no launch recorded{f'; not kept: {skipped}' if skipped else ''}"
            text += f"; noted in {self.path}" if self.path else ""
            if self.unmatched and not self.skipped:
                found = ", ".join(self.unmatched[:_NAMED]) + (", ..." if len(self.unmatched) > _NAMED else "")
                text += f": no kernel matches {','.join(self.patterns)} (TRITON_KPERF_KERNELS); launched: {found}"
            elif not self.skipped:
                text += ": no Triton kernel was launched in this process"
            return text
        kept = sum(self.kept.values())
        text = (
            f"{kept} {_plural(kept, 'launch')} of {len(self.kept)} {_plural(len(self.kept), 'kernel')} in {self.path}"
        )
        text += " (simulated time)" if self.simulated else ""
        text += f"; not kept: {skipped}" if skipped else ""
        return f"{text}; next: kperfir report {shlex.quote(str(self.path))}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else noun + ("es" if noun.endswith("ch") else "s")
