"""Every exception that kperfir raises, and the one form of their messages.

    raise CaptureError("not-a-kpf-file", where=str(path), found="bytes 7f 45 4c 46", expected="magic", fix="...")

A message has four parts: what went wrong, where, what was found and expected, and what to do about it. `code` is
stable: programs may test it, and the sentence for it is in `WHAT` unless the one who raises it gives a better one.
This module imports nothing of kperfir, so that every other module can import it.
"""

from __future__ import annotations

import sys
import warnings

WHAT: dict[str, str] = {
    # Options and command line
    "unknown-option": "there is no such option",
    "bad-option": "an option has a value that it cannot have",
    "no-capture": "no capture was named",
    # Installation
    "native-missing": "the native module of kperfir cannot be imported",
    # Exports
    "not-nested": "the spans of a warp do not form a tree",
    # Layout: what the compiler says about a profile buffer
    "bad-layout": "the layout of the profile buffer is not valid",
    "layout-version": "the layout of the profile buffer has another version",
    "layout-hash": "the layout of the profile buffer was changed after it was compiled",
    # Device buffer
    "needs-records": "sums of executions do not tell this",
    "size-mismatch": "the profile buffer and its layout disagree in size",
    "corrupt-buffer": "a profile buffer cannot be decoded",
    "no-records": "a launch left no records",
    "no-room": "there is no memory for the records of a launch",
    "internal": "kperfir itself has failed",
    # .kpf file
    "not-a-kpf-file": "the file is not a kperfir capture",
    "newer-format": "the capture was written by a newer kperfir",
    "older-format": "the capture was written by a kperfir that is too old",
    "corrupt-file": "the capture file is damaged",
    "empty-capture": "the capture holds no data",
    "file-busy": "the capture file is being written by another process",
    "file-missing": "the capture file cannot be opened",
    "write-failed": "the capture file cannot be written",
    "writer-closed": "the capture file is already closed",
    "wrong-process": "a capture file belongs to the process that opened it",
    # Bundle
    "no-bundle": "there is no bundle",
    "bad-bundle": "the bundle is damaged",
    "bundle-version": "the bundle is of another version",
    "wrong-target": "no kernel of the bundle was compiled for this device",
    "empty-bundle": "there is nothing to put into a bundle",
    "no-results": "the bundle has not been run",
}


class KPerfError(Exception):
    """Base of all errors of kperfir.

    Attributes:
        code: Stable name of the error, such as ``corrupt-file``.
        what: One sentence that says what went wrong.
        where: File, kernel, CTA, option: what the error is about. May be empty, as may the next three.
        found: What was found there.
        expected: What should have been there.
        fix: What the user can do.
    """

    exit_code = 1

    def __init__(
        self, code: str, *, what: str = "", where: str = "", found: str = "", expected: str = "", fix: str = ""
    ) -> None:
        self.code = code
        self.what = what or WHAT.get(code, code.replace("-", " "))
        self.where = where
        self.found = found
        self.expected = expected
        self.fix = fix
        super().__init__(code)

    def __str__(self) -> str:
        lines = [f"{self.what} [{self.code}]"]
        for name in ("where", "found", "expected", "fix"):
            text = getattr(self, name)
            if text:
                lines.append(f"  {name}: {text}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # The keyword arguments travel as state: multiprocessing sends exceptions between processes.
        return (type(self), (self.code,), self.__dict__)


class UsageError(KPerfError):
    """The caller asked for something that cannot be done: wrong argument, wrong order of calls."""

    exit_code = 2


class ConfigError(UsageError):
    """An option or environment variable has a name or value that kperfir does not know."""


class CompileError(KPerfError):
    """A kernel cannot be instrumented. Turned into one warning; the kernel then runs as it is."""


class PluginError(KPerfError):
    """The compiler plugin cannot be loaded into this Triton."""


class DeviceError(KPerfError):
    """A kernel failed on a device, or a device is absent."""


class CaptureError(KPerfError):
    """A profile buffer or a .kpf file cannot be written, read or decoded."""


class BundleError(KPerfError):
    """A folder of compiled kernels cannot be made or run."""


class ExportError(KPerfError):
    """A timeline cannot be written in another format."""


def as_ours(error: Exception, where: str) -> KPerfError:
    """Return `error` if it is of kperfir, and else one that says of it that nobody expected it."""
    if isinstance(error, KPerfError):
        return error
    text = (str(error) or "no message").splitlines()[0]
    return CaptureError("internal", where=where, found=f"{type(error).__name__}: {text}", fix="report it")


class KPerfWarning(UserWarning):
    """Something was not measured as asked; the program goes on."""


def warn(message: str) -> None:
    """Warn; where a filter makes errors of warnings, say it on stderr: no compile or launch may end because of it."""
    try:
        warnings.warn(message, KPerfWarning, stacklevel=2)
    except KPerfWarning:
        print(f"kperfir: warning: {message}", file=sys.stderr)
