"""What a program adds to kperfir's part of a compilation: callbacks, pipelines, patches around Triton's passes.

Owns the registry and what of it enters Triton's cache key. `kperfir.compile.triton_hook` runs it: it is the only module
that changes how Triton compiles.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import hashlib
import inspect
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, unquote

from kperfir.compile.pipeline import PassCall, Pipeline
from kperfir.errors import CompileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kperfir.passes.view import Kernel

    Callback = Callable[[Kernel], None]

Entry = TypeVar("Entry")

STAGES = ("ttir", "ttgir")

# Reentrant: making a key asks for the repr of what a callback holds, which is the user's code.
_lock = threading.RLock()


@dataclass(frozen=True, slots=True)
class PassPatch:
    """Pipelines around a pass of Triton's; a text may be empty."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Custom:
    """All that is in force. Replaced as a whole when something changes, so that a compilation sees one state.

    Attributes:
        requests: Callbacks, asked for regions and marks in this order, each with whether it leaves those regions in
            that are made without being asked for.
        pipelines: Stage and pipeline, in the order of their registration.
        patches: By the full name of the pass, such as ``ttgpuir.add_pipeline``.
        key: Tells states apart, for Triton's cache; empty where nothing is in force.
    """

    requests: tuple[tuple[Callback, bool], ...] = ()
    pipelines: tuple[tuple[str, str], ...] = ()
    patches: tuple[tuple[str, PassPatch], ...] = ()
    key: str = ""

    @property
    def callbacks(self) -> tuple[Callback, ...]:
        """Who is asked for regions and marks."""
        return tuple(callback for callback, _ in self.requests)

    @property
    def automatic(self) -> bool:
        """Whether regions are made without being asked for too: no callback is against it."""
        return all(automatic for _, automatic in self.requests)


_current = Custom()


def current() -> Custom:
    """What is in force."""
    return _current


@contextlib.contextmanager
def use(callback: Callback, *, automatic: bool = True) -> Iterator[None]:
    """Ask `callback` for the regions and marks of each kernel that is recorded, until the block ends.

    It is called once per compilation, with a `Kernel`, at the end of the ``ttgir`` stage. What it raises costs the
    kernel its records, with a warning, and nothing else.

    Args:
        callback: Called with a `Kernel`.
        automatic: False leaves out the regions that kperfir makes by itself.
    """
    request = (callback, automatic)
    _change(lambda now: {"requests": (*now.requests, request)})
    try:
        yield
    finally:
        _change(lambda now: {"requests": _without(now.requests, request)})


def add_pipeline(stage: str, pipeline: str | Pipeline | PassCall) -> None:
    """Run `pipeline` at the end of a stage of every kernel that is recorded: before kperfir's own passes.

    Args:
        stage: ``ttir`` or ``ttgir``.
        pipeline: Passes of kperfir's or of another plugin that is loaded.

    Raises:
        UsageError: ``no-such-stage``, ``bad-pipeline``.
    """
    if stage not in STAGES:
        raise UsageError(
            "no-such-stage", what="there is no such stage", found=stage, expected=f"one of {', '.join(STAGES)}"
        )
    entry = (stage, _checked(pipeline))
    _change(lambda now: {"pipelines": (*now.pipelines, entry)})


def remove_pipeline(stage: str, pipeline: str | Pipeline | PassCall) -> None:
    """Undo `add_pipeline`.

    Raises:
        UsageError: ``not-added``.
    """
    entry = (stage, _checked(pipeline))

    def remove(now: Custom) -> dict[str, Any]:
        if entry not in now.pipelines:
            raise UsageError("not-added", what="there is no such pipeline at that stage", found=f"{stage}: {entry[1]}")
        return {"pipelines": _without(now.pipelines, entry)}

    _change(remove)


def patch(pass_name: str, *, before: str | Pipeline | PassCall = "", after: str | Pipeline | PassCall = "") -> None:
    """Run pipelines before or after a pass of Triton's, of every kernel that is recorded.

    Args:
        pass_name: As Triton's Python bindings call it: ``pipeline``, ``ttgpuir.pipeline`` or ``ttgpuir.add_pipeline``.
        before: Pipeline to run before it; replaces an earlier one, as `after` does.
        after: Pipeline to run after it.

    Raises:
        UsageError: ``unknown-pass``, or ``ambiguous-pass`` where several modules have one of that name;
            ``bad-pipeline``.
    """
    name = _full_name(pass_name)
    entry = (name, PassPatch(_checked(before), _checked(after)))
    _change(lambda now: {"patches": (*_other_patches(now, name), entry)})


def unpatch(pass_name: str) -> None:
    """Undo `patch`.

    Raises:
        UsageError: ``not-patched``, ``unknown-pass``.
    """
    name = _full_name(pass_name)

    def remove(now: Custom) -> dict[str, Any]:
        left = _other_patches(now, name)
        if left == now.patches:
            raise UsageError("not-patched", what="nothing is patched around that pass", found=name)
        return {"patches": left}

    _change(remove)


