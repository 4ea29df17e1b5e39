"""Run a part of a compilation that may fail, and say why it did.

Owns what is said about a failure: MLIR prints diagnostics to file descriptor 2, what ptxas says goes to stdout.
Both are held back during an attempt, and become the reason if it fails.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Result = TypeVar("Result")

_DIAGNOSTIC = re.compile(r"\berror: (.*)")
# As in "ptxas x.ptx, line 367; fatal   : Parsing error near 'x'"; Triton's own error goes on with a command.
_OF_PTXAS = re.compile(r"^ptxas .*?\b((?:error|fatal)\s*: .*)$", re.MULTILINE)
_capturing = threading.Lock()


def attempt(action: Callable[[], Result]) -> tuple[Any, str | None]:
    """Run `action`.

    Returns:
        Its result and None, or None and one line that says why it failed. Errors that are not about the compilation,
        such as KeyboardInterrupt, are raised.
    """
    with hold_output() as output:
        try:
            result = action()
        except Exception as error:  # Whatever Triton raises, the plain compile is the answer.
            output.dropped = True
            return None, explain(error, output.read())
    return result, None


def explain(error: Exception, printed: str) -> str:
    """One line for an error and the diagnostics that were printed before it."""
    diagnostics = [match[1].strip() for match in _DIAGNOSTIC.finditer(printed)]
    if diagnostics:
        return diagnostics[0]
    if found := _OF_PTXAS.search(str(error)):
        return f"ptxas: {' '.join(found[1].split())}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class Output:
    """What a process writes to file descriptor 2 (`file`) and to sys.stdout (`out`), for a while."""

    def __init__(self, file: IO[bytes]) -> None:
        self.dropped = False
        self.out = io.StringIO()
        self.file = file

    def read(self) -> str:
        """All of it so far."""
        return self.read_errors().decode(errors="replace") + self.out.getvalue()

    def read_errors(self) -> bytes:
        """What went to file descriptor 2."""
        return os.pread(self.file.fileno(), os.fstat(self.file.fileno()).st_size, 0)


@contextlib.contextmanager
def hold_output() -> Iterator[Output]:
    """Hold output back and let it go afterwards, unless it was dropped. Of concurrent attempts only one does so."""
    holds = _has_streams()  # Asked before a file can take the place of descriptor 2.
    with os.fdopen(os.memfd_create("kperfir-output"), "w+b", buffering=0) as file:
        output = Output(file)
        if not (holds and _capturing.acquire(blocking=False)):
            yield output
            return
        _flush_errors()
        real = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            with contextlib.redirect_stdout(output.out):
                yield output
        finally:
            _flush_errors()
            os.dup2(real, 2)
            os.close(real)
            if not output.dropped:
                _let_go(output)
            _capturing.release()


# Streams may be whatever a program has put there, or lead to nobody: no compile ends because of that.


def _flush_errors() -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.flush()


def _let_go(output: Output) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stdout.write(output.out.getvalue())
    with contextlib.suppress(OSError):
        os.write(2, output.read_errors())


def _has_streams() -> bool:
    """Tell whether there is anything to hold back: a service may have closed its output."""
    if any(stream is None or getattr(stream, "closed", False) for stream in (sys.stdout, sys.stderr)):
        return False
    try:
        os.fstat(2)
    except OSError:
        return False
    return True


def parse_module(text: str, context: Any) -> Any:
    """Parse the text of a TTGIR module into `context`."""
    from triton._C.libtriton import ir

    with tempfile.TemporaryDirectory(prefix="kperfir-") as folder:
        path = Path(folder) / "module.ttgir"
        path.write_text(text, encoding="utf-8")
        module = ir.parse_mlir_module(str(path), context)
    module.context = context
    return module
