"""A pytest plugin that notes which PTX instructions the tests check: `pytest -p support.ptx_forms test/python/simt`.

The file that `PTX_FORMS_OUT` names gets a line per mnemonic. Code around the one under test (addresses, loads of
inputs, stores of results) does not count. References are not computed: whether results are right is for the tests
themselves, in a run without this plugin.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir._native import simt

from support import ptx_lab, ptx_lanes

if TYPE_CHECKING:
    from collections.abc import Callable

_STATEMENT = re.compile(r"(?:@!?[\w%]+\s+)?([a-z][\w:]*(?:\.[\w:]+)*)(\s[^;]*)?", re.DOTALL)
# A special register, unlike a register, is not declared by the tests, whose registers end in digits or have no `%`.
_SPECIAL = re.compile(r",\s*%[a-z_]*[a-z](?:\.[xyz])?\s*$|,\s*%clock64")
_LETTERS = {8: "b", 16: "h", 32: "w", 64: "d"}
_REGISTERS = {"h": "h", "r": "w", "f": "w", "rd": "d", "fd": "d"}
_seen: set[str] = set()


def instructions(code: str) -> list[tuple[str, str]]:
    """Mnemonic and operands of each statement of `code`."""
    code = re.sub(r"//.*", "", code)
    statements = [re.sub(r"^(?:\s|[{}]|[\w$]+:)*", "", part) for part in code.split(";")]
    found = [_STATEMENT.match(statement) for statement in statements]
    return [(match[1], match[2] or "") for match in found if match is not None]


def note(code: str) -> None:
    """Count the instructions of `code` as checked."""
    for mnemonic, operands in instructions(code):
        _seen.add(mnemonic)
        _seen.add(row(mnemonic, operands))


def row(mnemonic: str, operands: str) -> str:
    """Name of the row that the instruction is lowered to, where its operands choose the row."""
    if mnemonic.startswith(("min.", "max.")) and operands.count(",") == 3:
        return f"{mnemonic[:3]}3{mnemonic[3:]}"
    bits = int("0" + re.sub(r".*\D", "", mnemonic))
    if mnemonic.startswith("mov.") and "{" in operands:
        parts = operands[operands.index("{") : operands.index("}")].count(",") + 1
        verb = "unpack" if operands.strip().startswith("{") else "pack"
        return f"{verb}.{_LETTERS.get(bits // parts, '?') * parts}"
    if mnemonic.startswith("mov.") and _SPECIAL.search(operands):
        return f"mov.special.{_LETTERS.get(bits, '?')}"
    if mnemonic.startswith(("ld.param.", "ld.param::entry.")):
        registers = [_REGISTERS.get(name, "?") for name in re.findall(r"%([a-z]+)\d", operands.partition("[")[0])]
        sign = "s" if ".s" in mnemonic else "u"
        return f"ld.param.{sign}{bits}.{(registers or '?')[0]}"
    return mnemonic


def pytest_configure() -> None:
    execute, run, module = ptx_lanes.execute, ptx_lab.run, simt.Module
    inside: list[bool] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(code: str, *rest: Any, **options: Any) -> Any:
            if not inside:
                note(code)
                note(options.get("module_scope", ""))
            inside.append(True)
            try:
                return function(code, *rest, **options)
            finally:
                inside.pop()

        return wrapper

    def check(mnemonic: str, result: str, sources: Any, columns: Any, reference: Callable[..., int]) -> None:
        note(f"{mnemonic} d, {', '.join(sources)};")

    ptx_lanes.execute, ptx_lab.run, ptx_lanes.check = noting(execute), noting(run), check
    simt.Module = noting(module)


def pytest_sessionfinish() -> None:
    Path(os.environ["PTX_FORMS_OUT"]).write_text("\n".join(sorted(_seen)))
