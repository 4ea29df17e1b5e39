"""Decide which driver Triton gets, and teach Triton about the SIMT device while it is in use.

    selection = Selection(options); selection.install(); ...; selection.uninstall()

Owns every change to Triton that running on the SIMT device needs. Each acts only while Triton's driver is a SIMT
driver: kernels for a real GPU are compiled, cached and launched as ever.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kperfir.errors import DeviceError, UsageError
from kperfir.runtime import simulated_time
from kperfir.runtime.arrays import is_numpy_array, simt_array
from kperfir.runtime.chip import load_chip
from kperfir.runtime.patches import Patches
from kperfir.runtime.simt import SimtDriver, active_simt_driver
from kperfir.runtime.simt_launcher import LoadedKernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from kperfir.config import Options

# Part of Triton's cache keys: what is stored as a cubin is PTX.
_CACHE_SALT = "-kperfir-simt-ptx-1"
_ELF_MAGIC = b"\x7fELF"


class Selection:
    """The choice of a driver for Triton, until it is uninstalled."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._patches = Patches()
        self._driver: SimtDriver | None = None
        self._previous: tuple[Any, Any] | None = None

    def accepts(self, device: str) -> bool:
        """Tell whether the setting `device` asks for nothing else than this selection."""
        return device in ("auto", self._options.device) or (device == "simt" and active_simt_driver() is not None)

    @property
    def device(self) -> str:
        """The setting this selection was made for."""
        return self._options.device

    def registers(self, kernel: str, binary: bytes) -> int | None:
        """Return registers per thread of the kernel with this name in `binary`, as far as the SIMT device knows them.

        It keeps what it reads for the launch.
        """
        driver = active_simt_driver()
        if driver is None or not binary:
            return None
        try:
            return int(driver.load(kernel, binary).module.registers)
        except DeviceError:  # It does not know all instructions of the target.
            return None

    def install(self) -> None:
        """Make Triton use the chosen driver; on `auto`, the SIMT device once Triton finds no GPU.

        Raises:
            DeviceError: If the SIMT device is asked for and cannot be had.
        """
        config = _driver_module().driver
        try:
            self._install_simt_support()
            if self._options.device == "simt":
                self._previous = (config._default, config._active)
                config._default = config._active = self._simt_driver()
            else:
                # Looking for GPUs starts the CUDA runtime, which must not happen before the program wants a driver.
                module = _driver_module()
                create = functools.partial(self._create_driver, module._create_driver)
                self._patches.replace(module, "_create_driver", create)
        except BaseException:
            self.uninstall()
            raise

    def uninstall(self) -> None:
        """Undo `install`."""
        config = _driver_module().driver
        if self._driver is not None:
            _release_kernels(self._driver)
            default, active = self._previous or (None, None)
            if config._default is self._driver:
                config._default = default
            if config._active is self._driver:
                config._active = active
            self._driver = None
        self._patches.undo()

    def _create_driver(self, create: Callable[[], Any]) -> Any:
        device = self._options.device
        if device == "auto" and not os.environ.get("TRITON_DEFAULT_BACKEND") and not gpu_is_visible():
            return self._simt_driver()
        if device != "auto":
            _require_gpu(device)
        return create()

    def _simt_driver(self) -> SimtDriver:
        if self._driver is None:
            options = self._options
            self._driver = _simt_driver(options.simt_chip, options.simt_threads, options.simt_seed, options.simt_waves)
        return self._driver

    def _install_simt_support(self) -> None:
        from triton.backends.nvidia.compiler import CUDABackend
        from triton.compiler import compiler
        from triton.runtime import jit

        # `triton.testing` as an attribute may be a wrapper; the module is what programs import from.
        testing = importlib.import_module("triton.testing")
        replace = self._patches.replace
        replace(CUDABackend, "make_cubin", _wrap(CUDABackend.make_cubin, _make_ptx_binary))
        replace(CUDABackend, "hash", _wrap(CUDABackend.hash, _salted_hash))
        replace(jit, "native_specialize_impl", _wrap(jit.native_specialize_impl, _specialize))
        replace(testing, "do_bench", _wrap(testing.do_bench, _do_bench))
        replace(compiler, "get_sass", _wrap(compiler.get_sass, _get_sass))


@functools.cache
def _simt_driver(chip: str, threads: int, seed: int, waves: int) -> SimtDriver:
    # A device outlives sessions, as a real one does: its clock goes on, and kernels that Triton keeps stay valid.
    return SimtDriver(load_chip(chip), threads=threads, seed=seed, waves=waves)


def gpu_is_visible() -> bool:
    """Tell whether one of Triton's own drivers would work. Imports torch only at a sign of an AMD GPU."""
    from triton.backends import backends

    amd = "torch" in sys.modules or Path("/dev/kfd").exists()
    return any(backend.driver.is_active() for name, backend in backends.items() if name != "amd" or amd)


def _require_gpu(device: str) -> None:
    from triton.backends import backends

    backend = backends.get({"cuda": "nvidia", "hip": "amd"}[device])
    if backend is None or not backend.driver.is_active():
        raise UsageError(
            "no-such-device",
            what="the device asked for is not there",
            where="TRITON_KPERF_DEVICE, or the argument device",
            found=f"{device}, but Triton sees no such GPU",
            expected="a visible GPU, or simt",
            fix="set it to simt, or to auto",
        )


def _driver_module() -> Any:
    # `import triton.runtime.driver as x` gives the object of that name, not the module.
    return importlib.import_module("triton.runtime.driver")


def _release_kernels(driver: SimtDriver) -> None:
    """Take their handles from kernels of `driver`: Triton would need a driver to free them."""
    from triton.compiler import CompiledKernel

    for candidate in gc.get_objects():
        if type(candidate) is CompiledKernel:
            module = candidate.module
            if isinstance(module, LoadedKernel) and module.driver is driver:
                # Triton loads a kernel without handles again when it is next launched.
                candidate.module = candidate.function = candidate._run = None


def _wrap(original: Callable[..., Any], replacement: Callable[..., Any]) -> Callable[..., Any]:
    """Return `original`, but calling `replacement(driver, original, ...)` while the SIMT device is in use."""

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        driver = active_simt_driver()
        return original(*args, **kwargs) if driver is None else replacement(driver, original, *args, **kwargs)

    return wrapper


def _make_ptx_binary(driver: SimtDriver, original: Callable[..., Any], backend: Any, source: str, *args: Any) -> Any:
    if backend.target.arch != driver.chip.arch:
        return original(backend, source, *args)
    return source.encode()


def _salted_hash(driver: SimtDriver, original: Callable[..., Any], backend: Any) -> Any:
    digest = original(backend)
    return digest + _CACHE_SALT if backend.target.arch == driver.chip.arch else digest


def _specialize(driver: SimtDriver, original: Callable[..., Any], backend: Any, argument: Any, *args: Any) -> Any:
    return original(backend, simt_array(argument) if is_numpy_array(argument) else argument, *args)


def _do_bench(driver: SimtDriver, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    arguments = inspect.signature(original).bind(*args, **kwargs).arguments
    return simulated_time.do_bench(driver, arguments.pop("fn"), arguments)


def _get_sass(driver: SimtDriver, original: Callable[..., Any], binary: bytes, *args: Any) -> Any:
    return original(binary, *args) if binary.startswith(_ELF_MAGIC) else "// No SASS: the SIMT device runs PTX.\n"
