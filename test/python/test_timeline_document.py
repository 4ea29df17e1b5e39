"""docs/timeline.md lists the columns that the tables have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kperfir
from support.synthetic import CaptureShape, write_matmul_capture

if TYPE_CHECKING:
    import pandas as pd

    from kperfir.timeline import Timeline

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "timeline.md"
NUMBERED = re.compile(r"(\w+_)(\d+) \.\.\. \w+_(\d+)")


@pytest.fixture(scope="module")
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    path = tmp_path_factory.mktemp("capture") / "out.kpf"
    write_matmul_capture(path, CaptureShape())
    return kperfir.load(path)


def documented() -> dict[str, dict[str, str]]:
    """For each table, the types of its columns as the document has them."""
    tables: dict[str, dict[str, str]] = {}
    for section in DOCUMENT.read_text().split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        columns = tables[title] = {}
        for names, dtype in re.findall(r"^\| ([\w, .]+) \| ([\w ]+) \|", body, re.MULTILINE):
            if names == "column":
                continue
            for name in names.split(", "):
                many = NUMBERED.fullmatch(name)
                each = [f"{many[1]}{n}" for n in range(int(many[2]), int(many[3]) + 1)] if many else [name]
                columns |= dict.fromkeys(each, dtype)
    return tables


TABLES = documented()


def table(timeline: Timeline, title: str) -> pd.DataFrame:
    if title == "waits(by)":
        return timeline.waits("warp")
    made = getattr(timeline, title.removesuffix("()"))
    return made() if title.endswith("()") else made


@pytest.mark.parametrize("title", TABLES)
def test_columns_are_those_of_the_document(timeline: Timeline, title: str) -> None:
    frame = table(timeline, title)
    assert sorted(TABLES[title]) == sorted(frame.columns)
    for name, dtype in TABLES[title].items():
        if dtype == "as in spans":
            dtype = TABLES["spans"][name]
        if dtype != "number" and title != "accesses":  # Without a row, pandas knows no types.
            assert str(frame[name].dtype) == dtype, name


def test_every_table_is_documented(timeline: Timeline) -> None:
    import pandas as pd

    public = {name for name in dir(type(timeline)) if not name.startswith("_")}
    tables = {name for name in public if isinstance(getattr(timeline, name), pd.DataFrame)}
    # What is there for one part of kperfir alone.
    assert tables - {"mark_values"} == {title for title in TABLES if "(" not in title}
