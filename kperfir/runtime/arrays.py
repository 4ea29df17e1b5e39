"""Kernel arguments that are memory: where their bytes are, and NumPy arrays that Triton accepts.

    kernel[grid](simt_array(x), ...)        # on the SIMT device `kernel[grid](x, ...)` does the same

Owns the question "which bytes does this object stand for". Knows torch only by the methods of its tensors.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.errors import UsageError
from kperfir.runtime.device import HostBuffer

if TYPE_CHECKING:
    import numpy as np

_FLOATS = {"fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8, "fp8e4nv": 1, "fp8e5": 1}
_MAX_WRAPPING = 8


@dataclass(frozen=True, slots=True)
class ElementType:
    """Element type of a `SimtArray`, with what Triton asks of a torch dtype."""

    name: str
    itemsize: int
    is_floating_point: bool

    def __str__(self) -> str:
        return self.name


class SimtArray:
    """A NumPy array with the methods that Triton asks of a tensor."""

    def __init__(self, array: np.ndarray[Any, Any], dtype: ElementType) -> None:
        self.array = array
        self.dtype = dtype
        self.shape = array.shape
        self.ndim = array.ndim

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self.array.ctypes.data)

    def stride(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Return the strides in elements, or the one of `dim`."""
        strides = tuple(stride // self.dtype.itemsize for stride in self.array.strides)
        return strides if dim is None else strides[dim]

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self.array.size)

    def __repr__(self) -> str:
        return f"SimtArray({self.dtype}, shape={self.shape})"


def simt_array(array: np.ndarray[Any, Any], dtype: str | None = None) -> SimtArray:
    """Wrap `array` as a kernel argument of the SIMT device; nothing is copied.

    Args:
        array: Any strided array. The kernel writes into it.
        dtype: Triton's name of the element type where NumPy has none, such as ``"bf16"`` for an array of ``uint16``.

    Raises:
        UsageError: ``bad-option`` if `dtype` is unknown or of another size than the elements of `array`.
    """
    if dtype is None:
        return SimtArray(array, ElementType(str(array.dtype), array.dtype.itemsize, array.dtype.kind == "f"))
    if _FLOATS.get(dtype) != array.dtype.itemsize:
        raise UsageError(
            "bad-option",
            where="simt_array(dtype=...)",
            found=f"{dtype!r} for elements of {array.dtype.itemsize} bytes",
            expected=", ".join(f"{name} ({size})" for name, size in _FLOATS.items()),
            fix="view the array as unsigned integers of the right size first",
        )
    return SimtArray(array, ElementType(dtype, array.dtype.itemsize, is_floating_point=True))


@dataclass(frozen=True, slots=True)
class Storage:
    """A run of bytes of the process that a kernel may use."""

    address: int
    nbytes: int
    name: str
    writable: bool = True

    @property
    def end(self) -> int:
        """Address after the last byte."""
        return self.address + self.nbytes


def address_of(argument: object, name: str) -> int:
    """Return the address that the pointer argument `name` stands for; None is the null pointer.

    Raises:
        UsageError: ``bad-argument`` if `argument` has no address, or one that means nothing on this device.
    """
    if argument is None:
        return 0
    if isinstance(argument, int):
        return argument
    if is_numpy_array(argument):
        return int(argument.ctypes.data)  # type: ignore[attr-defined]
    data_ptr = getattr(argument, "data_ptr", None)
    if data_ptr is None:
        raise UsageError(
            "bad-argument",
            what="a kernel argument cannot be passed",
            where=f"argument {name}",
            found=f"an object of type {type(argument).__name__}",
            expected="a tensor, a NumPy array, an address, or None",
            fix="pass one of those",
        )
    _require_host_memory(argument, name)
    return int(data_ptr())


def _require_host_memory(argument: object, name: str) -> None:
    # A tensor of torch knows its device; on `meta` it says that its address is 0.
    kind = getattr(getattr(argument, "device", None), "type", "cpu")
    if kind == "cpu":
        return
    meta = kind == "meta"
    raise UsageError(
        "bad-argument",
        what="a kernel argument cannot be passed",
        where=f"argument {name}",
        found="a tensor on torch's meta device, which has a shape and no memory" if meta else f"a tensor on {kind}",
        expected="memory of the CPU, where the SIMT device runs",
        fix=f"make it on the CPU: torch.empty_like({name}, device='cpu')" if meta else f"pass {name}.cpu()",
    )


def storage_of(argument: object, name: str) -> Storage | None:
    """Return all bytes that `argument` belongs to, not only those it spans; None where that is not known.

    A kernel may reach any element of the allocation from a view of it, so the allocation is what is valid.
    """
    for _ in range(_MAX_WRAPPING):
        if is_numpy_array(argument):
            return _numpy_storage(argument, name)  # type: ignore[arg-type]
        if isinstance(argument, SimtArray):
            return _numpy_storage(argument.array, name)
        if isinstance(argument, HostBuffer):
            return Storage(argument.data_ptr(), argument.mapped_bytes, name)
        if hasattr(argument, "untyped_storage"):
            storage = argument.untyped_storage()
            return Storage(int(storage.data_ptr()), int(storage.nbytes()), name)
        if not hasattr(argument, "base"):  # triton.reinterpret() wraps a tensor in an object with `base`.
            return None
        argument = argument.base
    return None


def is_numpy_array(argument: object) -> bool:
    """Tell whether `argument` is a NumPy array, without importing NumPy."""
    numpy = sys.modules.get("numpy")
    # Not isinstance: it may ask the argument for its class, which some objects on the heap answer with side effects.
    return numpy is not None and issubclass(type(argument), numpy.ndarray)


def _numpy_storage(array: np.ndarray[Any, Any], name: str) -> Storage:
    from numpy.lib.array_utils import byte_bounds

    writable = bool(array.flags.writeable)
    while is_numpy_array(array.base):
        array = array.base  # type: ignore[assignment]
    low, high = byte_bounds(array)
    return Storage(int(low), int(high - low), name, writable)
