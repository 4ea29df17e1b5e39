"""The CUDA driver, by ctypes: as much of it as it takes to run a bundle.

    device = CudaDevice(0)
    function = device.load(variant, folder)
    device.launch(function, grid, parameters)

Signatures and numbers are those of cuda.h of CUDA 12; launches are set up as Triton's own launcher does it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.errors import DeviceError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kperfir.bundle.manifest import Variant

LIBRARIES = ("libcuda.so.1", "libcuda.so")

# CUdevice_attribute
_CLOCK_KHZ, _SM_COUNT, _MAJOR, _MINOR = 13, 16, 75, 76
# CUfunction_attribute
_LOCAL_BYTES, _REGISTERS, _MAX_DYNAMIC_SHARED, _NON_PORTABLE_CLUSTER = 3, 4, 8, 14
# CUlaunchAttributeID
_COOPERATIVE, _CLUSTER_DIMENSION, _CLUSTER_POLICY, _DEPENDENT = 2, 4, 5, 6
_POLICY_SPREAD = 1
_PORTABLE_CLUSTER = 8
_L2_PROMOTION_128B = 2
_STATIC_SHARED_LIMIT = 48 << 10
TENSOR_MAP_BYTES, TENSOR_MAP_ALIGNMENT = 128, 64


class _AttributeValue(ctypes.Union):
    _fields_ = (("words", ctypes.c_uint * 3), ("number", ctypes.c_int), ("bytes", ctypes.c_char * 64))


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_uint), ("pad", ctypes.c_char * 4), ("value", _AttributeValue))


class _Config(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint),
    )


@dataclass(frozen=True, slots=True)
class Function:
    """A loaded binary."""

    handle: ctypes.c_void_p
    variant: Variant
    registers: int
    local_bytes: int


class CudaDevice:
    """One GPU, its primary context current in this thread.

    Raises:
        DeviceError: ``no-cuda`` if there is no driver or no such device.
    """

    def __init__(self, index: int = 0) -> None:
        self._cuda = _load_driver()
        self._call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), index)
        self._device = device
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._memory: list[int] = []

    @property
    def arch(self) -> int:
        """Compute capability times 10."""
        return 10 * self._attribute(_MAJOR) + self._attribute(_MINOR)

    def describe(self) -> dict[str, Any]:
        """Return what a capture says about the device."""
        name, version = ctypes.create_string_buffer(256), ctypes.c_int()
        self._call("cuDeviceGetName", name, len(name), self._device)
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return {
            "name": name.value.decode(),
            "simulated": False,
            "arch": self.arch,
            "clock_hz": self._attribute(_CLOCK_KHZ) * 1e3,
            "sm_count": self._attribute(_SM_COUNT),
            "driver": version.value,
        }

    def allocate(self, nbytes: int, alignment: int) -> int:
        """Return the address of new memory; the driver aligns it to 256 bytes, more is made room for."""
        address = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(nbytes, 1) + alignment))
        self._memory.append(address.value)
        return address.value + -address.value % alignment

    def free_all(self) -> None:
        """Give all memory back."""
        while self._memory:
            self._call("cuMemFree_v2", ctypes.c_uint64(self._memory.pop()))

    def write(self, address: int, data: bytes) -> None:
        """Copy to the device."""
        self._call("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))

    def clear(self, address: int, nbytes: int) -> None:
        """Write zeros."""
        self._call("cuMemsetD8_v2", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(nbytes))

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy from the device."""
        data = ctypes.create_string_buffer(nbytes)
        self._call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(nbytes))
        return data.raw

    def load(self, variant: Variant, folder: Path) -> Function:
        """Load the binary of `variant`."""
        module, handle = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), (folder / variant.cubin).read_bytes())
        self._call("cuModuleGetFunction", ctypes.byref(handle), module, variant.entry.encode())
        if variant.shared_bytes > _STATIC_SHARED_LIMIT:
            self._call("cuFuncSetAttribute", handle, _MAX_DYNAMIC_SHARED, variant.shared_bytes)
        if variant.cluster > _PORTABLE_CLUSTER:
            self._call("cuFuncSetAttribute", handle, _NON_PORTABLE_CLUSTER, 1)
        registers, local = ctypes.c_int(), ctypes.c_int()
        self._call("cuFuncGetAttribute", ctypes.byref(registers), _REGISTERS, handle)
        self._call("cuFuncGetAttribute", ctypes.byref(local), _LOCAL_BYTES, handle)
        return Function(handle, variant, registers.value, local.value)

    def tensor_map(self, address: int, description: dict[str, Any]) -> bytes:
        """Return the tensor map of a tiled tensor; `description` as in `manifest.Parameter`."""
        rank = len(description["shape"])
        strides = [stride * description["element_bytes"] for stride in description["strides"][-2::-1]]
        memory = ctypes.create_string_buffer(TENSOR_MAP_BYTES + TENSOR_MAP_ALIGNMENT)
        start = -ctypes.addressof(memory) % TENSOR_MAP_ALIGNMENT
        fill_with_nan = 1 if description["padding"] == 1 else 0
        self._call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(ctypes.addressof(memory) + start),
            description["element_type"],
            ctypes.c_uint(rank),
            ctypes.c_uint64(address),
            (ctypes.c_uint64 * rank)(*description["shape"][::-1]),
            (ctypes.c_uint64 * max(rank - 1, 1))(*strides),
            (ctypes.c_uint * rank)(*description["box"][::-1]),
            (ctypes.c_uint * rank)(*[1] * rank),
            0,
            description["swizzle"],
            _L2_PROMOTION_128B,
            fill_with_nan,
        )
        return memory.raw[start : start + TENSOR_MAP_BYTES]

    def launch(self, function: Function, grid: tuple[int, int, int], parameters: Sequence[bytes]) -> dict[str, Any]:
        """Launch and wait.

        Args:
            function: What `load` returned.
            grid: Clusters per dimension.
            parameters: Bytes of each.

        Returns:
            `us`: microseconds between two events around the launch.
        """
        events = (ctypes.c_void_p(), ctypes.c_void_p())
        for event in events:
            self._call("cuEventCreate", ctypes.byref(event), 0)
        start, end = events
        self._call("cuEventRecord", start, None)
        self._enqueue(function, grid, _Parameters(parameters))
        self._call("cuEventRecord", end, None)
        self._call("cuCtxSynchronize")
        milliseconds = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
        for event in events:
            self._call("cuEventDestroy_v2", event)
        return {"us": 1e3 * milliseconds.value}

    def _enqueue(self, function: Function, grid: tuple[int, int, int], parameters: _Parameters) -> None:
        variant = function.variant
        attributes = (_Attribute * 4)()
        count = 0

        def add(kind: int, *words: int) -> None:
            nonlocal count
            attributes[count].id = kind
            attributes[count].value.words[: len(words)] = words
            count += 1

        if variant.dependent:
            add(_DEPENDENT, 1)
        if variant.cooperative:
            add(_COOPERATIVE, 1)
        if variant.cluster > 1:
            add(_CLUSTER_DIMENSION, variant.cluster, 1, 1)
            add(_CLUSTER_POLICY, _POLICY_SPREAD)
        config = _Config(
            (grid[0] * variant.cluster, grid[1], grid[2]), (variant.threads, 1, 1), variant.shared_bytes, None,
            attributes, count,
        )  # fmt: skip
        self._call("cuLaunchKernelEx", ctypes.byref(config), function.handle, parameters.pointers, None)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            absent = name in ("cuInit", "cuDeviceGet")
            raise DeviceError(
                "no-cuda" if absent else "cuda-error",
                what="there is no CUDA device" if absent else "the CUDA driver reports an error",
                where=name, found=f"{status}: {(text.value or b'unknown error').decode()}",
                fix="run nvidia-smi to see what the driver says; --device simt needs no GPU",
            )  # fmt: skip


class _Parameters:
    """The array of pointers to parameters that a launch takes, and the memory that they point to."""

    def __init__(self, values: Sequence[bytes]) -> None:
        # 64 bytes are what a tensor map asks for; for all others they do no harm.
        sizes = [-(-len(value) // TENSOR_MAP_ALIGNMENT) * TENSOR_MAP_ALIGNMENT for value in values]
        self._memory = ctypes.create_string_buffer(sum(sizes) + TENSOR_MAP_ALIGNMENT)
        address = ctypes.addressof(self._memory)
        address += -address % TENSOR_MAP_ALIGNMENT
        self.pointers = (ctypes.c_void_p * max(len(values), 1))()
        for index, (value, size) in enumerate(zip(values, sizes, strict=True)):
            ctypes.memmove(address, value, len(value))
            self.pointers[index] = address
            address += size


def _load_driver() -> ctypes.CDLL:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(
        "no-cuda", what="there is no CUDA driver", found=f"none of {', '.join(LIBRARIES)}",
        fix="run it on a machine with an NVIDIA GPU, or with --device simt",
    )  # fmt: skip
