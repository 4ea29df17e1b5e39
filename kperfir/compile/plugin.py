"""Load libkperfir_plugin.so into Triton, once per process.

Owns where the plugin is and what identifies it. Loading makes its dialects and passes known; it changes nothing in what
Triton compiles.
"""

from __future__ import annotations

import hashlib
import threading
from functools import cache
from pathlib import Path

from kperfir.compile.abi import check_libtriton
from kperfir.errors import PluginError

_lock = threading.Lock()


def plugin_path() -> Path:
    """Path of the plugin, beside the Python modules.

    Raises:
        PluginError: ``plugin-missing``.
    """
    path = Path(__file__).parent.parent / "libkperfir_plugin.so"
    if not path.is_file():
        raise PluginError(
            "plugin-missing",
            what="kperfir was installed without its compiler plugin",
            where=str(path),
            found="no such file",
            expected="the plugin that the wheel contains",
            fix="install the wheel of kperfir, or run `make`",
        )
    return path


@cache
def plugin_digest() -> str:
    """Identifies this build of the plugin, in 16 hex digits; part of Triton's cache key."""
    return hashlib.sha256(plugin_path().read_bytes()).hexdigest()[:16]


def load_plugin() -> None:
    """Make the plugin's dialects and passes known to Triton. Contexts made before that do not have the dialects.

    Raises:
        PluginError: If the plugin is missing, or was not audited against this Triton.
    """
    from triton._C.libtriton import ir, passes

    with _lock:
        if hasattr(passes.plugin, "add_kperf_plan_buffer"):
            return
        check_libtriton()
        path = str(plugin_path())
        # The dialects first: `ir.load_dialects` of a context made from now on includes them.
        ir.extend_dialects_with(path)
        passes.plugin.extend_with(path)
