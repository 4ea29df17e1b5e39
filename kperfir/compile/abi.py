"""Refuse a libtriton that the plugin was not audited against, before the plugin is loaded.

    check_libtriton()  # raises PluginError, or returns the build that was recognised

The plugin and libtriton.so share C++ classes without a stable ABI between them, so a build
counts only if test/abi has compared it: those builds are listed in audited_libtriton.json,
which this module reads and which the plugin's own guard (lib/Plugin/AbiGuard) was built from.
This module imports neither triton nor the plugin.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from kperfir.errors import PluginError

NT_GNU_BUILD_ID = 3
PT_NOTE = 4
ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"


@dataclass(frozen=True, slots=True)
class AuditedBuild:
    """One published libtriton.so: the tag of its wheel and its GNU build-id in hex."""

    wheel: str
    build_id: str


@dataclass(frozen=True, slots=True)
class AuditedTriton:
    """What the plugin was built for and compared with."""

    triton_version: str
    llvm_series: str
    plugin_api: int
    builds: tuple[AuditedBuild, ...]


@cache
def audited_triton() -> AuditedTriton:
    """The list of audited builds, as it was when this kperfir was built."""
    text = Path(__file__).with_name("audited_libtriton.json").read_text(encoding="utf-8")
    facts = json.loads(text)
    builds = tuple(AuditedBuild(**build) for build in facts.pop("builds"))
    return AuditedTriton(**facts, builds=builds)


def installed_libtriton() -> Path:
    """Path of the libtriton.so that ``import triton`` would load.

    Raises:
        PluginError: ``triton-missing`` if there is no triton package or it has no such library.
    """
    spec = find_spec("triton")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        path = Path(folder) / "_C" / "libtriton.so"
        if path.is_file():
            return path
    version = audited_triton().triton_version
    raise PluginError(
        "triton-missing",
        what="there is no compiled triton to load the kperfir plugin into",
        where=", ".join(folders),
        found="a package without _C/libtriton.so" if folders else "no package named triton",
        expected=f"triton {version}",
        fix=f"pip install triton=={version}",
    )


def check_libtriton(path: Path | None = None) -> AuditedBuild:
    """Recognise the libtriton.so at `path`, by default the installed one.

    Raises:
        PluginError: ``triton-not-audited`` if it is none of the audited builds;
            ``triton-missing`` if there is none.
    """
    path = path or installed_libtriton()
    audited = audited_triton()
    found = read_build_id(path)
    for build in audited.builds:
        if build.build_id == found:
            return build
    listed = ", ".join(f"{build.build_id} ({build.wheel})" for build in audited.builds)
    raise PluginError(
        "triton-not-audited",
        what="kperfir's plugin was not audited against this libtriton.so and will not be loaded into it",
        where=str(path),
        found=f"build-id {found or 'none'}",
        expected=f"one of triton {audited.triton_version}: {listed}",
        fix=f"pip install --force-reinstall triton=={audited.triton_version}",
    )


def read_build_id(path: Path) -> str | None:
    """GNU build-id of the x86_64 ELF file at `path` in lower-case hex, None if it has none."""
    with path.open("rb") as file:
        header = file.read(64)
        if not header.startswith(ELF64_LITTLE_ENDIAN) or len(header) < 64:
            return None
        (table_offset,) = struct.unpack_from("<Q", header, 0x20)
        entry_size, num_entries = struct.unpack_from("<HH", header, 0x36)
        file.seek(table_offset)
        table = file.read(entry_size * num_entries)
        for start in range(0, len(table) - 55, entry_size):
            kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", table, start)
            if kind == PT_NOTE and (build_id := _build_id_in_notes(file, offset, size)):
                return build_id
    return None


def _build_id_in_notes(file: BinaryIO, offset: int, size: int) -> str | None:
    file.seek(offset)
    notes = file.read(size)
    at = 0
    while at + 12 <= len(notes):
        name_size, content_size, kind = struct.unpack_from("<III", notes, at)
        content = at + 12 + _aligned(name_size)
        if kind == NT_GNU_BUILD_ID and notes[at + 12 : at + 12 + name_size] == b"GNU\0":
            return notes[content : content + content_size].hex()
        at = content + _aligned(content_size)
    return None


def _aligned(size: int) -> int:
    return (size + 3) & ~3
