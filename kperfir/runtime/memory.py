"""The memory that a launch may touch, as disjoint ranges, and the search for memory it names by address only.

The SIMT device refuses every address outside these ranges. Ranges come from the arguments; an address outside them is
looked for among all live tensors and arrays, since kernels also get addresses through tables of pointers.
"""

from __future__ import annotations

import contextlib
import gc
import sys
import weakref
from types import ModuleType
from typing import TYPE_CHECKING

from kperfir.runtime.arrays import Storage, is_numpy_array, storage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# Nothing is ever mapped there; where an argument is null, an offset into it may lead much farther.
_NULL_PAGE_BYTES = 1 << 16
_NULL_REACH_BYTES = 1 << 32


def merged(storages: Iterable[Storage]) -> list[Storage]:
    """Return disjoint storages that cover the same bytes, sorted by address.

    Arguments may be views of one allocation. The names of merged storages are joined; the result is writable if any of
    them is.
    """
    result: list[Storage] = []
    for storage in sorted(storages, key=lambda s: (s.address, s.end)):
        if storage.nbytes <= 0 or storage.address == 0:
            continue
        if not result or storage.address >= result[-1].end:
            result.append(storage)
            continue
        last = result[-1]
        name = last.name if storage.name in last.name.split(", ") else f"{last.name}, {storage.name}"
        nbytes = max(last.end, storage.end) - last.address
        result[-1] = Storage(last.address, nbytes, name, last.writable or storage.writable)
    return result


def describe_fault(address: int, storages: Iterable[Storage], nulls: Sequence[str]) -> str:
    """Say where an `address` that a kernel must not use lies: near which argument's memory, or near no memory.

    Args:
        address: The address.
        storages: The memory of the arguments.
        nulls: Names of the pointer arguments that are null.
    """
    if address < _NULL_REACH_BYTES and (nulls or address < _NULL_PAGE_BYTES):
        where = "the null pointer" if address == 0 else f"{address} bytes past the null pointer"
        return f"{where}, which {' and '.join(nulls)} {'is' if len(nulls) == 1 else 'are'}" if nulls else where
    return describe_nearest(address, storages) or "the kernel has no argument that is memory"


def describe_nearest(address: int, storages: Iterable[Storage]) -> str:
    """Say where `address` lies relative to the nearest of `storages`; empty if there are none."""

    def distance(storage: Storage) -> int:
        return max(storage.address - address, address - storage.end + 1, 0)

    nearest = min(storages, key=distance, default=None)
    if nearest is None:
        return ""
    size = f"argument {nearest.name} ({nearest.nbytes} bytes)"
    if ", " in nearest.name:
        size = f"the memory of arguments {nearest.name} ({nearest.nbytes} bytes)"
    if address < nearest.address:
        return f"{nearest.address - address} bytes before the start of {size}"
    if address == nearest.end:
        return f"right behind the end of {size}"
    if address > nearest.end:
        return f"{address - nearest.end} bytes past the end of {size}"
    return f"at byte {address - nearest.address} of {size}"


class LiveArrays:
    """Finds the live torch tensor or NumPy array that contains an address.

    Searching the heap takes long. It is searched at most once per launch, and not at all for arrays found before.
    """

    def __init__(self) -> None:
        self._remembered: dict[int, weakref.ref[object]] = {}
        self._searched: list[list[tuple[Storage, object]]] = []

    @contextlib.contextmanager
    def launch(self) -> Iterator[None]:
        """Keep the results of searches until the end of the block. Arrays come and go between launches."""
        try:
            yield
        finally:
            self._searched = []

    def find(self, address: int) -> Storage | None:
        """Return the storage that contains `address`, or None."""
        return self._recall(address) or self._search(address)

    def _recall(self, address: int) -> Storage | None:
        for key, reference in list(self._remembered.items()):
            candidate = reference()
            storage = None if candidate is None else storage_of(candidate, _name_of(candidate))
            if storage is None:
                del self._remembered[key]
            elif storage.address <= address < storage.end:
                return storage
        return None

    def _search(self, address: int) -> Storage | None:
        # Locals of running functions come last: to ask for them keeps them alive until the function ends (before
        # Python 3.13), and only NumPy arrays that nothing else refers to need it.
        for step, objects in enumerate((_heap_objects, _local_variables)):
            if step == len(self._searched):
                self._searched.append(list(_storages(objects())))
            for storage, holder in self._searched[step]:
                if storage.address <= address < storage.end:
                    self._remembered[id(holder)] = weakref.ref(holder)
                    return storage
        return None


def _storages(objects: Iterable[object]) -> Iterator[tuple[Storage, object]]:
    """Yield each array among `objects` once, with its storage."""
    seen: set[int] = set()
    for candidate in objects:
        if id(candidate) not in seen and _holds_memory(candidate):
            seen.add(id(candidate))
            storage = storage_of(candidate, _name_of(candidate))
            if storage is not None:
                yield storage, candidate


def _heap_objects() -> Iterator[object]:
    # The collector does not track NumPy arrays: they are found through what refers to them.
    for candidate in gc.get_objects():
        yield candidate
        if type(candidate) is not ModuleType:  # A module's dict is tracked itself.
            yield from gc.get_referents(candidate)


def _local_variables() -> Iterator[object]:
    for frame in sys._current_frames().values():
        while frame is not None:
            yield from list(frame.f_locals.values())
            frame = frame.f_back  # type: ignore[assignment]


def _holds_memory(candidate: object) -> bool:
    if is_numpy_array(candidate):
        return True
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(type(candidate), getattr(torch, "Tensor", ())):
        return False
    if type(candidate).__name__ == "FakeTensor" or candidate.layout != torch.strided:  # type: ignore[attr-defined]
        return False
    return candidate.untyped_storage().device.type == "cpu"  # type: ignore[attr-defined, no-any-return]


def _name_of(candidate: object) -> str:
    shape = "x".join(str(size) for size in candidate.shape)  # type: ignore[attr-defined]
    return f"{type(candidate).__name__.lower()} {shape or 'scalar'} {candidate.dtype}"  # type: ignore[attr-defined]
