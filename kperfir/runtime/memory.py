"""The memory that a launch may touch, as disjoint ranges, and the search for memory it names by address only.

The SIMT device refuses every address outside these ranges. Ranges come from the arguments; an address outside them is
looked for among all live tensors and arrays, since kernels also get addresses through tables of pointers.
"""

from __future__ import annotations

import bisect
import gc
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from kperfir.runtime.arrays import Storage, is_numpy_array, storage_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


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


def describe_nearest(address: int, storages: Iterable[Storage]) -> str:
    """Say where `address` lies relative to the nearest of `storages`; empty if there are none."""

    def distance(storage: Storage) -> int:
        return max(storage.address - address, address - storage.end + 1, 0)

    nearest = min(storages, key=distance, default=None)
    if nearest is None:
        return ""
    size = f"{nearest.name} ({nearest.nbytes} bytes)"
    if address < nearest.address:
        return f"{nearest.address - address} bytes before the start of {size}"
    if address >= nearest.end:
        return f"{address - nearest.end} bytes past the end of {size}"
    return f"at byte {address - nearest.address} of {size}"


class LiveArrays:
    """Finds the live torch tensor or NumPy array that contains an address. The heap is searched once."""

    def __init__(self) -> None:
        self._storages: list[Storage] | None = None

    def find(self, address: int) -> Storage | None:
        """Return the storage that contains `address`, or None."""
        if self._storages is None:
            self._storages = merged(_live_storages())
        index = bisect.bisect_right(self._storages, address, key=lambda storage: storage.address) - 1
        if index >= 0 and address < self._storages[index].end:
            return self._storages[index]
        return None


def _live_storages() -> Iterator[Storage]:
    seen: set[int] = set()
    for candidate in _reachable_objects():
        if id(candidate) in seen or not _holds_memory(candidate):
            continue
        seen.add(id(candidate))
        storage = storage_of(candidate, _name_of(candidate))
        if storage is not None:
            yield storage


def _reachable_objects() -> Iterator[object]:
    # The collector does not track NumPy arrays: they are found through what refers to them, local variables included.
    for candidate in gc.get_objects():
        yield candidate
        if type(candidate) is not ModuleType:  # A module's dict is tracked itself.
            yield from gc.get_referents(candidate)
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
