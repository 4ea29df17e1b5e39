"""What is known of the addresses that a tensor of pointers holds, before the kernel runs.

    forms = Values(module)
    form = forms.of(operand)  # of a tt.load

A value that differs from element to element is taken apart by dimension: address = base + sum over d of g_d(index_d).
Of each g_d is known in which steps it goes, over which stretch of indices, and what its values are multiples of. What
comes out of memory, or mixes dimensions, is not known. Owns nothing of layouts, vectors or sectors: `accesses` does.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# A stretch that has no end.
ENDLESS = 1 << 30
# More than any index, stride or address is known to be a multiple of.
MOST_DIVISIBLE = 1 << 30
# Triton knows of an argument whether its address is a multiple of 16 bytes. Those are taken for tensors as they are
# allocated, which begin at a multiple of 256: CUDA programming guide, device memory accesses.
ALIGNED_BYTES = 16
BEGIN_BYTES = 256
_ROUNDS = 4
_SAME = frozenset({
    "tt.splat", "tt.broadcast", "ttg.convert_layout", "arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast",
    "tt.bitcast", "arith.bitcast",
})  # fmt: skip
_ARGUMENT = re.compile(r"%(?:\w+): ([^\s,{)]+(?:<[^{]*?>)?) ?(?:\{([^}]*)\})?")
_DIVISIBILITY = re.compile(r"tt\.divisibility = (\d+)")


@dataclass(frozen=True, slots=True)
class Term:
    """What one dimension adds.

    Within blocks of `run` indices, which begin at multiples of it, the value goes up by `step` from index to index.
    What blocks begin at is a multiple of `multiple`. Blocks are `apart` if they are a stride from each other that is
    not known before the kernel runs, as rows are; else they may as well follow each other.
    """

    step: int
    run: int
    multiple: int
    apart: bool = False

    @property
    def is_known(self) -> bool:
        """Whether any two indices are a known distance apart."""
        return self.run >= ENDLESS


@dataclass(frozen=True, slots=True)
class Form:
    """A value: `terms` by dimension, and a part that is the same for all elements, a multiple of `multiple`.

    `constant` is that part, where it is known.
    """

    terms: Mapping[int, Term] = field(default_factory=dict)
    multiple: int = 1
    constant: int | None = None

    @property
    def is_uniform(self) -> bool:
        return not self.terms


def constant(value: int) -> Form:
    """A number."""
    return Form({}, _most(value), value)


def _most(value: int) -> int:
    return min(abs(value), MOST_DIVISIBLE) or MOST_DIVISIBLE


def _scaled(form: Form, by: int) -> Form:
    terms = {d: Term(t.step * by, t.run, _most(t.multiple * by), t.apart) for d, t in form.terms.items()}
    return Form(terms, _most(form.multiple * by), None if form.constant is None else form.constant * by)


def add(left: Form, right: Form, sign: int = 1) -> Form | None:
    """The sum left + sign * right."""
    right = _scaled(right, sign)
    terms = dict(left.terms)
    for dimension, term in right.terms.items():
        own = terms.get(dimension)
        if own is None:
            terms[dimension] = term
        elif own.is_known and term.is_known:
            terms[dimension] = Term(own.step + term.step, ENDLESS, math.gcd(own.multiple, term.multiple))
        else:
            return None  # Two sets of blocks: whether their sums meet is not known.
    known = left.constant is not None and right.constant is not None
    total = (left.constant or 0) + (right.constant or 0) if known else None
    return Form(terms, _most(total) if total is not None else math.gcd(left.multiple, right.multiple), total)


def multiply(left: Form, right: Form) -> Form | None:
    """The product of two, one of which is the same for all elements."""
    if not right.is_uniform:
        left, right = right, left
    if not right.is_uniform:
        return None
    if right.constant is not None:
        return _scaled(left, right.constant)
    if left.constant is not None and left.is_uniform:
        return _scaled(right, left.constant)
    by = right.multiple
    # A stride that is not known: each index is a block of its own, unless it is as far as its neighbours.
    terms = {
        d: Term(0, 1 if t.step else t.run, _most(math.gcd(t.step, t.multiple) * by), apart=True)
        for d, t in left.terms.items()
    }
    return Form(terms, _most(left.multiple * by))


def remainder(left: Form, right: Form) -> Form | None:
    """The rest of left / right: blocks of as many indices as fit between two multiples of what is divided by."""
    if not right.is_uniform:
        return None
    if left.is_uniform:
        if left.constant is not None and right.constant:
            return constant(left.constant % right.constant)
        return Form({}, math.gcd(left.multiple, right.multiple))
    if len(left.terms) > 1:
        return None
    ((dimension, term),) = left.terms.items()
    if term.step != 1 or not term.is_known:
        return None
    block = math.gcd(left.multiple, right.multiple)
    return Form({dimension: Term(1, block, block)}, MOST_DIVISIBLE, 0)


def quotient(left: Form, right: Form) -> Form | None:
    """The whole part of left / right, for a power of two."""
    by = right.constant
    if not by or by < 0 or by & (by - 1):
        return Form() if left.is_uniform and right.is_uniform else None
    if left.is_uniform:
        value = None if left.constant is None or left.constant < 0 else left.constant // by
        return constant(value) if value is not None else Form({}, max(1, left.multiple // by))
    if len(left.terms) > 1:
        return None
    ((dimension, term),) = left.terms.items()
    if term.step != 1 or not term.is_known or left.multiple % by:
        return None
    return Form({dimension: Term(0, by, 1)}, MOST_DIVISIBLE, 0)


def join(left: Form, right: Form) -> Form | None:
    """What holds of both."""
    if left == right:
        return left
    if dict(left.terms) != dict(right.terms):
        return None
    return Form(left.terms, math.gcd(left.multiple, right.multiple))


class Values:
    """Forms of the values of a module in Triton's GPU dialect."""

    def __init__(self, module: Any) -> None:
        self._makers: dict[int, tuple[Any, int]] = {}  # Value to its operation, and which result it is.
        self._carried: dict[int, tuple[Any, Any, int]] = {}  # Argument of a loop's body: loop, its yield, which.
        self._counters: dict[int, Any] = {}  # Induction variable to its loop.
        self._yields: dict[int, list[Any]] = {}  # Loop or branch, by its first result, to what its regions end with.
        self._known: dict[int, Form | None] = {}
        self.operations: list[Any] = []
        pending: list[Any] = []  # Ends of regions whose operation has not been met: it comes behind them.
        module.walk(lambda operation: self._note(operation, pending))
        function = module.get_function(module.get_entry_func_name())
        self._note_arguments(module, function)

    def _note(self, operation: Any, pending: list[Any]) -> None:
        self.operations.append(operation)
        for index in range(operation.get_num_results()):
            self._makers[operation.get_result(index).id()] = (operation, index)
        name = operation.get_name()
        if name in ("scf.yield", "scf.condition"):
            pending.append(operation)
            return
        regions = operation.get_num_regions()
        if not name.startswith("scf.") or not regions or not pending:
            return
        count = min(regions, len(pending)) if name == "scf.if" else regions
        ends = pending[-count:]
        del pending[-count:]
        if operation.get_num_results():
            self._yields[operation.get_result(0).id()] = ends
        if name == "scf.for":
            block = ends[-1].get_block()
            self._counters[block.get_argument(0).id()] = operation
            for index in range(1, block.get_num_arguments()):
                self._carried[block.get_argument(index).id()] = (operation, ends[-1], index - 1)

    def _note_arguments(self, module: Any, function: Any) -> None:
        text = module.str_nodebug()
        head = text[text.index(f"@{module.get_entry_func_name()}(") :].split("\n", 1)[0]
        for index, match in enumerate(_ARGUMENT.finditer(head)):
            divisible = _DIVISIBILITY.search(match[2] or "")
            multiple = int(divisible[1]) if divisible else 1
            if match[1].startswith("!tt.ptr") and multiple >= ALIGNED_BYTES:
                multiple = max(multiple, BEGIN_BYTES)
            self._known[function.args(index).id()] = Form({}, multiple)

    def of(self, value: Any) -> Form | None:
        """The form of a value: of a pointer, in bytes. None if it is not known."""
        try:
            return self._of(value)
        except RecursionError:
            return None

    def _of(self, value: Any) -> Form | None:
        key = value.id()
        if key not in self._known:
            found = self._find(value)
            if found is None and not _is_tensor(value):
                found = Form()  # The same for all, whatever it is.
            self._known[key] = found
        return self._known[key]

    def _find(self, value: Any) -> Form | None:
        key = value.id()
        if key in self._carried:
            return self._find_carried(value)
        if key in self._counters:
            loop = self._counters[key]
            first, step = self._of(loop.get_operand(0)), self._of(loop.get_operand(2))
            return Form({}, math.gcd(first.multiple, step.multiple)) if first and step else None
        if key not in self._makers:
            return None
        operation, index = self._makers[key]
        name = operation.get_name()
        if name == "scf.for":
            carried = next(
                argument for argument, (loop, _, place) in self._carried.items()
                if place == index and loop.get_result(index).id() == key
            )  # fmt: skip
            return self._known[carried] if carried in self._known else self._find_result(operation, index)
        if name == "scf.if":
            forms = [self._of(end.get_operand(index)) for end in self._yields[operation.get_result(0).id()]]
            return join(forms[0], forms[1]) if len(forms) == 2 and forms[0] and forms[1] else None
        make = _OPERATIONS.get(name)
        if make is None:
            return None
        operands = [self._of(operation.get_operand(number)) for number in range(operation.get_num_operands())]
        return make(operation, [form for form in operands if form]) if all(operands) else None

    def _find_result(self, loop: Any, index: int) -> Form | None:
        first = self._of(loop.get_operand(index + 3))
        return first and self._stable(first, loop, index)

    def _find_carried(self, value: Any) -> Form | None:
        loop, _, index = self._carried[value.id()]
        first = self._of(loop.get_operand(index + 3))
        return first and self._stable(first, loop, index)

    def _stable(self, first: Form, loop: Any, index: int) -> Form | None:
        """The form that holds in every iteration: assumed, and weakened until an iteration leaves it as it is."""
        argument, end = next(
            (key, end) for key, (owner, end, place) in self._carried.items() if owner is loop and place == index
        )
        assumed = replace(first, constant=None)
        for _ in range(_ROUNDS):
            before = dict(self._known)
            self._known[argument] = assumed
            after = self._of(end.get_operand(index))
            self._known = before
            joined = join(assumed, replace(after, constant=None)) if after else None
            if joined is None:
                return None
            if joined == assumed:
                self._known[argument] = assumed
                return assumed
            assumed = joined
        return None


