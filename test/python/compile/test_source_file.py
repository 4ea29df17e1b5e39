"""The file of a kernel, of whatever sort its source is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kperfir.compile.source_file import source_file


def kernel() -> None:
    """Stand for the function of a kernel."""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SimpleNamespace(fn=SimpleNamespace(fn=kernel)), __file__),
        (SimpleNamespace(src='module {\n}\n#loc = loc("k.py":3:0)\n'), "k.py"),
        (SimpleNamespace(src="module {\n}\n"), ""),
        # A cache key is made of any source that a program brings: that must not fail.
        (SimpleNamespace(fn=SimpleNamespace(fn=print)), ""),
        (SimpleNamespace(fn=print), ""),
        (SimpleNamespace(src=b"module"), ""),
        (SimpleNamespace(), ""),
    ],
)
def test_file_of_a_source(source: Any, expected: str) -> None:
    assert source_file(source) == expected
