"""Keep LLVM from rounding an instrumented kernel differently.

    text = with_sums_of(instrumented, plain)      # LLVM IR of both, optimised

Where a product is added to a product, one of the two becomes part of a fused multiply-add and is not rounded. LLVM
takes the left one, and which one is left its reassociate pass decides by the number of instructions with effects that
stand between the operands' origins. Records are such instructions. So kernels with sums of products are compiled plain
too, up to LLVM IR, and their sums get the plain order: all else that floating-point code depends on is the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FLAGS = "fast|nnan|ninf|nsz|arcp|contract|afn|reassoc"
_OPERATION = re.compile(
    rf"^ +(?P<name>%[\w.]+) = (?P<op>fmul|fadd|fsub)(?: (?:{_FLAGS}))* (?P<type><\d+ x \w+>|\w+) "
    rf"(?P<left>[^,\n]+), (?P<right>[^,\n]+)"
    r"|^define ",
    re.M,
)


@dataclass(slots=True)
class _Sum:
    """A sum of two products: numbers of those among all operations, and where its operands are in the text."""

    left: int
    right: int
    place: tuple[int, int]


@dataclass(slots=True)
class _Code:
    """Floating-point operations in their order, and the sums of two products among them by their number."""

    operations: list[tuple[str, str]]
    sums: dict[int, _Sum]

    @classmethod
    def read(cls, text: str) -> _Code:
        operations: list[tuple[str, str]] = []
        products: dict[str, int] = {}
        sums: dict[int, _Sum] = {}
        for match in _OPERATION.finditer(text):
            if match["op"] is None:
                products.clear()  # A name is unique in its function only.
                continue
            number = len(operations)
            operations.append((match["op"], match["type"]))
            if match["op"] == "fmul":
                products[match["name"]] = number
                continue
            left, right = products.get(match["left"]), products.get(match["right"])
            if match["op"] == "fadd" and left is not None and right is not None:
                sums[number] = _Sum(left, right, (match.start("left"), match.end("right")))
        return cls(operations, sums)


def has_sums_of_products(text: str) -> bool:
    """Whether `with_sums_of` is needed for LLVM IR in which products may be fused."""
    return bool(_Code.read(text).sums)


def with_sums_of(instrumented: str, plain: str) -> str | None:
    """Return `instrumented` with the operands of its sums of products in the order of `plain`.

    Args:
        instrumented: LLVM IR.
        plain: LLVM IR of the same kernel without records.

    Returns:
        None if the two do not have the same floating-point operations in the same order.
    """
    ours, theirs = _Code.read(instrumented), _Code.read(plain)
    if ours.operations != theirs.operations or ours.sums.keys() != theirs.sums.keys():
        return None
    pieces, position = [], 0
    for number, own in ours.sums.items():
        other = theirs.sums[number]
        if (own.left, own.right) == (other.left, other.right):
            continue
        if (own.left, own.right) != (other.right, other.left):
            return None
        start, end = own.place
        left, right = instrumented[start:end].split(", ")
        pieces += [instrumented[position:start], f"{right}, {left}"]
        position = end
    return "".join([*pieces, instrumented[position:]])
