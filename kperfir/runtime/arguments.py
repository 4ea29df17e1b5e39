"""Turn the Python arguments of a launch into the parameters of its PTX entry.

    parameters = pack(signature, tensordesc_meta, arguments)

Follows Triton's own CUDA launcher: constexprs vanish, tuples are flattened, a tensor descriptor becomes a tensor map
(or, below sm_90, a pointer) with shape and strides. The two scratch pointers at the end are the launcher's.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.errors import DeviceError
from kperfir.runtime.arrays import Storage, address_of, storage_of
from kperfir.runtime.tensor_map import fill_tiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kperfir.runtime.room import RecordAddress

_INTEGER_BYTES = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}  # fmt: skip


class ParameterSink(Protocol):
    """Takes the parameters of an entry, in their order; `name` is the argument's that one belongs to."""

    def add_value(self, value: bytes, name: str) -> None:
        """Append the bytes of a scalar."""
        ...

    def add_pointer(self, argument: object, kind: str, name: str) -> None:
        """Append a pointer to `argument`, of Triton's type `kind`."""
        ...

    def add_tensor_map(self, description: TensorMapArguments, name: str) -> None:
        """Append a tensor map."""
        ...


@dataclass(frozen=True, slots=True)
class TensorMapArguments:
    """A tiled tensor as Triton's CUDA driver describes it to cuTensorMapEncodeTiled.

    `base` is the argument behind the descriptor; extents are outermost first, strides in elements.
    """

    base: object
    swizzle: int
    element_bytes: int
    element_type: int
    box: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: int


@dataclass(slots=True)
class Parameters:
    """Parameters of one launch, in the order of the entry, and the memory they point to.

    Attributes:
        values: Bytes of each parameter.
        storages: The memory of the user's arguments, where it is known.
        scratch: The memory that the launcher adds.
        nulls: Names of the user's pointers that are null.
        service: What is to be called now and then while the launch runs.
    """

    values: list[bytes] = field(default_factory=list)
    storages: list[Storage] = field(default_factory=list)
    scratch: list[Storage] = field(default_factory=list)
    nulls: list[str] = field(default_factory=list)
    service: Callable[[], object] | None = None

    def add_value(self, value: bytes, name: str) -> None:
        """Append the bytes of a scalar."""
        self.values.append(value)

    def add_pointer(self, argument: object, kind: str, name: str) -> None:
        """Append a pointer of the user's, and the memory behind it where that is known."""
        address = address_of(argument, name)
        self.values.append(struct.pack("<Q", address))
        if address == 0:
            self.nulls.append(name)
        self.add_memory(argument, name)

    def add_tensor_map(self, description: TensorMapArguments, name: str) -> None:
        """Append a tensor map of the device's own form, and note the memory behind it."""
        d = description
        address = address_of(d.base, name)
        self.values.append(
            fill_tiled(address, d.swizzle, d.element_bytes, d.element_type, d.box, d.shape, d.strides, d.padding)
        )
        self.add_memory(d.base, name)

    def add_memory(self, argument: object, name: str) -> None:
        """Note the memory behind an argument of the user's, where that is known."""
        storage = storage_of(argument, name)
        if storage is not None:
            self.storages.append(storage)

    def add_scratch(self, buffer: object, name: str, alignment: int = 1, nbytes: int | None = None) -> None:
        """Append a pointer, rounded up to `alignment`, to memory that the user has not passed; None is null.

        The kernel may use `nbytes` of it, or what there is. What the rounding skips is left out: simulated cycles
        depend on where in its range a kernel writes, and must not on where an allocator put the buffer.
        """
        address = address_of(buffer, name)
        address += -address % alignment
        self.values.append(struct.pack("<Q", address))
        storage = storage_of(buffer, name)
        if storage is None:
            return
        usable = storage.end - address if nbytes is None else min(storage.end - address, nbytes)
        if usable > 0:
            self.scratch.append(replace(storage, address=address, nbytes=usable))

    def add_records(self, address: RecordAddress) -> None:
        """Append where a kernel records to, and the memory behind it."""
        self.values.append(struct.pack("<Q", address))
        self.service = address.service
        memory = storage_of(address.memory, "profile scratch")
        if memory is not None and memory.nbytes:
            self.scratch.append(memory)


