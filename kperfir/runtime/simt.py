"""A Triton driver for the embedded SIMT device: unmodified `kernel[grid](cpu_tensor, ...)` runs its PTX on the CPU.

Owns what Triton asks of a driver; kernels are launched through `simt_launcher`. Which driver Triton gets is decided in
`select`; what a launch records, in `launch`.
The device itself is `kperfir._native.simt`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kperfir.errors import DeviceError
from kperfir.runtime import simulated_time
from kperfir.runtime.arrays import Storage
from kperfir.runtime.device import HostBuffer, StreamedHostBuffer
from kperfir.runtime.memory import LiveArrays, merged
from kperfir.runtime.modules import LoadedModules
from kperfir.runtime.simt_faults import device_error
from kperfir.runtime.simt_launcher import WARP_SIZE, LaunchShape, LoadedKernel, SimtLauncher, SimtUtils

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from kperfir.runtime.arguments import Parameters
    from kperfir.runtime.chip import Chip
    from kperfir.runtime.ghost import Ghost
    from kperfir.runtime.lap_drain import LapPlaces

_ELF_MAGIC = b"\x7fELF"
# About as long as a GPU's host takes to look whether there is something to take, and to take it.
SERVICE_CYCLES = 20_000


@dataclass(frozen=True, slots=True)
class FinishedLaunch:
    """A launch and what the device says about it."""

    kernel: LoadedKernel
    shape: LaunchShape
    result: Any


class SimtDriver:
    """The driver of one SIMT device. `clock_ns` is its simulated time."""

    def __init__(
        self, chip: Chip, *, threads: int, seed: int, waves: int = 0, native: ModuleType | None = None
    ) -> None:
        self.chip = chip
        self.clock_ns = 0.0
        self.utils = SimtUtils(self)
        self.launcher_cls: Callable[..., Any] = SimtLauncher
        self._threads = threads or os.cpu_count() or 1
        self._seed = seed
        self._waves = waves
        self._native = native or _native_simt()
        self._device: Any = None
        self._orphans: list[Any] = []
        self._live = LiveArrays()
        self._modules = LoadedModules()
        self._lock = threading.RLock()
        self._local = threading.local()
        self._observers: list[Callable[[FinishedLaunch], None]] = []
        self._log = False
        self._ghost: Ghost | None = None
        os.register_at_fork(after_in_child=self._after_fork)

    # What Triton asks of a driver.

    @classmethod
    def is_active(cls) -> bool:
        """Return True: the device is always there."""
        return True

    def get_current_target(self) -> Any:
        """Return the target to compile for."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.chip.arch, WARP_SIZE)

    def get_current_device(self) -> int:
        """Return the index of the device."""
        return self.chip.index

    def set_current_device(self, device: int) -> None:
        """Do nothing: there is one device."""

    def get_current_stream(self, device: int | None = None) -> int:
        """Return the one stream there is."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """Return the compute capability."""
        return divmod(self.chip.arch, 10)

    def get_active_torch_device(self) -> Any:
        """Return torch's CPU: that is where arguments live."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> simulated_time.DeviceInterface:
        """Return what stands in for `torch.cuda`."""
        return simulated_time.DeviceInterface(self, self.chip.index)

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return what the autotuner measures with."""
        return simulated_time.benchmarker(self)

    def get_empty_cache_for_benchmark(self) -> None:
        """Return None: benchmarks do not clear the simulated cache."""

    def clear_cache(self, cache: object) -> None:
        """Do nothing: benchmarks do not clear the simulated cache."""

    def map_python_to_cpp_type(self, kind: str) -> str:
        """Return the C++ type of a kernel argument, as Triton's CUDA driver names it."""
        from triton.backends.nvidia.driver import ty_to_cpp

        return str(ty_to_cpp(kind))

    def assemble_tensormap_to_arg(self, tensormaps_info: object, arguments: Any) -> Any:
        """Return `arguments`: tensor maps are made by the launcher."""
        return arguments

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: int) -> HostBuffer:
        """Return a zeroed buffer."""
        return HostBuffer(size, alignment)

    # What kperfir asks of it.

    @property
    def profile_device(self) -> SimtDriver:
        """The driver is its own profile device (see `device.ProfileDevice`)."""
        return self

    simulated = True
    asynchronous = False

    def allocate_zeroed(self, size: int, alignment: int, stream: int) -> HostBuffer:
        """Return a zeroed buffer for records."""
        return HostBuffer(size, alignment)

    def allocate_streamed(self, size: int, alignment: int, stream: int, places: LapPlaces) -> StreamedHostBuffer:
        """Return one whose laps are taken between two steps of the launch."""
        return StreamedHostBuffer(size, alignment, places)

    def is_capturing(self, stream: int) -> bool:
        """Return what the driver's utilities say."""
        return self.utils.is_stream_capturing(stream)

    def describe(self) -> dict[str, Any]:
        """Return what a capture says about the device."""
        return {
            "name": "SIMT device",
            "simulated": True,
            "chip": self.chip.name,
            "arch": self.chip.arch,
            "clock_hz": self.chip.clock_hz,
            "sm_count": self.chip.triton_properties()["multiprocessor_count"],
            "seed": self._seed,
        } | ({"detailed_waves": self._waves} if self._waves else {})

    def describe_last_launch(self) -> dict[str, Any]:
        """Return the timing of the last launch of this thread."""
        finished: FinishedLaunch | None = getattr(self._local, "last", None)
        if finished is None:
            return {}
        result = finished.result
        return {
            "cycles": int(result.cycles),
            "start_cycles": int(result.start_cycles),
            "ns": float(result.ns),
            "ctas_per_sm": int(result.occupancy),
            "occupancy_limiter": str(result.stats["occupancy_limiter"]),
        } | self._sampling(result)

    def _sampling(self, result: Any) -> dict[str, Any]:
        """Return what a capture says about a launch of which not all CTAs were simulated in detail; else nothing."""
        if not result.untimed_ctas:
            return {}
        return {
            "untimed_ctas": [[int(begin), int(end)] for begin, end in result.untimed_ctas],
            "untimed_waves": int(result.untimed_waves),
            "cycles_per_wave": round(result.cycles_per_wave),
        }

    def successor(self) -> SimtDriver:
        """Return the SIMT driver that Triton uses now: this one, or another since it loaded a kernel."""
        return active_simt_driver() or self

    def load(self, name: str, binary: bytes) -> LoadedKernel:
        """Parse `binary`, the PTX of kernel `name`."""
        if binary.startswith(_ELF_MAGIC):
            raise DeviceError(
                "not-ptx",
                what="the SIMT device cannot run a cubin",
                where=f"kernel {name}",
                found="a compiled binary",
                expected="PTX",
                fix="compile it while the SIMT device is active, with no other tool replacing the cubin stage",
            )
        try:
            module = self._modules.load(self._native.Module, name, binary)
        except self._native.Error as error:
            raise device_error(error, name) from None
        return LoadedKernel(name, module, self, binary)

    def launch(self, kernel: LoadedKernel, shape: LaunchShape, parameters: Parameters) -> FinishedLaunch:
        """Run a kernel to its end.

        Raises:
            DeviceError: With the kind of fault as its code, the kernel, source line, CTA, warp and lane.
        """
        with self._lock:
            storages = merged([*parameters.storages, *parameters.scratch])
            device = self._open_device()
            with self._live.launch(), _mapped(device, storages, self._live):
                try:
                    result = device.launch(
                        kernel.module, grid=shape.grid, block_threads=shape.threads, shared_bytes=shape.shared_bytes,
                        params=parameters.values, cluster=shape.cluster, log=self._log,
                        **(self._ghost.launch_options(kernel) if self._ghost else {}), **_service(parameters),
                    )  # fmt: skip
                except self._native.Error as error:
                    raise device_error(error, kernel.name, parameters) from None
                except ValueError as error:  # A wrong request: threads, shared memory or parameters do not fit.
                    raise DeviceError(
                        "bad-launch", what="the SIMT device refuses a launch", where=f"kernel {kernel.name}",
                        found=str(error), fix="use a smaller block, fewer warps or fewer stages",
                    ) from None  # fmt: skip
            self.clock_ns += float(result.ns)
            finished = self._local.last = FinishedLaunch(kernel, shape, result)
            for observer in list(self._observers):
                observer(finished)
        if result.printf:
            sys.stdout.write("".join(result.printf))
            sys.stdout.flush()
        return finished

    @contextlib.contextmanager
    def observed(self, *, log: bool = False) -> Iterator[list[FinishedLaunch]]:
        """Collect every launch made in the block; with `log`, each with the device's event log."""
        launches: list[FinishedLaunch] = []
        previous_log, self._log = self._log, self._log or log
        self._observers.append(launches.append)
        try:
            yield launches
        finally:
            self._observers.remove(launches.append)
            self._log = previous_log

    @contextlib.contextmanager
    def ghost(self, ghost: Ghost) -> Iterator[None]:
        """Let kperfir's own instructions take no time in launches made in the block."""
        previous, self._ghost = self._ghost, ghost
        try:
            yield
        finally:
            self._ghost = previous

    def _open_device(self) -> Any:
        if self._device is None:
            try:
                self._device = self._native.Device(
                    self.chip.text, threads=self._threads, seed=self._seed, waves=self._waves
                )
            except ValueError as error:
                raise DeviceError(
                    "bad-chip", what="the chip file is not valid", where=f"chip {self.chip.name}", found=str(error),
                    fix="compare it with a100.json",
                ) from None  # fmt: skip
        return self._device

    def _after_fork(self) -> None:
        self._lock = threading.RLock()
        if self._device is not None:
            # Its threads do not exist in this process, so its destructor would wait for ever.
            self._orphans.append(self._device)
            self._device = None


