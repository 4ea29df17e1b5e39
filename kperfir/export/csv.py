"""Write the spans of timelines as CSV (UTF-8, one header line). Owns nothing but the spelling of values.

Values are spelled as by pandas, which takes three times as long: numbers as Python shows them, text in quotes where it
must be, nothing where there is none.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from kperfir.export.tables import span_chunks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kperfir.timeline import Timeline

# Of floats between these, Arrow spells all digits as Python does, but for the fraction of whole numbers.
_PLAIN = (1e-4, 1e10)


def write(timelines: Sequence[Timeline], out: BinaryIO) -> None:
    """Write the span table of `tables.span_chunks`; row numbers, which `parent` refers to, are implied."""
    for number, chunk in enumerate(span_chunks(timelines)):
        if number == 0:
            out.write((_line(list(chunk)) + "\n").encode())
        if len(chunk):
            out.write(_lines(chunk))


def _lines(chunk: pd.DataFrame) -> memoryview:
    cells = [_spelled(chunk[name]) for name in chunk]
    ends = ["\n"] * len(chunk)
    lines = pc.binary_join_element_wise(*cells, ",")
    whole = pc.binary_join_element_wise(lines, pa.array(ends), "")
    # Strings of an array lie one behind the other.
    _, offsets, data = whole.buffers()
    first, last = np.frombuffer(offsets, np.int32)[[whole.offset, whole.offset + len(whole)]].tolist()
    return memoryview(data)[first:last]


def _spelled(column: pd.Series) -> pa.Array:
    """The cells of a column as text."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = pa.array([_line([text]) if text else "" for text in column.cat.categories], pa.string())
        codes = column.cat.codes.to_numpy()
        return _filled(texts.take(pa.array(codes, mask=codes < 0)))
    if column.dtype == bool:
        return pa.array(["False", "True"]).take(pa.array(column.to_numpy().view(np.int8)))
    if pd.api.types.is_float_dtype(column.dtype):
        return _floats(column.to_numpy(np.float64, na_value=np.nan), column.isna().to_numpy())
    return _filled(pa.array(column).cast(pa.string()))


def _floats(values: NDArray[np.float64], missing: NDArray[np.bool_]) -> pa.Array:
    size = np.abs(values)
    plain = (size >= _PLAIN[0]) & (size < _PLAIN[1]) | (values == 0)
    texts = pa.array(values).cast(pa.string())
    whole = pa.array(plain & (values == np.trunc(values)))
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, "0", "."), texts) if pc.any(whole).as_py() else texts
    if not plain.all():
        rare = np.where(missing[~plain], "", [repr(value) for value in values[~plain].tolist()])
        texts = pc.replace_with_mask(texts, pa.array(~plain), pa.array(rare.tolist(), pa.string()))
    return texts


def _filled(texts: pa.Array) -> pa.Array:
    return texts.fill_null("") if texts.null_count else texts


def _line(cells: Sequence[str]) -> str:
    """The cells with quotes where these are needed."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue().removesuffix("\n").encode(errors="replace").decode()  # Names of files may be any bytes.
