"""Keep LLVM from rounding an instrumented kernel differently.

    text = with_sums_of(instrumented, plain)      # LLVM IR of both, optimised

Where a product is added to a product, one of the two becomes part of a fused multiply-add and is not rounded. LLVM
takes the left one, and which one is left its reassociate pass decides by the number of instructions with effects that
stand between the operands' origins. Records are such instructions. So kernels with sums of products are compiled plain
too, up to LLVM IR, and their sums get the plain order: all else that floating-point code depends on is the same.

Two texts have other names and, because LLVM's vectoriser sees other neighbours, not always the same operations. What
both have is where in the source a value comes from. Products of one place are elements of one tensor: no record stands
between their origins, so their order is the plain one already. Where the two do not even have the same sums of those,
the assembly is counted: the same number of each floating-point operation is the same fusion.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = "fast|nnan|ninf|nsz|arcp|contract|afn|reassoc"
# Found by its first characters, which is fast: most lines are none.
_IS_OPERATION = re.compile(r" = f(?:mul|add) ")
_OPERATION = re.compile(
    rf" +(?P<name>%[\w.]+) = (?P<op>fmul|fadd)(?: (?:{_FLAGS}))* (?:<\d+ x \w+>|\w+) "
    rf"(?P<left>[^,\n]+), (?P<right>[^,\n]+?)(?:, !dbg !(?P<place>\d+).*)?$",
    re.M,
)
_LOCATION = re.compile(
    r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+), column: (\d+), scope: !(\d+)(?:, inlinedAt: !(\d+))?", re.M
)
_SCOPE = re.compile(r'^!(\d+) = (?:distinct )?!DISubprogram\(name: "([^"]*)"', re.M)

# In PTX and in AMD's assembly: fma.rn.f32, v_fmac_f32.
_ARITHMETIC = re.compile(r"\b(?:v_)?(?:pk_)?(fma|fmac|mad|mul|add|sub|neg)[\w.]*?[._](f16|bf16|f32|f64)\w*\b")

Place = str


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum of two products: where it and they come from, and where its operands are in the text."""

    place: Place
    left: Place
    right: Place
    operands: tuple[int, int]

    @property
    def is_open(self) -> bool:
        """Whether its order may depend on records; it may where a place is not known."""
        return self.left != self.right or not self.left

    @property
    def key(self) -> tuple[Place, frozenset[Place]]:
        """What the sum is, whichever product is left."""
        return self.place, frozenset((self.left, self.right))


def has_open_sums(text: str) -> bool:
    """Whether `with_sums_of` is needed for LLVM IR in which products may be fused."""
    if not any(True for _ in _sums(text, {})):
        return False  # Most kernels; what follows takes longer.
    return any(one.is_open for one in _sums(text, _places(text)))


def with_sums_of(instrumented: str, plain: str) -> str | None:
    """Return `instrumented` with the operands of its open sums in the order of `plain`.

    Args:
        instrumented: LLVM IR.
        plain: LLVM IR of the same kernel without records.

    Returns:
        None if the two do not have the same sums, or if it cannot be told which product of a sum is which.
    """
    ours, theirs = _open_by_key(instrumented), _open_by_key(plain)
    if ours.keys() != theirs.keys():
        return None
    turned: list[_Sum] = []
    for key, sums in ours.items():
        others = theirs[key]
        if "" in key[1]:
            return None
        if len({other.left for other in others}) == 1:
            turned += [one for one in sums if one.left != others[0].left]
        elif len(sums) == len(others):
            turned += [one for one, other in zip(sums, others, strict=True) if one.left != other.left]
        else:
            return None
    pieces, position = [], 0
    for start, end in sorted(one.operands for one in turned):
        left, right = instrumented[start:end].split(", ")
        pieces += [instrumented[position:start], f"{right}, {left}"]
        position = end
    return "".join([*pieces, instrumented[position:]])


def has_other_closed_sums(instrumented: str, plain: str) -> bool:
    """Whether the texts differ in their sums of products of one place: then `has_same_arithmetic` has the word."""
    return _closed_keys(instrumented) != _closed_keys(plain)


def has_same_arithmetic(instrumented: str, plain: str) -> bool:
    """Whether two kernels in assembly have the same number of each floating-point operation."""
    ours, theirs = (Counter(match.groups() for match in _ARITHMETIC.finditer(text)) for text in (instrumented, plain))
    return ours == theirs


def _closed_keys(text: str) -> set[tuple[Place, frozenset[Place]]]:
    return {one.key for one in _sums(text, _places(text)) if not one.is_open}


def _open_by_key(text: str) -> dict[tuple[Place, frozenset[Place]], list[_Sum]]:
    """The open sums of products of a text, in their order."""
    found = defaultdict(list)
    for one in _sums(text, _places(text)):
        if one.is_open:
            found[one.key].append(one)
    return dict(found)


def _sums(text: str, places: dict[str, Place]) -> Iterator[_Sum]:
    products: dict[str, Place] = {}
    next_function = -1
    for found in _IS_OPERATION.finditer(text):
        if found.start() > next_function:
            products.clear()  # A name is unique in its function only.
            next_function = text.find("\ndefine ", found.start()) % (len(text) + 1)
        match = _OPERATION.match(text, text.rfind("\n", 0, found.start()) + 1)
        if match is None:
            continue
        place = places.get(match["place"] or "", "")
        left, right = products.get(match["left"]), products.get(match["right"])
        if match["op"] == "fmul":
            products[match["name"]] = place
        elif left is not None and right is not None:
            yield _Sum(place, left, right, (match.start("left"), match.end("right")))


def _places(text: str) -> dict[str, Place]:
    """Where the locations of a text are in the source, by their number: calls that were inlined, outermost last."""
    locations = {number: fields for number, *fields in _LOCATION.findall(text)}
    scopes = dict(_SCOPE.findall(text))
    return {number: _place(number, locations, scopes) for number in locations}


def _place(number: str, locations: dict[str, list[str]], scopes: dict[str, str]) -> Place:
    steps = []
    while number in locations:
        line, column, scope, number = locations[number]
        steps.append(f"{scopes.get(scope, '')}:{line}:{column}")
    return " in ".join(steps)
