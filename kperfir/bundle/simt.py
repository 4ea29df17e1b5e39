"""A bundle's device that is the SIMT device: runs the PTX, in simulated time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kperfir.config import resolve
from kperfir.runtime.arguments import Parameters
from kperfir.runtime.arrays import Storage
from kperfir.runtime.chip import load_chip
from kperfir.runtime.device import HostBuffer
from kperfir.runtime.simt import SimtDriver
from kperfir.runtime.simt_launcher import LaunchShape, LoadedKernel
from kperfir.runtime.tensor_map import fill_tiled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kperfir.bundle.manifest import Variant


@dataclass(frozen=True, slots=True)
class SimtFunction:
    """A parsed kernel."""

    kernel: LoadedKernel
    variant: Variant
    registers: int
    local_bytes: int = 0


class SimtBundleDevice:
    """The chip that TRITON_KPERF_SIMT_CHIP names."""

    def __init__(self) -> None:
        self._driver = SimtDriver(load_chip(resolve().simt_chip), threads=1, seed=0)
        self._memory: dict[int, HostBuffer] = {}

    @property
    def arch(self) -> int:
        return self._driver.chip.arch

    def describe(self) -> dict[str, Any]:
        """Return what a capture says about the device."""
        return self._driver.describe()

    def allocate(self, nbytes: int, alignment: int) -> int:
        """Return the address of new memory, zeroed."""
        buffer = HostBuffer(nbytes, alignment)
        self._memory[buffer.data_ptr()] = buffer
        return buffer.data_ptr()

    def free_all(self) -> None:
        """Give all memory back."""
        self._memory.clear()

    def write(self, address: int, data: bytes) -> None:
        """Copy to the device."""
        self._memory[address].read()[: len(data)] = np.frombuffer(data, np.uint8)

    def clear(self, address: int, nbytes: int) -> None:
        """Write zeros."""
        self._memory[address].read()[:nbytes] = 0

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy from the device."""
        return self._memory[address].read()[:nbytes].tobytes()

    def load(self, variant: Variant, folder: Path) -> SimtFunction:
        """Parse the PTX of `variant`."""
        kernel = self._driver.load(variant.entry, (folder / variant.ptx).read_bytes())
        return SimtFunction(kernel, variant, int(kernel.module.registers))

    def tensor_map(self, address: int, description: dict[str, Any]) -> bytes:
        """Return the tensor map of a tiled tensor."""
        names = ("swizzle", "element_bytes", "element_type", "box", "shape", "strides", "padding")
        return fill_tiled(address, *(description[name] for name in names))

    def launch(self, function: SimtFunction, grid: tuple[int, int, int], parameters: Sequence[bytes]) -> dict[str, Any]:
        """Launch; `us` are simulated microseconds."""
        variant = function.variant
        shape = LaunchShape(
            grid=(grid[0] * variant.cluster, grid[1], grid[2]),
            cluster=(variant.cluster, 1, 1),
            threads=variant.threads,
            shared_bytes=variant.shared_bytes,
        )
        storages = [Storage(address, buffer.nbytes, "memory") for address, buffer in self._memory.items()]
        self._driver.launch(function.kernel, shape, Parameters(list(parameters), storages))
        facts = self._driver.describe_last_launch()
        return {**facts, "us": facts["ns"] / 1e3}
