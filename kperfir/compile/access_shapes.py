"""The accesses to memory of a kernel in Triton's GPU dialect, and their linear layouts.

    found = find_accesses(module)  # at the end of the ttgir stage, records in place

Triton is asked which lane holds which element (the pass ``kperf-list-layouts``); `shared_places` and `pointers` say
where elements lie. What an access costs is `accesses`' business.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.compile.custom_passes import run_passes
from kperfir.compile.pointers import Form, Term, Values, element_bytes
from kperfir.compile.shared_places import NoPlaces, Places

if TYPE_CHECKING:
    from collections.abc import Sequence

# The kind of region that is put around each, and the memory that it goes to.
OPERATIONS = {
    "tt.load": ("load", "global"),
    "tt.store": ("store", "global"),
    "ttg.async_copy_global_to_local": ("async_copy", "global"),
    "ttg.local_load": ("local_load", "shared"),
    "ttg.local_store": ("local_store", "shared"),
    "ttg.local_alloc": ("local_store", "shared"),
    "tt.atomic_rmw": ("atomic", "global"),
    "tt.atomic_cas": ("atomic", "global"),
    "ttg.convert_layout": ("convert_layout", "shared"),
    "tt.gather": ("convert_layout", "shared"),
    "tt.reduce": ("reduce", "shared"),
    "tt.histogram": ("reduce", "shared"),
    "tt.scan": ("scan", "shared"),
    "ttg.local_gather": ("local_load", "shared"),
    "ttg.local_scatter": ("local_store", "shared"),
    "ttg.local_atomic_scatter_rmw": ("atomic", "shared"),
    **{f"ttng.async_tma_{copy}": ("tma", "global") for copy in (
        "copy_global_to_local", "copy_local_to_global", "reduce", "gather", "scatter")},
}  # fmt: skip
# Their places in shared memory are in no layout of the IR: the compiler's own scratch, or chosen by data.
BY_CODE = frozenset({
    "ttg.convert_layout", "tt.gather", "tt.reduce", "tt.histogram", "tt.scan", "ttg.local_gather", "ttg.local_scatter",
    "ttg.local_atomic_scatter_rmw",
})  # fmt: skip
_BULK = "a bulk copy: no thread names addresses, the unit that makes it takes rows of a tile at a time"
_STORES = frozenset({"tt.store", "tt.atomic_rmw", "tt.atomic_cas"})  # Of the warps that hold the same, one does it.

_STAMP = "kperf_gpu.stamp"
_FRAME = re.compile(r"frame<(\d+)")
_TYPE = re.compile(r"(?:tensor|memdesc)<(?P<shape>(?:\d+x)+)(?P<element>[^,>]+)(?P<rest>.*)>$")
_LINEAR = re.compile(r"#ttg\.linear<\{register = (\[.*?\]), lane = (\[.*?\]), warp = (\[.*?\]), block = ")
_ALLOCATED = re.compile(r"(?:, )((?:\d+x)*\d+)$")


@dataclass(frozen=True, slots=True)
class Bases:
    """A distributed layout: what each bit of a register's and a lane's number adds to the coordinates, by XOR."""

    registers: tuple[tuple[int, ...], ...]
    lanes: tuple[tuple[int, ...], ...]
    warps: tuple[tuple[int, ...], ...]

    @property
    def copies(self) -> int:
        """How many warps hold the same elements."""
        return 1 << sum(not any(basis) for basis in self.warps)


@dataclass(frozen=True, slots=True)
class Found:
    """An access in the IR. `stamp` is the frame and slot of the record before it; `why` says what is not known."""

    op: str
    stamp: tuple[int, int]
    element_bytes: int = 0
    bases: Bases | None = None
    offsets: tuple[tuple[tuple[int, ...], ...], ...] = ()  # Shared: bases of registers and lanes, as one byte offset.
    form: Form | None = None  # Global: of the pointers, in bytes.
    masked: bool = False
    copies: int = 1  # Of the warps that hold the same elements, one stores them.
    why: str = ""


def to_text(accesses: Sequence[Found]) -> str:
    """The accesses as JSON, which Triton stores beside the kernel."""
    rows = []
    for found in accesses:
        bases, form = found.bases, found.form
        terms = [[d, t.step, t.run, t.multiple, t.apart] for d, t in form.terms.items()] if form else []
        rows.append([
            found.op, found.stamp, found.element_bytes, bases and [bases.registers, bases.lanes, bases.warps],
            found.offsets, form and [terms, form.multiple, form.constant], found.masked, found.copies, found.why,
        ])  # fmt: skip
    return json.dumps(rows, separators=(",", ":"))


def from_text(text: str) -> list[Found]:
    """The accesses that `to_text` has written."""
    accesses = []
    for op, stamp, size, bases, offsets, form, *rest in _tuples(json.loads(text)):
        terms, *others = form or ((),)
        known = Form({dimension: Term(*term) for dimension, *term in terms}, *others) if form else None
        accesses.append(Found(op, stamp, size, Bases(*bases) if bases else None, offsets, known, *rest))
    return accesses


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


class Unknown(Exception):
    """Why an access is not predicted."""


def find_accesses(module: Any) -> list[Found]:
    """The accesses of a module whose records have their frames."""
    run_passes(module, "kperf-list-layouts")
    listed = json.loads(module.get_operation().get_str_attr("kperf.layouts"))
    layouts = iter(layout for name, layout in listed if _is_read(name))
    reader = _Reader(module)
    found, stamp = [], None
    for operation in reader.values.operations:
        name = operation.get_name()
        if name == _STAMP:
            frame = _FRAME.search(str(operation.get_operand(0).get_type()))
            stamp = (int(frame[1]), int(operation.get_int_attr("slot"))) if frame else None
        elif name in OPERATIONS and operation.get_num_operands():  # An allocation alone is no access.
            layout = next(layouts) if _is_read(name) else ""
            if stamp is not None:
                found.append(reader.read(operation, layout, stamp))
    return found


def _is_read(name: str) -> bool:
    """Whether the IR says which lane accesses what."""
    return name in OPERATIONS and name not in BY_CODE and OPERATIONS[name][0] != "tma"


def _operands(operation: Any) -> list[Any]:
    return [operation.get_operand(index) for index in range(operation.get_num_operands())]


class _Reader:
    """Layouts and pointers of operations."""

    def __init__(self, module: Any) -> None:
        self.values = Values(module)
        warps = module.get_int_attr("ttg.num-warps") or 1
        self._scalar = Bases((), (), ((),) * (int(warps).bit_length() - 1))

    def read(self, operation: Any, layout: str, stamp: tuple[int, int]) -> Found:
        name = operation.get_name()
        if not _is_read(name):
            return Found(name, stamp, why="" if name in BY_CODE else _BULK)
        try:
            if OPERATIONS[name][1] == "shared":
                return self._shared(operation, layout, stamp)
            return self._global(operation, layout, stamp)
        except Unknown as unknown:
            return Found(name, stamp, why=str(unknown))

    def _global(self, operation: Any, layout: str, stamp: tuple[int, int]) -> Found:
        name, operands = operation.get_name(), _operands(operation)
        size = element_bytes(operands[0])
        form = self.values.of(operands[0])
        if not size:
            raise Unknown("it has no pointers to whole bytes")
        bases = _distributed(layout) if _shape(operands[0]) else self._scalar
        # Behind the pointers and what is stored, or where to.
        values = {"tt.load": 1, "tt.atomic_cas": 3}.get(name, 2)
        masked = len(operands) > values and not self._holds(operands[values])
        why = "" if form else "its addresses are computed from data, or in a way that is not followed"
        return Found(
            name,
            stamp,
            size,
            bases,
            form=form,
            masked=masked,
            copies=bases.copies if name in _STORES else 1,
            why=why,
        )

    def _holds(self, mask: Any) -> bool:
        """Whether a mask leaves nothing out, for all that is known."""
        form = self.values.of(mask)
        return form is not None and form.is_uniform and bool(form.constant)

    def _shared(self, operation: Any, layout: str, stamp: tuple[int, int]) -> Found:
        name, operands = operation.get_name(), _operands(operation)
        tensor = operation.get_result(0) if name == "ttg.local_load" else operands[0]
        memory = (
            operation.get_result(0) if name == "ttg.local_alloc" else operands[0 if name == "ttg.local_load" else 1]
        )
        match = _TYPE.search(str(tensor.get_type()))
        width = re.search(r"\d+", match["element"].removeprefix("f8E") if match else "")
        if not match or not width:
            raise Unknown("it is no tensor of numbers")
        bits = 8 if match["element"].startswith("f8") else int(width[0])
        if bits % 8:
            raise Unknown("its elements are no whole bytes")
        bases = _distributed(layout)
        try:
            places = Places.of(str(memory.get_type()), _allocated_shape(memory))
            offsets = tuple(
                tuple((places.at(coordinates) * bits // 8,) for coordinates in part)
                for part in (bases.registers, bases.lanes)
            )
        except NoPlaces:
            return Found(name, stamp, bits // 8, bases, why="where it lies in shared memory is not known")
        return Found(name, stamp, bits // 8, bases, offsets)


def _distributed(layout: str) -> Bases:
    """The bases of a `#ttg.linear`, as MLIR prints it."""
    match = _LINEAR.search(layout)
    if not match:
        raise Unknown("its layout has no linear form that is known")
    registers, lanes, warps = (
        tuple(tuple(int(number) for number in basis.split(",")) for basis in re.findall(r"\[([\d, ]+)\]", part))
        for part in match.groups()
    )
    return Bases(registers, lanes, warps)


def _shape(value: Any) -> tuple[int, ...]:
    match = _TYPE.search(str(value.get_type()))
    return tuple(int(extent) for extent in match["shape"].split("x")[:-1]) if match else ()


def _allocated_shape(memory: Any) -> tuple[int, ...]:
    """Of a view of part of an allocation, the shape of that."""
    shape = _shape(memory)
    match = _TYPE.search(str(memory.get_type()))
    whole = _ALLOCATED.search(match["rest"]) if match else None
    return tuple(int(extent) for extent in whole[1].split("x"))[-len(shape) :] if whole else shape
