"""Documents name tests, files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEST = Path(__file__).resolve().parents[1]
PROJECT = TEST.parent
DOCUMENTS = PROJECT / "docs"
FILE = r"`((?:kperfir|lib|passes|test|benchmarks|tools|docs|python)/[\w./-]+\.\w+)`"


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


def documents() -> list[Path]:
    found = [PROJECT / "README.md", PROJECT / "CHANGELOG.md"]
    for folder in ("docs", "lib", "test"):
        found += sorted((PROJECT / folder).rglob("*.md"))
    return found


def headings(document: Path) -> set[str]:
    """The anchors of a document, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def leads_somewhere(document: Path, target: str) -> bool:
    name, _, heading = target.partition("#")
    file = document.parent / name if name else document
    return file.exists() and (not heading or heading in headings(file))


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    inside = [target for target in targets if not target.startswith("http")]
    assert [target for target in inside if not leads_somewhere(document, target)] == []


@pytest.mark.parametrize("document", documents(), ids=lambda path: path.name)
def test_files_that_are_named_exist(document: Path) -> None:
    named = re.findall(FILE, document.read_text())
    missing = {name for name in named if not (PROJECT / name).exists()}
    assert missing <= {"kperfir/Policy.h"}, "which is in kperfir/include"
