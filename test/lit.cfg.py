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
config.substitutions.append(("kperfir", f"{sys.executable} -m kperfir"))  # noqa: F821
config.substitutions.append(("filecheck", f"{Path(sys.executable).parent / 'filecheck'}"))  # noqa: F821
config.environment |= {  # noqa: F821
    "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    "TRITON_DEFAULT_FP_FUSION": "1",
    "PATH": os.environ["PATH"],
}
