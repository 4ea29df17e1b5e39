"""Every PTX instruction that the device implements has a test: none can be added without one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kperfir._native import simt

if TYPE_CHECKING:
    from conftest import RunPython

HERE = Path(__file__).parent
_BASIC = re.compile(r"(add|sub|mul|fma|mad)\.rn\.")
_COMBINED = re.compile(r"(setp?\.\w+)\.(and|or|xor)\.")


@pytest.fixture(scope="module")
def checked(run_python: RunPython, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What the other modules of this folder check, as the instruction table spells it."""
    out = tmp_path_factory.mktemp("forms") / "forms.txt"
    modules = [path for path in sorted(HERE.glob("test_*.py")) if path != Path(__file__)]
    run_python(
        "-m", "pytest", "-q", "-p", "no:xdist", "-p", "support.ptx_forms", "-c", HERE.parents[2] / "pyproject.toml", *modules,
        PTX_FORMS_OUT=str(out),
    )  # fmt: skip
    return {_COMBINED.sub(r"\1.", _BASIC.sub(r"\1.", mnemonic)) for mnemonic in out.read_text().split()}


def test_every_row_of_the_instruction_table_is_checked(checked: set[str]) -> None:
    table, _ = simt.instruction_forms()
    assert len(table) > 1000
    assert sorted(set(table) - checked) == []


def test_every_instruction_of_the_engine_is_checked(checked: set[str]) -> None:
    _, prefixes = simt.instruction_forms()
    assert len(prefixes) > 40
    assert [prefix for prefix in prefixes if not any(f"{name}.".startswith(f"{prefix}.") for name in checked)] == []
