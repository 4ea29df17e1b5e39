"""What Triton reaches through the SIMT driver: its utilities, and the launcher of each kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.runtime.arguments import Parameters, pack
from kperfir.runtime.arrays import address_of
from kperfir.runtime.room import RecordAddress
from kperfir.runtime.tensor_map import fill_tiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.runtime.simt import SimtDriver

WARP_SIZE = 32
_MAX_THREADS_PER_CTA = 1024


@dataclass(frozen=True, slots=True)
class LoadedKernel:
    """A parsed kernel. It is both the module and the function handle that Triton keeps."""

    name: str
    module: Any
    driver: SimtDriver
    ptx: bytes = b""


@dataclass(frozen=True, slots=True)
class LaunchShape:
    """The shape of a launch. `grid` counts CTAs, those of a cluster included."""

    grid: tuple[int, int, int]
    cluster: tuple[int, int, int]
    threads: int
    shared_bytes: int


class SimtUtils:
    """What Triton reaches as `driver.active.utils`."""

    def __init__(self, driver: SimtDriver) -> None:
        self._driver = driver

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """Parse the PTX of a kernel.

        Returns:
            Module, function, registers per thread, spilled registers, most threads per CTA.

        Raises:
            DeviceError: If the device cannot run it, or if `binary` is a cubin.
        """
        kernel = self._driver.load(name, binary)
        return kernel, kernel, int(kernel.module.registers), 0, _MAX_THREADS_PER_CTA

    def unload_module(self, module: object) -> None:
        """Do nothing: a kernel is freed with its last handle."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Return what Triton wants to know of the chip."""
        return self._driver.chip.triton_properties()

    def get_current_device(self) -> int:
        """Return the index of the device."""
        return self._driver.get_current_device()

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is one device."""

    def get_default_stream(self, device: int) -> int:
        """Return the one stream there is."""
        return 0

    def is_stream_capturing(self, stream: int) -> bool:
        """Return False: there are no graphs."""
        return False

    def get_device_capability(self, device: int) -> tuple[int, int]:
        """Return the compute capability."""
        return self._driver.get_device_capability(device)

    def fill_tma_descriptor_tiled(self, *description: Any) -> bytes:
        """Return a tensor map; for the arguments see `tensor_map.fill_tiled`."""
        return fill_tiled(*description)

    def set_printf_fifo_size(self, size: int) -> None:
        """Do nothing: printed text has no bound here."""


class SimtLauncher:
    """Launches one kernel; Triton makes one per compiled kernel and calls it once per launch."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._signature = {str(name): kind for name, kind in source.signature.items()}
        self._tensordesc_meta = list(getattr(metadata, "tensordesc_meta", None) or ())
        self._metadata = metadata

    def __call__(  # Triton's calling convention.
        self, grid_x: int, grid_y: int, grid_z: int, stream: int, function: LoadedKernel, packed_metadata: object,
        launch_metadata: object, enter_hook: Callable[..., object] | None, exit_hook: Callable[..., object] | None,
        *arguments: object,
    ) -> None:  # fmt: skip
        driver = function.driver.successor()
        metadata = self._metadata
        clusters = grid_x * grid_y * grid_z
        parameters = pack(self._signature, self._tensordesc_meta, arguments)
        keep_alive = self._add_scratch(driver, parameters, clusters * metadata.num_ctas, stream)
        shape = LaunchShape(
            grid=(grid_x * metadata.num_ctas, grid_y, grid_z),
            cluster=(metadata.num_ctas, 1, 1),
            threads=_threads_per_cta(function.module, metadata.num_warps),
            shared_bytes=metadata.shared,
        )
        if enter_hook is not None:
            enter_hook(launch_metadata)
        if clusters:
            driver.launch(function, shape, parameters)
        if exit_hook is not None:
            exit_hook(launch_metadata)
        del keep_alive

    def _add_scratch(self, driver: SimtDriver, parameters: Parameters, ctas: int, stream: int) -> list[object]:
        from triton.runtime import _allocation

        metadata = self._metadata
        profile_allocator = driver.allocate_default_profile_scratch
        if _allocation.has_profile_allocator():
            profile_allocator = _allocation._profile_allocator.get()
        buffers: list[object] = []
        for kind, allocate in (("global", _allocation._allocator.get()), ("profile", profile_allocator)):
            size = getattr(metadata, f"{kind}_scratch_size")
            alignment = getattr(metadata, f"{kind}_scratch_align")
            buffer = allocate(ctas * size, alignment, stream) if size and ctas else None
            if isinstance(buffer, RecordAddress):
                buffers.append(buffer)
                parameters.add_records(buffer)
                continue
            if buffer is not None and address_of(buffer, f"{kind} scratch") % alignment:
                # Written for GPU memory, which is aligned anyway; the CPU's is to less.
                buffer = allocate(ctas * size + alignment, alignment, stream)
            buffers.append(buffer)
            parameters.add_scratch(buffer, f"{kind} scratch", alignment, ctas * size)
        return buffers


def _threads_per_cta(module: Any, num_warps: int) -> int:
    if not module.reqntid:
        return num_warps * WARP_SIZE
    x, y, z = (*module.reqntid, 1, 1)[:3]  # Warp specialisation adds warps that the metadata does not count.
    return int(x * y * z)
