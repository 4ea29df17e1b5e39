"""Lit configuration: compiler tests, run through `kperfir opt` and filecheck of this Python environment."""

import os
import sys
from pathlib import Path

import lit.formats

# lit puts `config` into the namespace of this file.
config.name = "kperfir"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(__file__).parent.parent / "build" / "lit")  # noqa: F821
# Regular expressions that match no part of a path: the project may lie in a folder called kperfir.
config.substitutions.append((r"kperfir opt ", f"{sys.executable} -m kperfir opt "))  # noqa: F821
config.substitutions.append((r"\| filecheck ", f"| {Path(sys.executable).parent / 'filecheck'} "))  # noqa: F821
config.environment |= {  # noqa: F821
    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    "TRITON_DEFAULT_FP_FUSION": "1",
    "PATH": os.environ["PATH"],
}