def _is_tensor(value: Any) -> bool:
    return "tensor<" in str(value.get_type())


def _constant(operation: Any, operands: list[Form]) -> Form | None:
    value = operation.get_constant_value()
    return constant(int(value)) if isinstance(value, int) else None


def _range(operation: Any, operands: list[Form]) -> Form:
    start = operation.get_int_attr("start") or 0
    return Form({0: Term(1, ENDLESS, 1)}, _most(start), start)


def _expand(operation: Any, operands: list[Form]) -> Form:
    axis = operation.get_int_attr("axis")
    return replace(operands[0], terms={d + (d >= axis): term for d, term in operands[0].terms.items()})


def _add_pointer(operation: Any, operands: list[Form]) -> Form | None:
    size = element_bytes(operation.get_result(0))
    return add(operands[0], _scaled(operands[1], size)) if size else None


def element_bytes(value: Any) -> int:
    """Bytes of what a pointer, or each of a tensor of them, points to; 0 if it is no whole number."""
    match = re.search(r"!tt\.ptr<([^,>]+)", str(value.get_type()))
    width = re.search(r"(\d+)", match[1].removeprefix("f8E")) if match else None
    if not match or not width or match[1].startswith("!"):
        return 0
    bits = 8 if match[1].startswith("f8") else int(width[1])
    return max(bits, 8) // 8 if bits in (1, 8, 16, 32, 64) else 0


