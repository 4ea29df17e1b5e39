"""One set of tables from several captures, such as the ranks of a job, so that every analysis works on either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kperfir.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Tables:
    """As in `Timeline`. Launch numbers and rows count through all captures."""

    spans: pd.DataFrame
    tracks: pd.DataFrame
    launches: pd.DataFrame


def combine(timelines: Sequence[Timeline]) -> Tables:
    """Concatenate the tables of one or more captures."""
    if len(timelines) == 1:
        (only,) = timelines
        return Tables(only.spans, only.tracks, only.launches)
    spans, tracks, launches = [], [], []
    first_launch = first_row = 0
    for timeline in timelines:
        parent = timeline.spans["parent"].to_numpy()
        shifted = np.where(parent < 0, -1, parent + first_row)
        spans.append(_renumbered(timeline.spans, first_launch).assign(parent=shifted))
        tracks.append(_renumbered(timeline.tracks, first_launch))
        launches.append(_renumbered(timeline.launches, first_launch))
        first_row += len(timeline.spans)
        first_launch += int(timeline.launches["launch"].max() + 1) if len(timeline.launches) else 0
    return Tables(_concat(spans), _concat(tracks), _concat(launches))


def _renumbered(frame: pd.DataFrame, first_launch: int) -> pd.DataFrame:
    return frame.assign(launch=frame["launch"] + np.int32(first_launch))


def _concat(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """`pandas.concat`, which alone would turn categories that differ into objects."""
    frame = pd.concat(frames, ignore_index=True)
    for name, dtype in frames[0].dtypes.items():
        if isinstance(dtype, pd.CategoricalDtype):
            frame[name] = union_categoricals([part[name] for part in frames])
    return frame
