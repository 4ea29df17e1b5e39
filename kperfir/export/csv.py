"""Write the spans of timelines as CSV (UTF-8, one header line). Owns nothing but the spelling of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from kperfir.export.tables import span_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.timeline import Timeline


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write the span table of `tables.span_chunks`; row numbers, which `parent` refers to, are implied."""
    for number, chunk in enumerate(span_chunks(timelines)):
        out.write(chunk.to_csv(index=False, header=number == 0, lineterminator="\n").encode())