def pack(signature: Mapping[str, Any], tensordesc_meta: Sequence[Any], arguments: Sequence[Any]) -> Parameters:
    """Return the parameters for `arguments`; see `flatten`."""
    parameters = Parameters()
    flatten(signature, tensordesc_meta, arguments, parameters)
    return parameters


def flatten(
    signature: Mapping[str, Any], tensordesc_meta: Sequence[Any], arguments: Sequence[Any], sink: ParameterSink
) -> None:
    """Give `sink` the parameters that Triton's launcher passes for `arguments`.

    Args:
        signature: Triton type of each argument by name; a tuple of types for a tuple.
        tensordesc_meta: Triton's facts about each tensor descriptor that is passed as a tensor map; empty below sm_90.
        arguments: One value per entry of `signature`.
        sink: What to call.
    """
    flattener = _Flattener(sink, iter(tensordesc_meta) if tensordesc_meta else None)
    for (name, kind), argument in zip(signature.items(), arguments, strict=True):
        flattener.add(kind, argument, name)


class _Flattener:
    def __init__(self, sink: ParameterSink, tensor_maps: Iterator[Any] | None) -> None:
        self._sink = sink
        self._tensor_maps = tensor_maps

    def add(self, kind: Any, argument: Any, name: str) -> None:
        if isinstance(kind, tuple):
            for index, (inner_kind, inner) in enumerate(zip(kind, argument, strict=True)):
                self.add(inner_kind, inner, f"{name}[{index}]")
        elif kind == "constexpr":
            pass
        elif kind.startswith("tensordesc"):
            self._add_descriptor(kind, argument, name)
        elif kind.startswith("*"):
            self._sink.add_pointer(argument, kind, name)
        else:
            self._sink.add_value(_scalar(kind, argument, name), name)

    def _add_descriptor(self, kind: str, descriptor: Any, name: str) -> None:
        if self._tensor_maps is None:
            from triton.backends.driver import decompose_descriptor, expand_signature

            parts = decompose_descriptor(descriptor)
            for part_kind, part in zip(expand_signature([kind], None, ""), parts, strict=True):
                self.add(part_kind, part, name)
            return
        self._sink.add_tensor_map(_tensor_map(descriptor, next(self._tensor_maps)), name)
        for extent in descriptor.shape:
            self.add("i32", extent, name)
        for stride in descriptor.strides:
            self.add("i64", stride, name)


def _scalar(kind: str, argument: Any, name: str) -> bytes:
    try:
        if kind in _INTEGER_BYTES:
            size = _INTEGER_BYTES[kind]
            return (int(argument) & (1 << 8 * size) - 1).to_bytes(size, "little")
        return _FLOAT_BYTES[kind](float(argument))
    except (KeyError, struct.error, TypeError, ValueError, OverflowError) as error:
        raise DeviceError(
            "bad-argument",
            what="a kernel argument cannot be passed",
            where=f"argument {name}",
            found=f"{argument!r} ({type(argument).__name__})",
            expected=f"a value of type {kind} ({error})",
            fix="pass a value of that type",
        ) from None


def _float32(value: float) -> bytes:
    return bytes(ctypes.c_float(value))  # Overflows to infinity, where struct would raise.


_FLOAT_BYTES: dict[str, Callable[[float], bytes]] = {
    "fp16": lambda value: struct.pack("<e", value),
    "bf16": lambda value: _float32(value)[2:],  # Truncates, as Triton's CUDA launcher does.
    "fp32": _float32,
    "f32": _float32,
    "fp64": lambda value: struct.pack("<d", value),
}


def _tensor_map(descriptor: Any, meta: Mapping[str, Any]) -> TensorMapArguments:
    from triton.backends.nvidia.driver import TMA_DTYPE_DEVICE_TO_HOST, TMA_TF32

    if meta.get("is_im2col"):
        raise DeviceError(
            "unsupported", what="a tensor descriptor cannot be passed", found="an im2col descriptor",
            expected="a tiled one", fix="run the kernel on a GPU",
        )  # fmt: skip
    shape = list(descriptor.shape)
    if meta["fp4_padded"]:
        shape[-1] *= 2
    element = TMA_TF32 if descriptor.round_f32_to_tf32 else TMA_DTYPE_DEVICE_TO_HOST[meta["elem_type"]]
    return TensorMapArguments(
        descriptor.base, meta["swizzle"], meta["elem_size"], element, tuple(meta["block_size"]), tuple(shape),
        tuple(descriptor.strides), int(descriptor.padding == "nan"),
    )  # fmt: skip
