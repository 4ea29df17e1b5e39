"""What every test shares: settings of Triton, the SIMT device, scripts run in a child process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kperfir.runtime.simt import SimtDriver

TEST = Path(__file__).resolve().parent
# A child that hangs is a failed test, not a run that never ends.
CHILD_SECONDS = 300

# What the references assume, and what Triton 3.9 warns about unless it is asked for. Set before Triton is imported.
os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"

RunPython = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session", autouse=True)
def triton_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compile cache of this test run, so that no kernel of an earlier kperfir is found."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # Workers share what they compile.
    folder = base / "triton-cache"
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    return folder


@pytest.fixture(scope="session", autouse=True)
def outside_the_checkout(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests and their children run in an empty folder: in the checkout, `python -c` imports the sources, unbuilt."""
    os.chdir(tmp_path_factory.mktemp("work"))


@pytest.fixture(autouse=True)
def undone_hooks() -> Iterator[None]:
    """Whoever changes how Triton compiles undoes it: else later tests, and what they find in the cache, are wrong."""

    def hook() -> object:
        return sys.modules["triton"].knobs.runtime.add_stages_inspection_hook if "triton" in sys.modules else None

    before = hook()
    yield
    left = hook()
    if left is not before:
        sys.modules["triton"].knobs.runtime.add_stages_inspection_hook = before
        pytest.fail(f"the test leaves {left} in Triton's compiler")


@pytest.fixture
def simt_device() -> Iterator[SimtDriver]:
    """The SIMT device, active as Triton's driver."""
    from support.launch import simt

    with simt() as driver:
        yield driver


@pytest.fixture(scope="session")
def run_python(triton_cache: Path) -> RunPython:
    """Run Python in a child process: `run_python("-c", source, TRITON_KPERF="1")`; keywords are variables."""

    def run(*arguments: str | Path, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
        path = os.pathsep.join([str(TEST), *filter(None, [kept.get("PYTHONPATH")])])
        triton = {"TRITON_CACHE_DIR": str(triton_cache), "TRITON_DEFAULT_FP_FUSION": "1"}
        return subprocess.run(
            [sys.executable, "-P", *map(str, arguments)],  # The installed kperfir, not a checkout we may stand in.
            cwd=cwd,
            env=kept | triton | {"PYTHONPATH": path} | variables,
            check=False,
            capture_output=True,
            text=True,
            timeout=CHILD_SECONDS,
        )

    return run
