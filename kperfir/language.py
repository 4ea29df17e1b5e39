"""Regions and events of your own inside a kernel, in `@triton.jit` and Gluon code.

    import kperfir.language as kl

    @triton.jit
    def kernel(...):
        for i in range(n):
            with kl.scope("load"):
                x = tl.load(pointers)
            kl.mark("tile", i)

Without kperfir they are nothing: the kernel is compiled to what it would be without them. With it, a scope is a region
of kind ``user`` and a mark an event of kind ``mark`` with its value (`Timeline.spans`, `Timeline.marks`).

Owns what Triton's front end makes of them. A scope is no operation, for Triton's passes could not move one along with
the operations it is around: it is part of their locations, and ``kperf-insert-scopes`` puts the records around what
became of them (passes/ScopeTags.h says how both are written). This is the only module of kperfir that user code
imports inside kernels.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from triton.language import core as tl

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ["mark", "scope"]

_SCOPE = "kperf.scope|"
_CALL = _SCOPE + "call "
_MARK = "// kperf.mark|"
_WIDEN = {"int1": "uint32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
# Types that a mark carries, with the letter that inline assembly has for them.
_CARRIED = {"int32": "r", "uint32": "r", "int64": "l", "uint64": "l", "fp32": "f", "fp64": "d"}


@tl.builtin  # type: ignore[untyped-decorator]
def scope(name: str, _semantic: Any = None, _generator: Any = None) -> _Scope:
    """A region named `name` around the body of a ``with``: ``with kl.scope("load"): ...``.

    Scopes nest, and a name may be used as often as you like. What the compiler moves out of the body, or into it, is
    not or is in the region: it is recorded around what the body became.

    Raises:
        TypeError: Not in a ``with``, or `name` is no constant text. Triton shows the line.
    """
    if _generator is not None:  # Triton hands it to calls; a `with` does without.
        raise TypeError('kl.scope is a region around the body of a `with`: write `with kl.scope("name"):`')
    text = _constant_text(name, "kl.scope")
    return _Scope(text, _semantic.builder if _is_recorded(_semantic, "user") else None)


@tl.builtin  # type: ignore[untyped-decorator]
def mark(name: str, value: Any = None, _semantic: Any = None) -> None:
    """An event named `name`, at the time when a warp gets here, with `value` if that is given.

    Args:
        name: A constant text.
        value: An integer or floating-point scalar: a loop variable, a program id, a constant. Kept as i32, u32, i64,
            u64, f32 or f64, whichever holds all values of its type.

    Raises:
        TypeError: `name` is no constant text, or `value` is a tensor or a pointer. Triton shows the line.
    """
    text = _constant_text(name, "kl.mark")
    value = tl._unwrap_if_constexpr(value)
    _check_scalar(value)
    if not _is_recorded(_semantic, "mark"):
        return
    builder = _semantic.builder
    values, constraints, sign = [], "=r", "i"
    if value is not None:
        carried = _widen(_semantic.to_tensor(value), _semantic)
        values = [carried.handle]
        constraints += "," + _CARRIED[carried.dtype.name]
        sign = "u" if carried.dtype.is_int_unsigned() else "i"
    comment = f"{_MARK}{sign}|{quote(text)}"
    builder.create_inline_asm(comment, constraints, values, [builder.get_int32_ty()], False, 1)


class _Scope:
    """While it is open, operations get locations that name it. Without `builder` it does nothing."""

    def __init__(self, name: str, builder: Any) -> None:
        self.name = name
        self.builder = builder

    def __enter__(self) -> None:
        if self.builder is None:
            return
        hook = sys.modules["kperfir.compile.triton_hook"]
        hook.wrap_builder(_WRAPPERS)
        _OpenScopes.of(self.builder).push(self.name, self.builder.get_loc())
        self.builder.set_loc(self.builder.get_loc())
        if self.builder.get_loc().get_name() is None:  # TRITON_DISABLE_LINE_INFO: there are no locations.
            hook.note_hidden_scopes(self.builder.options)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.builder is not None:
            _OpenScopes.of(self.builder).tags.pop()


class _OpenScopes:
    """The open scopes of one function while its code is generated: an attribute of the builder, which it must not hold.

    Attributes:
        tags: A text per open scope, outermost first.
        count: Scopes that were opened, and calls that were made, so far.
    """

    def __init__(self) -> None:
        self.tags: list[str] = []
        self.count = 0

    @staticmethod
    def of(builder: Any) -> _OpenScopes:
        scopes: _OpenScopes | None = getattr(builder, "kperfir_scopes", None)
        if scopes is None:
            scopes = builder.kperfir_scopes = _OpenScopes()
        return scopes

    def push(self, name: str, location: Any) -> None:
        line, column = _line_and_column(location)
        self.tags.append(f"{line}:{column}:{self.count}:{quote(name)}")
        self.count += 1


def _tagging(set_loc: Callable[..., None]) -> Callable[..., None]:
    """Triton's `set_loc`, but with the builder's open scopes around the location, unless it has scopes already."""

    def set_tagged(builder: Any, *location: Any) -> None:
        set_loc(builder, *location)
        scopes: _OpenScopes | None = getattr(builder, "kperfir_scopes", None)
        if scopes is None or not scopes.tags:
            return
        here = builder.get_loc()
        if not (here.get_name() or "").startswith(_SCOPE):
            set_loc(builder, builder.create_name_loc(_SCOPE + "|".join(scopes.tags), here))

    return set_tagged


def _keeping(move: Callable[..., None]) -> Callable[..., None]:
    """A move of the insertion point that leaves the location alone: Triton takes over that of an operation there."""

    def move_only(builder: Any, *arguments: Any) -> None:
        scopes: _OpenScopes | None = getattr(builder, "kperfir_scopes", None)
        if scopes is None or not scopes.tags:
            move(builder, *arguments)
            return
        here = builder.get_loc()
        move(builder, *arguments)
        builder.set_loc(here)

    return move_only


def _numbering(call: Callable[..., Any]) -> Callable[..., Any]:
    """A call whose location is that of no other: code that is repeated calls several times from one place."""

    def call_numbered(builder: Any, *arguments: Any) -> Any:
        if not sys.modules["kperfir.compile.triton_hook"].has_scopes(builder.options):
            return call(builder, *arguments)
        scopes, here = _OpenScopes.of(builder), builder.get_loc()
        builder.set_loc(builder.create_name_loc(f"{_CALL}{scopes.count}", here))
        scopes.count += 1
        try:
            return call(builder, *arguments)
        finally:
            builder.set_loc(here)

    return call_numbered


_WRAPPERS = {
    "call": _numbering,
    "set_loc": _tagging,
    "restore_insertion_point": _keeping,
    "set_insertion_point_after": _keeping,
    "set_insertion_point_to_end": _keeping,
    "set_insertion_point_to_start": _keeping,
}


def _line_and_column(location: Any) -> tuple[int, int]:
    """Of a location that Triton's front end made: its text ends in ``:line:column)``. Zeros without line info."""
    found = re.search(r":(\d+):(\d+)\)+$", str(location))
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _is_recorded(semantic: Any, kind: str) -> bool:
    """Whether kperfir takes part in the compilation that this belongs to: it then finds what is left here."""
    hook = sys.modules.get("kperfir.compile.triton_hook")  # Not imported: not active.
    return hook is not None and hook.takes_part(semantic.builder.options, kind)


def _constant_text(name: Any, function: str) -> str:
    text = tl._unwrap_if_constexpr(name)
    if not isinstance(text, str) or not text:
        raise TypeError(f"{function} needs a constant text for a name, found {text!r}")
    return text


def _check_scalar(value: Any) -> None:
    if value is None or isinstance(value, bool | int | float):
        return
    kind = getattr(value, "type", None)
    scalar = isinstance(kind, tl.dtype) and (kind.is_int() or kind.is_floating())
    if not scalar:
        raise TypeError(f"kl.mark carries an integer or floating-point scalar, found {kind or type(value).__name__}")


def _widen(value: Any, semantic: Any) -> Any:
    """`value` as one of the types that a mark carries."""
    name = value.dtype.name
    if name in _CARRIED:
        return value
    return value.to(getattr(tl, _WIDEN.get(name, "float32")), _semantic=semantic)
