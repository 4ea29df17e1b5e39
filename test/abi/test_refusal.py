"""A libtriton that was not audited is refused, by Python before loading and by the plugin itself."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kperfir
from kperfir.compile.abi import audited_triton, check_libtriton, installed_libtriton, read_build_id
from kperfir.errors import PluginError

PLUGIN = Path(kperfir.__file__).with_name("libkperfir_plugin.so")
UNKNOWN_BUILD_ID = "00" * 20
LOAD = "import sys; from triton._C.libtriton import ir; ir.extend_dialects_with(sys.argv[1])"


@pytest.fixture(scope="module")
def foreign_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose `triton` is the installed one but for the build-id of its library."""
    site = tmp_path_factory.mktemp("site")
    original = installed_libtriton().parent.parent
    shutil.copytree(original, site / "triton", ignore=shutil.ignore_patterns("_C", "__pycache__"), symlinks=True)
    (site / "triton" / "_C").mkdir()
    data = bytearray(installed_libtriton().read_bytes())
    build_id = bytes.fromhex(read_build_id(installed_libtriton()) or "")
    at = data.index(build_id)
    data[at : at + len(build_id)] = bytes.fromhex(UNKNOWN_BUILD_ID)
    (site / "triton" / "_C" / "libtriton.so").write_bytes(data)
    return site


def test_installed_libtriton_is_audited() -> None:
    assert check_libtriton() in audited_triton().builds


def test_check_names_found_and_expected_when_build_is_unknown(foreign_site: Path) -> None:
    with pytest.raises(PluginError) as caught:
        check_libtriton(foreign_site / "triton" / "_C" / "libtriton.so")
    assert UNKNOWN_BUILD_ID in caught.value.found
    assert all(build.build_id in caught.value.expected for build in audited_triton().builds)
    assert "triton==" in caught.value.fix


def test_check_says_so_when_a_library_has_no_build_id(tmp_path: Path) -> None:
    library = tmp_path / "libtriton.so"
    library.write_bytes(b"not an ELF file")
    with pytest.raises(PluginError, match="build-id none"):
        check_libtriton(library)


def test_plugin_loads_into_the_installed_libtriton() -> None:
    subprocess.run([sys.executable, "-c", LOAD, PLUGIN], check=True, capture_output=True)


def test_plugin_refuses_when_build_is_unknown(foreign_site: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", LOAD, PLUGIN],
        env={"PYTHONPATH": str(foreign_site)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 1, "a Python exception, not a crash"
    assert f"found build-id {UNKNOWN_BUILD_ID}" in result.stderr
    assert audited_triton().builds[0].build_id in result.stderr