def parse_kernel(text: str) -> Kernel:
    """Read the kernel of a module of TTIR or TTGIR, such as ``compiled.asm["ttgir"]``.

    Raises:
        CompileError: ``not-read``: it is no such text.
        PluginError: If the plugin cannot be loaded.
    """
    from triton._C.libtriton import ir

    from kperfir.compile.attempt import attempt, parse_module
    from kperfir.compile.custom_passes import read_kernel
    from kperfir.compile.plugin import load_plugin

    load_plugin()
    context = ir.context()
    ir.load_dialects(context)
    kernel, failure = attempt(lambda: read_kernel(parse_module(text, context)))
    if failure is not None:
        raise CompileError("not-read", what="a kernel cannot be read", found=failure, expected="TTIR or TTGIR")
    read: Kernel = kernel
    return read


def triton_passes() -> dict[str, tuple[Any, str]]:
    """Of each pass of Triton's, by its full name such as ``ttgpuir.add_pipeline``: module, and its name in that."""
    from triton._C.libtriton import amd, nvidia, passes

    found: dict[str, tuple[Any, str]] = {}
    for prefix, root in (("", passes), ("nvidia.", nvidia.passes), ("amd.", amd.passes)):
        for group, module in vars(root).items():
            if not isinstance(module, ModuleType) or group == "plugin":
                continue
            for name in dir(module):
                if name.startswith("add_"):
                    found[f"{prefix}{group}.{name}"] = (module, name)
    return found


def policy_flags() -> list[str]:
    """Flags of a C++ compiler that make a policy's shared library (kperfir/Policy.h).

    The headers of LLVM and MLIR 23.1 are not among them: add ``-isystem`` and where they are.
    """
    import kperfir
    from kperfir.compile.abi import installed_libtriton

    libtriton = installed_libtriton()
    headers = Path(kperfir.__path__[0]) / "include"
    return [
        *("-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-rtti", "-fno-exceptions", "-UNDEBUG"),
        f"-I{headers}",
        f"-isystem{libtriton.parent.parent / 'include'}",
        str(libtriton),
    ]


def run_policy(library: Path | str, policy: str) -> PassCall:
    """The pass that runs `policy` of a shared library, for `add_pipeline` and `patch`."""
    path = quote(str(Path(library).resolve()))
    return PassCall("kperf-run-policy", (f"library={path}", f"policy={policy}"))


def _full_name(text: str) -> str:
    names = list(triton_passes())
    group, _, short = text.replace("-", "_").rpartition(".")
    short = short if short.startswith("add_") else f"add_{short}"
    matching = [name for name in names if name.endswith(f".{short}") and name.rpartition(".")[0].endswith(group)]
    exact = [name for name in matching if name == f"{group}.{short}"]
    if len(matching) == 1 or exact:
        return (exact or matching)[0]
    close = difflib.get_close_matches(short, [name.rpartition(".")[2] for name in names], n=3)
    raise UsageError(
        "ambiguous-pass" if matching else "unknown-pass",
        what="several passes of Triton's have that name" if matching else "Triton has no such pass",
        where="kperfir.passes.patch",
        found=text,
        expected=", ".join(matching or close) or "a name of kperfir.passes.custom.triton_passes()",
        fix="give the module too, as in ttgpuir.pipeline" if matching else "",
    )


def _checked(pipeline: str | Pipeline | PassCall) -> str:
    return str(Pipeline.parse(str(pipeline)))


def _without(entries: tuple[Entry, ...], entry: Entry) -> tuple[Entry, ...]:
    """`entries` less the last one that equals `entry`."""
    at = len(entries) - 1 - entries[::-1].index(entry)
    return entries[:at] + entries[at + 1 :]


def _other_patches(state: Custom, name: str) -> tuple[tuple[str, PassPatch], ...]:
    return tuple(entry for entry in state.patches if entry[0] != name)


def _change(change: Callable[[Custom], dict[str, Any]]) -> None:
    """Replace what is in force; `change` sees the state that it changes, whatever other threads do."""
    global _current
    with _lock:
        state = dataclasses.replace(_current, key="", **change(_current))
        _current = state if state == Custom() else dataclasses.replace(state, key=_key(state))
    from kperfir.compile import triton_hook

    triton_hook.refresh()


def _key(state: Custom) -> str:
    texts = [repr((state.automatic, state.pipelines, state.patches))]
    for callback in state.callbacks:
        with contextlib.suppress(OSError, TypeError):
            texts.append(inspect.getsource(callback))
        cells = getattr(callback, "__closure__", None) or ()
        texts.append(repr((getattr(callback, "__qualname__", callback), [_content(cell) for cell in cells])))
        bound = [getattr(callback, name, None) for name in ("__defaults__", "__kwdefaults__", "__self__")]
        texts.append(repr(bound))
    texts += [_digest(Path(unquote(library))) for library in re.findall(r"\blibrary=([\w%/.-]+)", texts[0])]
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def _digest(library: Path) -> str:
    """Of a policy's code: the same path may hold another build."""
    try:
        return hashlib.sha256(library.read_bytes()).hexdigest()
    except OSError as error:
        return str(error)


def _content(cell: Any) -> str:
    try:
        return repr(cell.cell_contents)
    except ValueError:
        return ""