def _service(parameters: Parameters) -> dict[str, Any]:
    """Return what a launch is given for something that is to happen while it runs."""
    if parameters.service is None:
        return {}
    return {"service": parameters.service, "service_cycles": SERVICE_CYCLES}


def active_simt_driver() -> SimtDriver | None:
    """Return the driver that Triton uses now if it is a SIMT driver. Never makes Triton choose one."""
    module = sys.modules.get("triton.runtime.driver")
    if module is None:
        return None
    config = module.driver
    driver = config._active if config._active is not None else config._default
    return driver if isinstance(driver, SimtDriver) else None


@contextlib.contextmanager
def _mapped(device: Any, storages: list[Storage], live: LiveArrays) -> Iterator[None]:
    """Make `storages` valid on `device`, and whatever live memory else the kernel turns out to use."""
    mapped: list[Storage] = []

    def resolve(address: int) -> tuple[int, int, str] | None:
        found = live.find(address)
        if found is None:
            return None
        # The device takes disjoint ranges only.
        start = max([found.address, *(s.end for s in mapped if s.end <= address)])
        end = min([found.end, *(s.address for s in mapped if s.address > address)])
        mapped.append(Storage(start, end - start, found.name))
        return start, end - start, found.name

    try:
        for storage in storages:
            device.map(storage.address, storage.nbytes, storage.name, storage.writable)
            mapped.append(storage)
        device.set_resolver(resolve)
        yield
    finally:
        device.set_resolver(None)
        for storage in mapped:
            device.unmap(storage.address)


def _native_simt() -> ModuleType:
    try:
        from kperfir._native import simt
    except ImportError as error:
        raise DeviceError(
            "native-missing", found=str(error), fix="reinstall kperfir; `kperfir doctor` says what is missing"
        ) from None
    module: ModuleType = simt
    return module
