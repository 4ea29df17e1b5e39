"""What a capture says of a compiled kernel: its layout, how it was compiled, what is predicted of its accesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kperfir.compile.metadata import ACCESSES_KEY, LAYOUT_KEY, NOTE_KEY, REASON_KEY
from kperfir.compile.source_file import source_file


@dataclass(frozen=True, slots=True)
class Kernel:
    """A compiled kernel. `layout` is the JSON of its profile buffer, empty if it was compiled without
    instrumentation.
    """

    name: str
    layout: str
    facts: dict[str, Any] = field(hash=False)


def describe_kernel(compiled: Any) -> Kernel:
    """Return what a capture says about a kernel that Triton has compiled."""
    source, metadata = compiled.src, compiled.metadata
    target = metadata.target
    facts: dict[str, Any] = {
        "hash": metadata.hash,
        "target": f"{target.backend}:{target.arch}",
        "num_warps": metadata.num_warps,
        "num_ctas": metadata.num_ctas,
        "num_stages": getattr(metadata, "num_stages", None),
        "shared_bytes": metadata.shared,
        "scratch_bytes": metadata.profile_scratch_size,
        "scratch_align": metadata.profile_scratch_align,
        "signature": {str(name): _plain(kind) for name, kind in source.signature.items()},
    }
    if file := source_file(source):
        facts["file"] = file
    function = getattr(source, "fn", None)
    if function is not None:
        facts["line"] = function.starting_line_number
        names = function.arg_names
        facts["constants"] = {
            ".".join([names[path[0]], *map(str, path[1:])]): _plain(value) for path, value in source.constants.items()
        }
    reason = getattr(metadata, REASON_KEY, "")
    if reason:
        facts["not_instrumented"] = reason
    if note := getattr(metadata, NOTE_KEY, ""):
        facts["note"] = note
    layout = layout_of(compiled)
    if accesses := _predicted(compiled, layout, getattr(metadata, ACCESSES_KEY, "")):
        facts["accesses"] = accesses
    return Kernel(metadata.name, layout, facts)


def layout_of(compiled: Any) -> str:
    """Return the JSON of the profile buffer of a kernel, empty if it has none of ours."""
    layout = getattr(getattr(compiled, "metadata", None), LAYOUT_KEY, None)
    return layout if isinstance(layout, str) else ""


def _predicted(compiled: Any, layout: str, accesses: str) -> dict[str, Any] | None:
    """Return what is predicted of the accesses of a kernel; without it a kernel is as good as with it."""
    if not (layout and accesses):
        return None
    from kperfir.compile.access_shapes import from_text
    from kperfir.compile.accesses import predict

    try:
        return predict(from_text(accesses), layout, compiled.asm.get("ptx", ""))
    except Exception:  # Assembly that another tool has changed.
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool, type(None))):
        return value
    return [_plain(item) for item in value] if isinstance(value, (tuple, list)) else str(value)
