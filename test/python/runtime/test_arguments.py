"""The arguments of a launch as the bytes of its parameters."""

from __future__ import annotations

import struct
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from triton.tools.tensor_descriptor import TensorDescriptor

from kperfir.errors import DeviceError, UsageError
from kperfir.runtime.arguments import Parameters, pack
from kperfir.runtime.arrays import simt_array
from kperfir.runtime.tensor_map import TENSOR_MAP_BYTES


def values(signature: dict[str, Any], *arguments: Any) -> list[bytes]:
    return pack(signature, [], arguments).values


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("i1", True, b"\x01"),
        ("u1", False, b"\x00"),
        ("i8", -1, b"\xff"),
        ("i8", 257, b"\x01"),
        ("i16", -2, b"\xfe\xff"),
        ("i32", 2**31 - 1, struct.pack("<i", 2**31 - 1)),
        ("i32", -1, b"\xff" * 4),
        ("u32", 2**32 - 1, b"\xff" * 4),
        ("i64", -(2**63), struct.pack("<q", -(2**63))),
        ("u64", 2**64 - 1, b"\xff" * 8),
        ("fp16", 1.5, struct.pack("<e", 1.5)),
        ("bf16", 1.0, b"\x80\x3f"),
        ("bf16", 1.01171875, b"\x81\x3f"),
        ("fp32", 0.1, struct.pack("<f", 0.1)),
        ("fp32", 1e300, struct.pack("<f", float("inf"))),
        ("fp32", 3, struct.pack("<f", 3.0)),
        ("fp64", 0.1, struct.pack("<d", 0.1)),
    ],
)
def test_pack_scalar_has_the_bytes_that_cuda_would_pass(kind: str, value: Any, expected: bytes) -> None:
    assert values({"x": kind}, value) == [expected]


def test_pack_drops_constexprs_and_flattens_tuples() -> None:
    signature = {"a": "i32", "B": "constexpr", "t": ("i32", ("constexpr", "i64"))}
    assert values(signature, 1, 128, (2, (3, 4))) == [b"\x01\0\0\0", b"\x02\0\0\0", b"\x04" + b"\0" * 7]


def test_pack_pointer_gives_address_and_whole_allocation() -> None:
    array = np.zeros(100, np.float32)
    parameters = pack({"x": "*fp32", "n": "*i8"}, [], [array[10:20], None])
    assert parameters.values == [struct.pack("<Q", array.ctypes.data + 40), b"\0" * 8]
    assert [(s.address, s.nbytes, s.name, s.writable) for s in parameters.storages] == [
        (array.ctypes.data, 400, "x", True)
    ]


def test_pack_accepts_addresses_as_numbers() -> None:
    parameters = pack({"x": "*fp32"}, [], [0x1000])
    assert parameters.values == [struct.pack("<Q", 0x1000)]
    assert parameters.storages == []


def test_pack_refuses_what_has_no_address() -> None:
    with pytest.raises(UsageError, match=r"argument x\n  found: an object of type list"):
        values({"x": "*fp32"}, [1, 2])


def test_pack_notes_which_pointers_are_null() -> None:
    assert pack({"x": "*fp32", "y": "*fp32"}, [], [np.zeros(1, np.float32), None]).nulls == ["y"]


@pytest.mark.parametrize("wrapped", [False, True])
def test_pack_refuses_tensors_that_have_no_memory_here(*, wrapped: bool) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(8, device="meta")
    if wrapped:
        import triton

        tensor = triton.reinterpret(tensor, triton.language.int32)
    with pytest.raises(UsageError, match=r"argument x\n  found: a tensor on torch's meta device") as caught:
        values({"x": "*fp32"}, tensor)
    assert "on the CPU" in caught.value.fix


def test_scratch_is_memory_of_the_launch_and_no_argument() -> None:
    parameters = pack({"x": "*fp32"}, [], [np.zeros(1, np.float32)])
    parameters.add_scratch(np.zeros(8, np.uint8), "profile scratch")
    parameters.add_scratch(None, "global scratch")
    assert [storage.name for storage in parameters.storages] == ["x"]
    assert [storage.name for storage in parameters.scratch] == ["profile scratch"]
    assert (len(parameters.values), parameters.nulls) == (3, [])


@pytest.mark.parametrize("skipped", [0, 1, 64])
def test_scratch_does_not_depend_on_where_it_was_allocated(skipped: int) -> None:
    memory = np.zeros(1024, np.uint8)
    start = -memory.ctypes.data % 128 + 256
    parameters = Parameters()
    parameters.add_scratch(memory[start - skipped : start + 300], "global scratch", 128, 200)
    aligned = memory.ctypes.data + start
    assert [(storage.address, storage.nbytes) for storage in parameters.scratch] == [(aligned, 200)]
    assert parameters.values == [aligned.to_bytes(8, "little")]


@pytest.mark.parametrize(("kind", "value"), [("i32", "text"), ("fp16", 1e6), ("fp32", None), ("fp128", 1.0)])
def test_pack_names_the_argument_that_does_not_fit(kind: str, value: Any) -> None:
    with pytest.raises(DeviceError, match="argument width"):
        values({"width": kind}, value)


def test_pack_descriptor_below_sm90_is_pointer_shape_and_strides_twice() -> None:
    array = np.zeros((16, 32), np.float16)
    descriptor = TensorDescriptor.from_tensor(simt_array(array), [8, 16])
    parameters = pack({"d": "tensordesc<fp16[8, 16]>"}, [], [descriptor])
    assert [len(value) for value in parameters.values] == [8, 8, 8, 8, 8, 1, 1, 4, 4, 8, 8]
    assert parameters.values[0] == struct.pack("<Q", array.ctypes.data)
    assert [struct.unpack("<q", value)[0] for value in parameters.values[1:5]] == [16, 32, 32, 1]
    assert parameters.storages[0].nbytes == array.nbytes


def test_pack_descriptor_from_sm90_is_a_tensor_map() -> None:
    array = np.zeros((16, 32), np.float16)
    descriptor = TensorDescriptor.from_tensor(simt_array(array), [8, 16])
    meta = {"swizzle": 1, "elem_size": 2, "elem_type": 6, "block_size": [8, 16], "fp4_padded": False}
    parameters = pack({"d": "tensordesc<fp16[8, 16]>"}, [meta], [descriptor])
    tensor_map = parameters.values[0]
    assert len(tensor_map) == TENSOR_MAP_BYTES
    assert struct.unpack_from("<4s5B7xQ", tensor_map) == (b"KPTM", 1, 6, 1, 0, 0, array.ctypes.data)
    assert struct.unpack_from("<5I", tensor_map, 24) == (32, 16, 1, 1, 1)
    assert struct.unpack_from("<5I", tensor_map, 44) == (16, 8, 1, 1, 1)
    assert struct.unpack_from("<5I", tensor_map, 64) == (1, 1, 1, 1, 1)
    assert struct.unpack_from("<4Q", tensor_map, 88) == (64, 0, 0, 0)
    assert [len(value) for value in parameters.values[1:]] == [4, 4, 8, 8]


def test_pack_follows_the_wrapper_that_reinterprets_a_tensor() -> None:
    array = np.zeros(8, np.uint8)
    wrapped = SimpleNamespace(base=simt_array(array), data_ptr=lambda: int(array.ctypes.data), dtype="fp8e5")
    assert pack({"x": "*fp8e5"}, [], [wrapped]).storages[0].nbytes == 8
