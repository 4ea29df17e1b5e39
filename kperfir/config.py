"""Every setting of kperfir: its name, its environment variable, its default.

    options = resolve(out="out.kpf", kernels="matmul*")

Owns the environment variables `TRITON_KPERF*`: no other module reads them. A setting given as an argument wins over
the environment, which wins over the default. What the settings do belongs to the parts that read the `Options`.
"""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kperfir.errors import ConfigError, warn

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

PREFIX = "TRITON_KPERF"

# Set by an active process for its descendants, so that each of them writes a file of its own; not a setting.
OWNER_VARIABLE = f"{PREFIX}_OWNER_PID"

DEVICES = ("auto", "simt", "cuda", "hip")
STRATEGIES = ("saturate", "ring", "flush", "aggregate")
BUFFERS = ("auto", "shared", "global")
GRANULARITIES = ("warp", "warp-group", "cta")
# As lib/Dialect/KPerf/KPerfEnums.td spells them.
KINDS = (
    *("kernel", "loop", "iteration", "load", "store", "async_copy", "async_wait", "dot", "wgmma", "wgmma_wait"),
    *("tcgen05", "tma", "mbarrier_wait", "local_load", "local_store", "convert_layout", "reduce", "scan", "atomic"),
    *("barrier", "user", "mark", "call", "prologue", "epilogue", "compute", "between"),
)
# Sets of kinds; passes/RegionPolicy.cpp says which.
POLICIES = ("minimal", "auto", "memory", "mma", "sync", "full")

# Settings that machine code depends on; where it runs and what is kept of its launches is not among them.
OF_CODE = (
    "regions", "budget", "strategy", "buffer", "buffer_bytes", "batch", "ctas", "iterations", "sms", "warps",
    "granularity",
)  # fmt: skip

_TRUE = ("1", "true", "on", "yes")
_FALSE = ("", "0", "false", "off", "no")
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gib": 1 << 30}


def _flag(value: object) -> bool:
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise ValueError(f"one of {', '.join(_TRUE + _FALSE[1:])}")


