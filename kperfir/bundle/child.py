"""Try something in a child process that may end it: LLVM does so over kernels that a target cannot have."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_REASON_CHARACTERS = 500


def failure_in_child(work: Callable[[], object]) -> str:
    """Do `work` in a fork of this process, with its output kept away; return why it failed, empty if it did not."""
    with tempfile.TemporaryFile() as output:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            _be_child(work, output.fileno())
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0:
            return ""
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    said = next((line for line in reversed(lines) if line.strip()), "")[:_REASON_CHARACTERS]
    return said if code > 0 else f"the compiler ended its process (signal {-code}): {said}"


def _be_child(work: Callable[[], object], output: int) -> None:
    code = 1
    try:
        os.dup2(output, 1)
        os.dup2(output, 2)
        work()
        code = 0
    except BaseException as error:
        text = " ".join(str(error).split())
        os.write(output, f"\n{type(error).__name__}: {text}".encode()[:_REASON_CHARACTERS])
    finally:
        with contextlib.suppress(OSError):
            os.fsync(output)
        os._exit(code)  # Nothing that the parent has set up for its own end.