def _shift_left(left: Form, right: Form) -> Form | None:
    return _scaled(left, 1 << right.constant) if right.constant is not None and 0 <= right.constant < 31 else None


def _shift_right(left: Form, right: Form) -> Form | None:
    return quotient(left, constant(1 << right.constant)) if right.constant is not None and right.constant < 31 else None


def _and(left: Form, right: Form) -> Form | None:
    mask = right.constant
    return remainder(left, constant(mask + 1)) if mask is not None and mask > 0 and not mask & (mask + 1) else None


def _either(left: Form, right: Form) -> Form | None:
    return Form({}, math.gcd(left.multiple, right.multiple)) if left.is_uniform and right.is_uniform else None


def _pairwise(make: Callable[[Form, Form], Form | None]) -> Callable[[Any, list[Form]], Form | None]:
    return lambda operation, operands: make(operands[0], operands[1])


_OPERATIONS: dict[str, Callable[[Any, list[Form]], Form | None]] = {
    **dict.fromkeys(_SAME, lambda operation, operands: operands[0]),
    "arith.constant": _constant,
    "tt.make_range": _range,
    "tt.expand_dims": _expand,
    "tt.addptr": _add_pointer,
    "arith.addi": _pairwise(add),
    "arith.subi": _pairwise(lambda left, right: add(left, right, -1)),
    "arith.muli": _pairwise(multiply),
    "arith.remsi": _pairwise(remainder),
    "arith.remui": _pairwise(remainder),
    "arith.divsi": _pairwise(quotient),
    "arith.divui": _pairwise(quotient),
    "arith.shli": _pairwise(_shift_left),
    "arith.shrsi": _pairwise(_shift_right),
    "arith.shrui": _pairwise(_shift_right),
    "arith.andi": _pairwise(_and),
    "arith.minsi": _pairwise(_either),
    "arith.minui": _pairwise(_either),
    "arith.maxsi": _pairwise(_either),
    "arith.maxui": _pairwise(_either),
}
