"""Tensor maps as the SIMT device reads them: what a host tensor descriptor becomes as a kernel argument.

    fill_tiled(address, swizzle, element_bytes, host_element_type, box, shape, strides, padding)  # 128 bytes

Real tensor maps are opaque, so the format is the device's own. It is specified by `TensorMap`
(lib/Simt/Exec/TensorMap.h), which also refuses what cannot be.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kperfir.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Sequence

TENSOR_MAP_BYTES = 128
MAX_RANK = 5

_TAG = b"KPTM"
# CUtensorMapDataType, which host code names, to the numbers of tensormap.replace, which the device knows.
_HOST_TO_DEVICE_TYPE = {10: 8, 8: 9, 9: 10}
# tag, rank - 1, element type, swizzle, interleave, NaN fill, address; extents, box, element strides; strides
_HEAD = struct.Struct("<4s5B7xQ")
_LISTS = struct.Struct("<15I4x4Q8x")


def fill_tiled(
    address: int, swizzle: int, element_bytes: int, host_element_type: int, box: Sequence[int], shape: Sequence[int],
    strides: Sequence[int], padding: int,
) -> bytes:  # fmt: skip
    """Return the tensor map of a tiled tensor; the signature is that of Triton's CUDA driver.

    Args:
        address: Of the first element.
        swizzle: 0 to 3: none, 32, 64 or 128 bytes.
        element_bytes: Size of an element.
        host_element_type: CUtensorMapDataType.
        box: Extents of the box, outermost first, as are `shape` and `strides`.
        shape: Extents of the tensor in elements.
        strides: In elements; the last is 1.
        padding: 1: outside of the tensor is NaN, 0: zero.
    """
    rank = len(shape)
    if not 1 <= rank <= MAX_RANK or len(box) != rank or len(strides) != rank:
        raise DeviceError(
            "bad-argument",
            what="a tensor descriptor cannot be passed",
            where="its shape, strides and block",
            found=f"{rank}, {len(strides)} and {len(box)} dimensions",
            expected="the same number of each, at most 5",
            fix="describe the tensor with at most five dimensions",
        )
    element = _HOST_TO_DEVICE_TYPE.get(host_element_type, host_element_type)
    inner_strides = [stride * element_bytes for stride in strides[-2::-1]]
    unused = MAX_RANK - rank
    head = _HEAD.pack(_TAG, rank - 1, element, swizzle, 0, padding, address)
    ones = [1] * unused
    return head + _LISTS.pack(
        *shape[::-1], *ones, *box[::-1], *ones, *[1] * MAX_RANK, *inner_strides, *[0] * unused
    )  # fmt: skip
