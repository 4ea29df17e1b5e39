"""Activation by the environment, up to the point where a session would start."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import kperfir
from kperfir import _activate

PTH = Path(sysconfig.get_paths()["purelib"]) / "kperfir_activate.pth"
SOURCE = Path(__file__).parents[3] / "kperfir" / "activate.pth"


def run_pth() -> None:
    exec(PTH.read_text(), {})


def test_pth_is_one_line_that_site_runs() -> None:
    lines = PTH.read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("import ")


def test_pth_imports_nothing_when_unset() -> None:
    code = f"""
import sys
before = set(sys.modules)
exec(open({str(PTH)!r}).read(), {{}})
assert set(sys.modules) == before, set(sys.modules) - before
"""
    subprocess.run([sys.executable, "-S", "-c", "import os\n" + code], check=True, env={})


@pytest.mark.parametrize("variable", ["TRITON_KPERF", "TRITON_KPERF_DEVICE"])
def test_pth_activates_when_a_variable_is_set(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(_activate, "activate", lambda: calls.append(variable))
    monkeypatch.setenv(variable, "1" if variable == "TRITON_KPERF" else "simt")
    run_pth()
    assert calls == [variable]


def test_import_of_kperfir_is_light() -> None:
    code = "import kperfir; heavy = {'triton', 'torch', 'numpy', 'pandas'} & set(sys.modules); assert not heavy, heavy"
    folder = str(Path(kperfir.__file__).parent.parent)
    subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {folder!r}); {code}"], check=True)


def test_public_names_are_all_there() -> None:
    assert {name for name in kperfir.__all__ if not hasattr(kperfir, name)} == set()
    with pytest.raises(AttributeError, match="no attribute 'profil'"):
        kperfir.profil  # noqa: B018


@pytest.fixture
def toy_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package called triton that is not imported yet."""
    package = tmp_path / "site" / "triton"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import triton.inner\nVALUE = triton.inner.VALUE\n")
    (package / "inner.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(str(package.parent))
    saved = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "triton"}
    for name in saved:
        monkeypatch.delitem(sys.modules, name)
    yield package
    for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
        del sys.modules[name]
    sys.modules.update(saved)


def test_finder_calls_back_once_after_the_import_and_leaves_no_trace(
    toy_triton: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def imported() -> None:
        seen.append(sys.modules["triton"].VALUE)

    finder = _activate._TritonFinder(imported)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    import triton

    assert isinstance(triton, ModuleType)
    assert seen == [7]
    assert finder not in sys.meta_path
    assert type(triton.__loader__).__name__ == "SourceFileLoader"
    assert triton.__spec__.loader is triton.__loader__


def test_finder_waits_when_triton_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    finder = _activate._TritonFinder(lambda: None)
    monkeypatch.setattr(sys, "meta_path", [finder])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert finder.find_spec("triton") is None
    assert finder in sys.meta_path


def test_installed_pth_is_the_one_of_the_sources() -> None:
    assert PTH.read_text() == SOURCE.read_text()
