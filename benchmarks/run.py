"""Measure kperfir, and write benchmarks/RESULTS.md and the documents that are made of measurements.

    python benchmarks/run.py                every section of the benchmarks
    python benchmarks/run.py simt           one section, printed only
    python benchmarks/run.py --update simt  one section, in the document where it stands
    python benchmarks/run.py --corpus       every kernel of the tests and of real libraries, on every target
    python benchmarks/run.py --audit        what ptxas makes of every kernel of the tests
    python benchmarks/run.py --accuracy     what is reported of each, against the truth of the timing model

Simulated figures are the same on every machine; host speed is this machine's, and labelled with its processor. A
section is one run: what it compares was measured side by side.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
DOCS = ROOT.parent / "docs"
sys.path.insert(0, str(ROOT.parent / "test"))  # The kernels and the launch helpers are the tests' own.

_MARKER = "<!-- section {} -->\n"


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is written here: a heading of benchmarks/headings, and sections."""

    path: Path
    heading: str
    sections: tuple[str, ...]


RESULTS = Document(
    ROOT / "RESULTS.md", "results.md",
    (
        "overhead", "sass", "proton", "proton_host", "compile", "off", "load", "simt", "simt_threads", "simt_mix",
        "scaling", "advice", "page",
    ),
)  # fmt: skip
DOCUMENTS = {
    "--corpus": Document(DOCS / "corpus.md", "corpus.md", ("corpus", "libraries")),
    "--audit": Document(DOCS / "audit.md", "audit.md", ("audit", "spills")),
    "--accuracy": Document(DOCS / "accuracy.md", "accuracy.md", ("accuracy",)),
}
HOMES = {name: document for document in (RESULTS, *DOCUMENTS.values()) for name in document.sections}


def main(arguments: list[str]) -> int:
    """Do what the command line says."""
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    if not arguments:
        return write(RESULTS)
    if arguments[0] in DOCUMENTS and len(arguments) == 1:
        return write(DOCUMENTS[arguments[0]])
    names = arguments[1:] if arguments[0] == "--update" else arguments
    unknown = set(names) - HOMES.keys()
    if unknown or not names:
        found = f"no section {', '.join(sorted(unknown))}" if unknown else "no section is named"
        print(f"{found}; there are {', '.join(HOMES)}", file=sys.stderr)
        return 2
    return max(update(name) if arguments[0] == "--update" else run(name)[1] for name in names)


def write(document: Document) -> int:
    """Run all sections of a document and write what they found, faults included."""
    texts, statuses = zip(*(run(name) for name in document.sections), strict=True)
    heading = (ROOT / "headings" / document.heading).read_text(encoding="utf-8").replace("{machine}", machine())
    parts = [_MARKER.format(name) + text for name, text in zip(document.sections, texts, strict=True)]
    document.path.write_text("\n".join([heading, *parts]), encoding="utf-8")
    return max(statuses)


def update(name: str) -> int:
    """Run one section and put what it found where it stands in its document."""
    path = HOMES[name].path
    before = path.read_text(encoding="utf-8")
    # Up to the next section, or the end.
    place = re.compile(f"{re.escape(_MARKER.format(name))}.*?(?=\n<!-- section |\\Z)", re.DOTALL)
    if len(place.findall(before)) != 1:
        print(f"{path.name} has no section {name} to update; write all of it", file=sys.stderr)
        return 2
    text, status = run(name)
    path.write_text(place.sub(lambda _: _MARKER.format(name) + text, before), encoding="utf-8")
    return status


def run(name: str) -> tuple[str, int]:
    """Run one section with a compile cache of its own, and print it."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        text, status = importlib.import_module(f"sections.{name}").run()
    print(text, flush=True)
    return text, status


def machine() -> str:
    """The processor and the number of CPUs, without anything that names the host."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{model}, {len(os.sched_getaffinity(0))} CPUs visible, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
