"""Whose memory an address is: storages of arguments, and the arrays that are alive when a launch fails."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kperfir.errors import UsageError
from kperfir.runtime import memory
from kperfir.runtime.arrays import Storage, simt_array, storage_of
from kperfir.runtime.memory import LiveArrays, describe_fault, describe_nearest, merged


def test_merged_joins_overlapping_storages_and_keeps_neighbours_apart() -> None:
    storages = [Storage(200, 50, "c"), Storage(100, 50, "a"), Storage(120, 50, "b"), Storage(170, 30, "d")]
    assert [(s.address, s.nbytes, s.name) for s in merged(storages)] == [
        (100, 70, "a, b"),
        (170, 30, "d"),
        (200, 50, "c"),
    ]


def test_merged_is_writable_if_any_view_is() -> None:
    assert merged([Storage(8, 8, "x", writable=False), Storage(8, 8, "y", writable=True)])[0].writable
    assert not merged([Storage(8, 8, "x", writable=False)])[0].writable


def test_merged_drops_empty_and_null_storages() -> None:
    assert merged([Storage(0, 16, "null"), Storage(64, 0, "empty")]) == []


def test_merged_keeps_the_larger_when_one_contains_the_other() -> None:
    assert [(s.address, s.nbytes) for s in merged([Storage(0x10, 100, "x"), Storage(0x20, 4, "y")])] == [(0x10, 100)]


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        (1600, "100 bytes past the end of argument y (500 bytes)"),
        (990, "10 bytes before the start of argument y (500 bytes)"),
        (150, "at byte 50 of argument x (100 bytes)"),
        (200, "right behind the end of argument x (100 bytes)"),
    ],
)
def test_describe_nearest_names_the_nearest_argument(address: int, expected: str) -> None:
    assert describe_nearest(address, [Storage(100, 100, "x"), Storage(1000, 500, "y")]) == expected


def test_describe_nearest_is_empty_without_storages() -> None:
    assert describe_nearest(1, []) == ""


@pytest.mark.parametrize(
    ("address", "nulls", "expected"),
    [
        (0, [], "the null pointer"),
        (64, ["y"], "64 bytes past the null pointer, which y is"),
        (1 << 20, ["y", "z"], "1048576 bytes past the null pointer, which y and z are"),
        (1 << 20, [], "1047552 bytes past the end of argument x (24 bytes)"),
        (1 << 40, ["y"], "1099511626752 bytes past the end of argument x (24 bytes)"),
    ],
)
def test_describe_fault_tells_null_pointers_from_arguments_passed_over(
    address: int, nulls: list[str], expected: str
) -> None:
    assert describe_fault(address, [Storage(1000, 24, "x")], nulls) == expected


def test_describe_fault_says_that_there_is_no_memory() -> None:
    assert describe_fault(1 << 40, [], []) == "the kernel has no argument that is memory"


class Holder:
    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


def test_live_arrays_finds_numpy_array_in_an_object_and_in_a_local_variable() -> None:
    held = Holder(np.zeros(1000, np.float32))
    local = np.zeros(500, np.float16)
    live = LiveArrays()
    for array in (held.array, local):
        assert isinstance(array, np.ndarray)
        found = live.find(int(array.ctypes.data) + 10)
        assert found is not None
        assert found.address <= array.ctypes.data
        assert found.end >= array.ctypes.data + array.nbytes


def test_live_arrays_finds_the_storage_of_a_torch_view() -> None:
    torch = pytest.importorskip("torch")
    view = torch.zeros(1000)[500:600]
    found = LiveArrays().find(view.data_ptr() - 4)
    assert found is not None
    assert found.nbytes >= 4000


def test_live_arrays_searches_once_per_launch_and_remembers_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[int] = []
    search = memory._heap_objects

    def counting() -> Any:
        searches.append(1)
        return search()

    monkeypatch.setattr(memory, "_heap_objects", counting)
    held = Holder(np.zeros(4096, np.float64))
    address, live = int(held.array.ctypes.data), LiveArrays()
    with live.launch():
        assert live.find(address) is not None
        assert live.find(0x10) is None
    assert len(searches) == 1
    with live.launch():
        assert live.find(address + 8) is not None
    assert len(searches) == 1
    held.array = np.zeros(1)
    with live.launch():
        live.find(address)
    assert len(searches) == 2, "an array that is gone is not trusted"


def test_live_arrays_finds_nothing_at_a_wild_address() -> None:
    assert LiveArrays().find(0x10) is None


def test_storage_of_numpy_view_is_its_base_and_respects_read_only() -> None:
    array = np.zeros((10, 10), np.float32)
    view = array[2:4, ::2]
    view.flags.writeable = False
    storage = storage_of(view, "v")
    assert storage == Storage(int(array.ctypes.data), 400, "v", writable=False)


def test_storage_of_negative_strides_covers_all_bytes() -> None:
    backing = bytearray(40)
    array = np.frombuffer(backing, np.int32)[::-1]
    storage = storage_of(array, "v")
    assert storage is not None
    assert storage.nbytes == 40


def test_simt_array_answers_as_a_tensor() -> None:
    array = simt_array(np.zeros((4, 8), np.uint16)[:, ::2], dtype="bf16")
    assert (str(array.dtype), array.element_size(), array.shape, array.stride(), array.stride(1)) == (
        "bf16",
        2,
        (4, 4),
        (8, 2),
        2,
    )


def test_simt_array_refuses_an_element_type_of_another_size() -> None:
    with pytest.raises(UsageError, match="bf16"):
        simt_array(np.zeros(4, np.float32), dtype="bf16")
