"""Documents that name tests name tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TEST = Path(__file__).resolve().parents[1]
DOCUMENTS = TEST.parent / "docs"


def test_documents_name_tests_that_exist() -> None:
    sources = {path.name: path.read_text() for path in TEST.rglob("test_*.py")}
    functions = set(re.findall(r"^def (test_\w+)", "\n".join(sources.values()), re.MULTILINE))
    missing = [
        f"{document.name}: {name}"
        for document in DOCUMENTS.glob("*.md")
        for name in re.findall(r"`(?:test/[\w/]+/)?(test_\w+(?:\.py)?)`", document.read_text())
        if name not in functions and name not in sources
    ]
    assert missing == []
