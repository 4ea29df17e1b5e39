"""Build test/support/fake_cuda.cpp: a libcuda.so.1 without a GPU."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".cpp")
_NAME = "libcuda.so.1"


def build_fake_cuda(folder: Path) -> Path:
    """Compile it into `folder`, against the cuda.h of Triton's wheel; returns the library's path."""
    triton = find_spec("triton")
    assert triton is not None
    assert triton.submodule_search_locations
    include = Path(triton.submodule_search_locations[0]) / "backends" / "nvidia" / "include"
    library = folder / _NAME
    compiler = [os.environ.get("CXX", "g++"), "-std=c++20", "-O1", "-shared", "-fPIC", f"-Wl,-soname,{_NAME}"]
    subprocess.run([*compiler, "-isystem", str(include), str(SOURCE), "-o", str(library)], check=True)
    return library
