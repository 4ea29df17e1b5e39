"""Write the spans of timelines as Parquet, with what describes the captures in the file's metadata.

Key ``kperfir`` of the metadata: JSON, a list with one object per capture: ``metadata``, ``notes``, ``launches``. pandas
reads the columns back with their types.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from kperfir.export.tables import span_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.timeline import Timeline

# Sorted columns of large integers: differences are small.
_DELTA_COLUMNS = ("start_cycles", "end_cycles", "duration_cycles")


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write the span table of `tables.span_chunks`, one row group per chunk."""
    writer: pq.ParquetWriter | None = None
    try:
        for chunk in span_chunks(timelines):
            table = pa.Table.from_pandas(chunk, preserve_index=False)
            if writer is None:
                schema = _without_dictionary_sizes(table.schema)
                described = {**schema.metadata, b"kperfir": _description(timelines).encode()}
                writer = pq.ParquetWriter(out, schema.with_metadata(described), **_encodings(schema))
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


def _without_dictionary_sizes(schema: pa.Schema) -> pa.Schema:
    """Captures differ in how many names they have, hence in the index type of their dictionaries."""
    fields = [
        field.with_type(pa.dictionary(pa.int32(), pa.string())) if pa.types.is_dictionary(field.type) else field
        for field in schema
    ]
    return pa.schema(fields, metadata=schema.metadata)


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [name for name in schema.names if name not in _DELTA_COLUMNS],
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _DELTA_COLUMNS if name in schema.names},
    }


def _description(timelines: Sequence[Timeline]) -> str:
    captures = [
        {
            "metadata": timeline.metadata,
            "notes": timeline.notes,
            "launches": json.loads(timeline.launches.to_json(orient="records")),
        }
        for timeline in timelines
    ]
    return json.dumps(captures, default=str)
