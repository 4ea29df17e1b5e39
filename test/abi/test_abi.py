"""The plugin and every libtriton.so that it accepts agree on each C++ class that the plugin uses.

A difference here means that the plugin may crash inside of Triton or corrupt its memory: do not
add the build to audited_libtriton.json.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from abi.audit import DIFFERENT_PROPERTIES, Comparison, audit, demangle, last_word
from abi.class_dump import HeaderClasses
from abi.elf import Library
from abi.headers import HERE, ROOT, build_probe, deps_dir, dump_headers, included_headers, llvm_dir, triton_dir
from kperfir.compile.abi import AuditedBuild, audited_triton, read_build_id

PLUGIN_FOLDERS = ("lib/Dialect", "lib/Plugin", "passes")
# Less than this many comparisons means that the tools found nothing to compare.
LEAST = {"vtable slots": 1000, "property sizes": 600, "sizes of deletable classes": 50}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(triton_dir() / "_C" / "libtriton.so")


@pytest.fixture(scope="module")
def headers() -> HeaderClasses:
    return dump_headers()


@pytest.fixture(scope="module", params=audited_triton().builds, ids=lambda build: build.wheel)
def comparisons(request: pytest.FixtureRequest, headers: HeaderClasses) -> dict[str, Comparison]:
    """The audit of one accepted build, whether or not it is the one installed."""
    build: AuditedBuild = request.param
    path = deps_dir() / "libtriton" / f"{build.wheel}.so"
    assert read_build_id(path) == build.build_id
    return {comparison.what: comparison for comparison in audit(headers, Library(path))}


@pytest.fixture(scope="module")
def probe() -> dict[str, Any]:
    command = [sys.executable, HERE / "run_probe.py", build_probe()]
    result = subprocess.run(command, text=True, capture_output=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.parametrize("what", LEAST)
def test_audit_finds_enough_to_compare(comparisons: dict[str, Comparison], what: str) -> None:
    assert comparisons[what].equal >= LEAST[what]


def test_vtables_hold_the_same_functions_in_the_same_order(comparisons: dict[str, Comparison]) -> None:
    assert comparisons["vtable slots"].different == {}


def test_properties_have_the_same_size_but_for_two_known_operations(comparisons: dict[str, Comparison]) -> None:
    assert set(comparisons["property sizes"].different) == DIFFERENT_PROPERTIES


def test_deletable_classes_have_the_same_size(comparisons: dict[str, Comparison]) -> None:
    assert comparisons["sizes of deletable classes"].different == {}


def test_constructors_write_exactly_the_class_of_the_headers(probe: dict[str, Any]) -> None:
    assert len(probe["constructors"]) == 6
    for row in probe["constructors"]:
        # The last member may end before the class does, by less than two words of padding.
        assert 0 <= row["header_bytes"] - row["written_bytes"] < 16, row


def test_interface_tables_have_the_size_of_the_headers(probe: dict[str, Any]) -> None:
    assert len(probe["interfaces"]) == 13
    for row in probe["interfaces"]:
        assert row["found"], row
        # malloc rounds a table up to 16 bytes, less the 8 of its own header, and does not
        # split off a rest of 16 bytes that it could not use.
        usable_bytes = max(24, (row["header_bytes"] + 8 + 15) // 16 * 16 - 8)
        assert row["usable_bytes"] in {usable_bytes, usable_bytes + 16}, row


def test_interface_tables_hold_functions_in_header_order(probe: dict[str, Any], library: Library) -> None:
    text = "".join(path.read_text() for path in sorted((llvm_dir() / "include" / "mlir").rglob("*.h.inc")))
    for row in probe["interfaces"]:
        expected = concept_slots(row["interface"], text)
        names = [library.names_at(offset) if offset else [] for offset in row["slots"]]
        assert len(names) == len(expected), row["interface"]
        plain = demangle({name for slot in names for name in slot})
        for want, slot in zip(expected, names, strict=True):
            found = {last_word(plain[name]) for name in slot}
            # A table of a base interface has no symbol: it is on the heap.
            assert found == set() if want.startswith("impl") else want in found, (row["interface"], want, found)


def concept_slots(interface: str, generated: str) -> list[str]:
    """Names of the members of an interface's Concept, as the generated headers declare them."""
    traits = rf"struct {interface}InterfaceTraits \{{\s*struct Concept \{{(.*?)\n  \}};"
    match = re.search(traits, generated, re.DOTALL)
    assert match, f"no generated header declares {interface}"
    members = re.findall(r"\(\*(\w+)\)\(|^\s*const [\w:]+ \*(impl\w+)", match[1], re.MULTILINE)
    return [function or base for function, base in members]


def plugin_sources() -> list[Path]:
    files = (path for folder in PLUGIN_FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(path for path in files if path.suffix in {".h", ".cpp", ".td"})


def test_plugin_includes_only_audited_headers() -> None:
    include = re.compile(r'^\s*#include\s+["<]((?:mlir|llvm)/[^">]+)[">]', re.MULTILINE)
    audited = included_headers()
    used = {header: path for path in plugin_sources() for header in include.findall(path.read_text())}
    missing = {header: str(path.relative_to(ROOT)) for header, path in used.items() if header not in audited}
    assert missing == {}, "add them to test/abi/audited_headers.h and see whether the audit still passes"


def test_plugin_does_not_name_operations_whose_properties_differ() -> None:
    names = re.compile("|".join(rf"\b{op.rpartition('::')[2]}\b" for op in sorted(DIFFERENT_PROPERTIES)))
    users = [str(path.relative_to(ROOT)) for path in plugin_sources() if names.search(path.read_text())]
    assert users == []
