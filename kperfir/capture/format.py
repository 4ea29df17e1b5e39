"""The bytes of a .kpf file: file header, chunk headers, bounds. lib/Record/FORMAT.md draws them.

A file is a header and then chunks, only ever appended. A chunk is a header, a JSON object (`meta`) and raw bytes
(`blob`), each with a CRC. The writer and the reader share this module and nothing else.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

FORMAT_VERSION = 1
OLDEST_READABLE_VERSION = 1

# As in PNG: a text-mode copy changes the line ends, and ^Z stops a terminal.
MAGIC = b"KPF\0\r\n\x1a\n"

# Magic, format version, writer version, CRC of what is before.
_FILE_HEADER = struct.Struct("<8sI16sI")
# Kind, sequence, blob bytes, meta bytes, meta CRC, blob CRC, CRC of what is before.
_CHUNK_HEADER = struct.Struct("<4sIQIIII")
FILE_HEADER_BYTES = _FILE_HEADER.size
CHUNK_HEADER_BYTES = _CHUNK_HEADER.size

PROCESS = b"PROC"
KERNEL = b"KERN"
LAUNCH = b"LNCH"
LAP = b"LAP\0"
SKIPPED = b"SKIP"
END = b"END\0"
KINDS = (PROCESS, KERNEL, LAP, LAUNCH, SKIPPED, END)

DEFLATE = "deflate"

MAX_META_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much one process may write.

    Args:
        launches_per_kernel: The first so many launches of each kernel are kept.
        file_bytes: A launch that would make the file larger than this is not kept.
    """

    launches_per_kernel: int = 16
    file_bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class ChunkHeader:
    """Fixed part of a chunk; sizes in bytes."""

    kind: bytes
    sequence: int
    blob_bytes: int
    meta_bytes: int
    meta_crc: int
    blob_crc: int


def pack_file_header(writer_version: str) -> bytes:
    """`FILE_HEADER_BYTES` bytes; the version is cut to 16 ASCII characters."""
    version = writer_version.encode("ascii", "replace")[:16]
    checked = _FILE_HEADER.pack(MAGIC, FORMAT_VERSION, version, 0)[:-4]
    return checked + struct.pack("<I", zlib.crc32(checked))


def unpack_file_header(data: bytes) -> tuple[int, str, bool]:
    """(format version, writer version, CRC matches) of a header whose magic is right."""
    _, version, writer, crc = _FILE_HEADER.unpack(data)
    return version, writer.rstrip(b"\0").decode("ascii", "replace"), crc == zlib.crc32(data[:-4])


def pack_chunk(kind: bytes, sequence: int, meta: dict[str, Any], blob: bytes = b"") -> bytes:
    """A whole chunk, ready to append."""
    # What is no Unicode, such as a byte of a file's name, becomes JSON's own escape of it.
    content = json.dumps(meta, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = content.encode(errors="backslashreplace")
    checked = _CHUNK_HEADER.pack(kind, sequence, len(blob), len(text), zlib.crc32(text), zlib.crc32(blob), 0)[:-4]
    return b"".join((checked, struct.pack("<I", zlib.crc32(checked)), text, blob))


def unpack_chunk_header(data: bytes) -> ChunkHeader | None:
    """None if the header's own CRC does not match."""
    *fields, crc = _CHUNK_HEADER.unpack(data)
    return ChunkHeader(*fields) if crc == zlib.crc32(data[:-4]) else None
