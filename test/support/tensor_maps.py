"""Tensor maps for PTX tests, and what a copy with one must do, in plain NumPy."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from kperfir.runtime.tensor_map import TENSOR_MAP_BYTES, fill_tiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray

HOST_TYPES = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8,
}  # fmt: skip


def aligned(count: int, alignment: int = 128) -> Array:
    """Zeroed bytes at an aligned address."""
    raw = np.zeros(count + alignment, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + count]


def aligned_like(values: Array) -> Array:
    """A copy of `values` whose address is a multiple of 128."""
    result = aligned(values.nbytes).view(values.dtype).reshape(values.shape)
    result[...] = values
    return result


def tensor_map(tensor: Array, box: Sequence[int], *, swizzle: int = 0, nan: bool = False) -> Array:
    """The map of `tensor`, in memory of its own; `box` outermost first."""
    strides = [stride // tensor.itemsize for stride in tensor.strides]
    packed = fill_tiled(
        tensor.ctypes.data, swizzle, tensor.itemsize, HOST_TYPES[str(tensor.dtype)], box, tensor.shape, strides, nan
    )
    result = aligned(TENSOR_MAP_BYTES)
    result[:] = np.frombuffer(packed, np.uint8)
    return result


def swizzle_address(address: int, swizzle: int) -> int:
    """Where the byte at `address` lies: 16-byte units trade places within 32, 64 or 128 bytes, by the 128-byte row."""
    row = address // 128
    unit = address // 16
    return (unit ^ (row % (1 << swizzle))) * 16 + address % 16


def swizzled(box: Array, swizzle: int, base: int = 0) -> Array:
    """The bytes of a box as they lie in shared memory from `base` on."""
    flat = np.ascontiguousarray(box).view(np.uint8).ravel()
    places = np.array([swizzle_address(base + i, swizzle) - base for i in range(len(flat))])
    result = np.zeros_like(flat)
    result[places] = flat
    return result


def box_at(tensor: Array, box: Sequence[int], start: Sequence[int], fill: float = 0) -> Array:
    """The box whose first element is `start` (outermost first); `fill` outside of the tensor."""
    result = np.full(box, fill, tensor.dtype)
    for index in itertools.product(*map(range, box)):
        place = tuple(s + i for s, i in zip(start, index, strict=True))
        if all(0 <= p < extent for p, extent in zip(place, tensor.shape, strict=True)):
            result[index] = tensor[place]
    return result
