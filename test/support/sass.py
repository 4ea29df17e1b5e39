"""Read machine code: the instructions of a cubin, and its innermost loop around some instruction."""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_LABEL = re.compile(r"^(\.L_x_\d+):")
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+([@A-Z].*?);")
_BRANCH = re.compile(r"\bBRA(?:\.\w+)* .*`\((\.L_x_\d+)\)")

# What ptxas puts between a store and an asynchronous copy of some chips; it takes an issue slot and does nothing.
FILLER = "@!PT LDS RZ"


@dataclass(frozen=True, slots=True)
class Loop:
    """Instructions from the target of a backward branch to the branch."""

    instructions: tuple[str, ...]

    def count(self, pattern: str) -> int:
        """How many instructions contain the regular expression `pattern`."""
        return sum(bool(re.search(pattern, instruction)) for instruction in self.instructions)

    @property
    def useful(self) -> int:
        """Instructions without ptxas's fillers."""
        return len(self.instructions) - sum(text.startswith(FILLER) for text in self.instructions)


def disassemble(cubin: bytes) -> list[str]:
    """Labels (``.L_x_3:``) and instructions of a cubin, in order, by the nvdisasm in triton's wheel."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run([tool, "-c", file.name], check=True, capture_output=True, text=True).stdout
    lines: list[str] = []
    for line in text.splitlines():
        if label := _LABEL.match(line):
            lines.append(label[1] + ":")
        elif instruction := _INSTRUCTION.search(line):
            lines.append(re.sub(r"\s+", " ", instruction[1]).strip())
    return [line for line in lines if not line.startswith("NOP")]


def find_loop(lines: list[str], containing: str) -> Loop:
    """The largest loop in which some instruction matches `containing`."""
    places = {line.removesuffix(":"): index for index, line in enumerate(lines) if line.endswith(":")}
    loops: list[Loop] = []
    for index, line in enumerate(lines):
        branch = _BRANCH.search(line)
        if branch and places.get(branch[1], index) < index:
            body = [text for text in lines[places[branch[1]] : index + 1] if not text.endswith(":")]
            if any(re.search(containing, text) for text in body):
                loops.append(Loop(tuple(body)))
    if not loops:
        raise ValueError(f"no loop contains {containing}")
    return max(loops, key=lambda loop: len(loop.instructions))