def _count(value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError("a whole number, 0 or more")
    return number


def _waves(value: object) -> int:
    number = _count(value)
    if number in (1, 2):
        raise ValueError("0, or 3 and more: the first wave finds empty caches, and one alone has no successor")
    return number


def _batch(value: object) -> int:
    if str(value) not in ("1", "2", "4"):
        raise ValueError("1, 2 or 4")
    return int(str(value))


def _bytes(value: object) -> int:
    text = str(value).strip().lower()
    digits = text.rstrip("bgikm")
    if not digits.isdecimal() or text[len(digits) :] not in _UNITS:
        raise ValueError("a number of bytes, such as 65536, 64KiB or 256MiB")
    return int(digits) * _UNITS[text[len(digits) :]]


def _bytes_or_capture(value: object) -> int | str:
    try:
        return _bytes(value)
    except ValueError as error:
        if str(value).endswith(".kpf"):
            return str(Path(str(value)).absolute())
        raise ValueError(f"{error}, or a capture (.kpf) of the same kernels, which says how many it takes") from None


def _names(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    names = tuple(part.strip() for part in parts if part.strip())
    if not names:
        raise ValueError("at least one name")
    return names


def _kinds(value: object) -> tuple[str, ...]:
    names = _names(value)
    if not set(names) <= set(KINDS + POLICIES):
        raise ValueError(f"policies of {', '.join(POLICIES)}, and kinds of {', '.join(KINDS)}")
    return names


class Range(NamedTuple):
    """From `first` up to but without `last`, every `step`-th; a `last` of 0 is no end."""

    first: int = 0
    last: int = 0
    step: int = 1

    def __str__(self) -> str:
        return ":".join(map(str, self))


EVERY = Range()


def _range(value: object) -> Range:
    parts = str(value).split(":")
    try:
        first, last, step = (int(part or default) for part, default in zip((*parts, "", ""), "001", strict=False))
    except ValueError:
        first = -1
    if len(parts) > 3 or len(parts) < 2 or first < 0 or step < 1 or (last != 0 and last <= first):
        raise ValueError("first:last or first:last:step, such as 0:8, 4: or ::10")
    return Range(first, last, step)


def _numbers(value: object) -> tuple[int, ...]:
    parts = value.split(",") if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    try:
        numbers = tuple(int(part) for part in parts if str(part).strip())
    except ValueError:
        numbers = (-1,)
    if any(number < 0 for number in numbers):
        raise ValueError("whole numbers, comma separated")
    return numbers


def _one_of(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return str(value)

    return parse


def _path(value: object) -> str:
    if not str(value):
        raise ValueError("a file or folder name")
    return str(value)


def _setting(noun: str, default: object, parse: Callable[[object], Any], meaning: str) -> Any:
    variable = f"{PREFIX}_{noun}" if noun else PREFIX
    return field(default=default, metadata={"variable": variable, "parse": parse, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Options:
    """All settings of one profiling session. Build with `resolve`, which also reads the environment."""

    active: bool = _setting("", False, _flag, "1 profiles every kernel of the process, with no change to the script")
    # Not a `Path`, which would drop a trailing slash: that is how a folder that does not exist yet is named.
    out: str | None = _setting("OUT", None, _path, "file to write; a folder keeps the default name inside it")
    kernels: tuple[str, ...] = _setting(
        "KERNELS", ("*",), _names, "kernels to record: shell patterns of names or .py files"
    )
    regions: tuple[str, ...] = _setting(
        "REGIONS", ("auto",), _kinds, "what to record inside a kernel: policies or kinds"
    )
    budget: int = _setting(
        "BUDGET", 0, _count, "records per loop iteration, the least telling left out; 0 is any number"
    )
    device: str = _setting("DEVICE", "auto", _one_of(*DEVICES), "where kernels run; auto: simt if no GPU is visible")
    strategy: str = _setting(
        "STRATEGY", "saturate", _one_of(*STRATEGIES), "what is kept: first records, last ones, all, or sums"
    )
    buffer: str = _setting("BUFFER", "auto", _one_of(*BUFFERS), "where records are held while the kernel runs")
    buffer_bytes: int | str = _setting(
        "BUFFER_BYTES", 0, _bytes_or_capture, "bytes of records per CTA, or a .kpf to learn them from; 0 is automatic"
    )
    batch: int = _setting(
        "BATCH", 4, _batch, "records stored by one instruction: 1, 2 or 4; fewer take fewer registers"
    )
    ctas: tuple[int, int, int] = _setting("CTAS", EVERY, _range, "CTAs to record: first:last:step of the linear id")
    iterations: tuple[int, int, int] = _setting(
        "ITERATIONS", EVERY, _range, "iterations of each loop to record: first:last:step"
    )
    sms: tuple[int, int, int] = _setting("SMS", EVERY, _range, "SMs to record: first:last")
    warps: tuple[int, ...] = _setting("WARPS", (), _numbers, "warps of a CTA to record; empty is all")
    granularity: str = _setting(
        "GRANULARITY", "warp", _one_of(*GRANULARITIES), "which warps record: all, one of four, one per role"
    )
    first_launch: int = _setting("FIRST_LAUNCH", 0, _count, "launches of each kernel to let pass before one is kept")
    launches: int = _setting("LAUNCHES", 16, _count, "launches kept per kernel; later ones are counted")
    file_bytes: int = _setting("FILE_BYTES", 256 << 20, _bytes, "size of the file past which launches are counted only")
    launch_bytes: int = _setting(
        "LAUNCH_BYTES", 256 << 20, _bytes, "bytes a launch may record into; CTAs past them are left out, with 0 all"
    )
    simt_chip: str = _setting("SIMT_CHIP", "a100", str, "chip that is modelled: a name, sm_80, sm_90 or a JSON file")
    simt_threads: int = _setting("SIMT_THREADS", 0, _count, "host threads of the SIMT device; 0 is one per CPU")
    simt_seed: int = _setting("SIMT_SEED", 0, _count, "breaks ties in the warp scheduler of the SIMT device")
    simt_waves: int = _setting(
        "SIMT_WAVES", 0, _waves, "waves of CTAs of a large grid that the SIMT device simulates in detail; 0 is all"
    )
    quiet: bool = _setting("QUIET", False, _flag, "1 leaves out the line about the file at exit")

    def selects(self, kernel: str, file: str) -> bool:
        """Tell whether a kernel of that name, from that source file, is to be recorded."""
        return any(
            fnmatch.fnmatchcase(file, pattern) or fnmatch.fnmatchcase(file, f"*/{pattern}")
            if pattern.endswith(".py")
            else fnmatch.fnmatchcase(kernel, pattern)
            for pattern in self.kernels
        )

    def to_environment(self, names: Container[str] | None = None) -> dict[str, str]:
        """Return the variables that make a child process resolve to these options, or those of some names; defaults
        are left out.
        """
        texts: dict[str, str] = {}
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            if value != setting.default and (names is None or setting.name in names):
                texts[setting.metadata["variable"]] = _text(value)
        return texts


def variables() -> dict[str, str]:
    """Return each environment variable with one line on what it does, in order."""
    return {setting.metadata["variable"]: setting.metadata["meaning"] for setting in dataclasses.fields(Options)}


def resolve(environment: Mapping[str, str] | None = None, **arguments: object) -> Options:
    """Return the options in force: `arguments` that are not None, then the environment, then defaults.

    Args:
        environment: Variables to read; the process's own if None.
        **arguments: Fields of `Options`; texts are parsed like variables.

    Raises:
        ConfigError: ``unknown-option`` or ``bad-option``, naming the argument or variable and what it accepts.
    """
    environment = os.environ if environment is None else environment
    _warn_of_unknown(environment)
    settings = {setting.name: setting for setting in dataclasses.fields(Options)}
    for name in arguments:
        if name not in settings:
            raise ConfigError(
                "unknown-option",
                where=f"argument {name}",
                found=name,
                expected=f"one of {', '.join(settings)}",
                fix=_did_you_mean(name, settings) or "remove it",
            )
    values: dict[str, Any] = {}
    for name, setting in settings.items():
        variable = setting.metadata["variable"]
        if arguments.get(name) is not None:
            values[name] = _parsed(setting.metadata["parse"], arguments[name], f"argument {name}")
        elif variable in environment:
            values[name] = _parsed(setting.metadata["parse"], environment[variable], f"variable {variable}")
    options = Options(**values)
    if options.strategy == "flush" and options.buffer == "shared":
        raise ConfigError(
            "bad-option", where="strategy, buffer", found="flush with a shared buffer",
            expected="a global one: all records go there as they are made", fix="leave buffer out, or ask for global",
        )  # fmt: skip
    return options


def _parsed(parse: Callable[[object], Any], value: object, where: str) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise ConfigError(
            "bad-option", where=where, found=repr(value), expected=str(error), fix="give it such a value, or unset it"
        ) from None


def _warn_of_unknown(environment: Mapping[str, str]) -> None:
    known = variables()
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and name != OWNER_VARIABLE:
            hint = _did_you_mean(name, known)
            message = f"kperfir ignores the unknown environment variable {name}"
            warn(f"{message}; {hint}" if hint else message)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else ""


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    is_list = isinstance(value, tuple) and not isinstance(value, Range)
    return ",".join(map(str, value)) if is_list else str(value)  # type: ignore[call-overload]
