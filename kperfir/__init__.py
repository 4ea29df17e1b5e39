"""Timelines from inside Triton kernels.

with kperfir.profile("out.kpf", kernels="matmul*") as p: ...
timeline = kperfir.load("out.kpf")
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kperfir.errors import (
        BundleError,
        CaptureError,
        CompileError,
        ConfigError,
        DeviceError,
        ExportError,
        KPerfError,
        KPerfWarning,
        PluginError,
        UsageError,
    )
    from kperfir.runtime.arrays import simt_array
    from kperfir.session import profile
    from kperfir.timeline import Timeline, load

_ERRORS = (
    "BundleError", "CaptureError", "CompileError", "ConfigError", "DeviceError", "ExportError", "KPerfError",
    "KPerfWarning", "PluginError", "UsageError",
)  # fmt: skip
# Where each public name lives. Imported when first used: `import kperfir` costs nothing.
_HOMES = {
    "Timeline": "kperfir.timeline",
    "load": "kperfir.timeline",
    "profile": "kperfir.session",
    "simt_array": "kperfir.runtime.arrays",
    **dict.fromkeys(_ERRORS, "kperfir.errors"),
}

__all__ = [
    "BundleError",
    "CaptureError",
    "CompileError",
    "ConfigError",
    "DeviceError",
    "ExportError",
    "KPerfError",
    "KPerfWarning",
    "PluginError",
    "Timeline",
    "UsageError",
    "load",
    "profile",
    "simt_array",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'kperfir' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
