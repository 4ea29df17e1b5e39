"""docs/user-guide.md says what is so: its settings, its fields, its examples."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kperfir.cli.main import VERBS
from kperfir.cli.report import SORTS
from kperfir.config import Options, Range

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Answer

GUIDE = (Path(__file__).parents[3] / "docs" / "user-guide.md").read_text()


def _table(first_header: str) -> list[list[str]]:
    """Cells of the table that starts with a column of this name."""
    lines = GUIDE.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"| {first_header} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def _code(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.M | re.S)


def _spell(default: object) -> str:
    if default is None:
        return "named after host and process"
    if isinstance(default, bool):
        return str(int(default))
    if default == ():
        return "all"
    is_list = isinstance(default, tuple) and not isinstance(default, Range)
    return f"`{','.join(default)}`" if is_list else f"`{default}`"


def test_settings_are_those_of_config() -> None:
    expected = [
        [f"`{f.metadata['variable']}`", f"`{f.name}`", _spell(f.default), f.metadata["meaning"]]
        for f in dataclasses.fields(Options)
    ]
    assert _table("variable") == expected


def test_columns_are_those_of_the_report(kperfir: Callable[..., Answer], lossy: Path) -> None:
    header = next(line for line in kperfir("report", lossy).out.splitlines() if line.startswith("region "))
    named = [title for row in _table("column") for title in row[0].split(", ")]
    assert re.split(r"\s{2,}", header.strip()) == named


def test_json_fields_are_those_of_the_report(kperfir: Callable[..., Answer], whole: Path) -> None:
    report = json.loads(kperfir("report", whole, "--json").out)
    (kernel,) = report["kernels"]
    fields = {}
    for names, meaning in _table("field"):
        for name in re.findall("`(.*?)`", names):
            fields[name] = set(re.findall("`([a-z0-9_]+)`", meaning))
    assert {name for name in fields if "." not in name} | {"kernels"} == set(report)
    assert {name.split(".")[1].removesuffix("[]") for name in fields if "." in name} == set(kernel)
    assert fields["kernels[].sms[]"] == set(kernel["sms"][0])
    assert fields["kernels[].rows[]"] - {"source"} == set(kernel["rows"][0]) - {"source"}


def test_sorts_and_verbs_are_named() -> None:
    assert all(f"`{name}`" in GUIDE or f"--sort {name}" in GUIDE for name in SORTS)
    assert all(f"kperfir {verb}" in GUIDE or f"`{verb}`" in GUIDE for verb in VERBS if verb not in ("version",))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.py, `python` and `kperfir`: the guide's program in it has run."""
    folder = tmp_path_factory.mktemp("guide")
    for name, arguments in (("python", ""), ("kperfir", "-m kperfir")):
        program = folder / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P {arguments} "$@"\n')
        program.chmod(0o755)
    first, *rest = _code("python")
    (folder / "example.py").write_text("\n".join([first, *rest]))
    # The program that knows nothing of kperfir: as the first example, without the profile.
    plain = first.replace("import kperfir\n", "from kperfir import simt_array\n").replace(
        "kperfir.simt_array", "simt_array"
    )
    plain = re.sub(r"^with kperfir.*\n    ", "", plain, flags=re.M)
    (folder / "train.py").write_text(re.sub(r"^print.*\n", "", plain, flags=re.M))
    return folder


def _run(workplace: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_KPERF")}
    environment["PATH"] = f"{workplace / 'bin'}:{environment['PATH']}"
    environment["TRITON_CACHE_DIR"] = str(workplace / "cache")
    return subprocess.run(command, cwd=workplace, env=environment, capture_output=True, text=True, check=False)


def test_python_examples_run(workplace: Path) -> None:
    done = _run(workplace, "python", "example.py")
    assert done.returncode == 0, done.stderr
    assert "1 launch of 1 kernel in " in done.stdout
    assert "out.kpf (simulated time)" in done.stdout
    assert "scale_rows" in done.stdout


def test_sample_report_is_of_the_example(workplace: Path) -> None:
    if not (workplace / "out.kpf").exists():
        _run(workplace, "python", "example.py")
    actual = _run(workplace, "kperfir", "report", "out.kpf").stdout
    (sample,) = _code("text")

    def regions(text: str) -> list[list[str]]:
        """Name, indentation included, and count."""
        rows = (re.match(r"( *[a-z_]+(?: example\.py:\d+(?:#\d)?)?) +(\d+)  ", line) for line in text.splitlines())
        return [list(row.groups()) for row in rows if row]

    assert len(regions(sample)) == 18
    assert regions(sample) == regions(actual)


@pytest.mark.parametrize("line", [line for block in _code("sh") for line in block.splitlines()])
def test_shell_examples_run(workplace: Path, line: str) -> None:
    if not (workplace / "out.kpf").exists():
        _run(workplace, "python", "example.py")
    done = _run(workplace, "bash", "-c", line)
    assert done.returncode == 0, done.stderr
    if "train.py" in line:
        assert "kperfir report" in done.stderr
