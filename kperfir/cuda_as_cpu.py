"""Make torch without CUDA answer as if there were a GPU, and keep everything on the CPU.

    with cuda_as_cpu(load_chip("a100")):
        runpy.run_path("script.py")         # x = torch.rand(8, device="cuda") is a CPU tensor

For scripts written for a GPU that are to run on the SIMT device (`kperfir run --cuda-as-cpu`). Owns every change to
torch. What it cannot hide: a tensor's `device` says ``cpu``, and CUDA graphs and CUDA libraries do not exist.
"""

from __future__ import annotations

import contextlib
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kperfir.runtime.patches import Patches
from kperfir.runtime.simt import active_simt_driver
from kperfir.runtime.simulated_time import DeviceInterface

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kperfir.runtime.chip import Chip

_MEMORY_BYTES = 80 << 30


@contextlib.contextmanager
def cuda_as_cpu(chip: Chip) -> Iterator[None]:
    """Hide that there is no GPU, for the time of the block; `chip` is the GPU to pretend."""
    import torch

    patches = Patches()
    try:
        _patch_cuda_module(patches, torch, chip)
        _patch_tensors(patches, torch)
        _patch_rest(patches, torch)
        with _device_mode():
            yield
    finally:
        patches.undo()


def is_cuda(device: object) -> bool:
    """Tell whether `device`, given as torch accepts it, is a CUDA device."""
    if isinstance(device, str):
        return device.split(":")[0] == "cuda"
    return getattr(device, "type", None) == "cuda"


def to_cpu(device: Any) -> Any:
    """Return the CPU for a CUDA device, and anything else unchanged."""
    return "cpu" if is_cuda(device) else device


class _Clock:
    """The simulated time of the SIMT device in use; wall time as long as there is none."""

    @property
    def clock_ns(self) -> float:
        driver = active_simt_driver()
        return driver.clock_ns if driver is not None else float(time.perf_counter_ns())

    @clock_ns.setter
    def clock_ns(self, value: float) -> None:
        raise AttributeError("the clock is the device's")


def _device_mode() -> Any:
    """Return a torch function mode that turns every CUDA device among the arguments into the CPU."""
    from torch.overrides import TorchFunctionMode

    class CudaAsCpu(TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            named = {name: to_cpu(value) for name, value in (kwargs or {}).items()}
            if "device" in named and _is_index(named["device"]):
                named["device"] = "cpu"
            if named.get("pin_memory"):
                named["pin_memory"] = False
            if getattr(function, "__name__", "") == "_parse_to" and args and _is_index(args[0]):
                args = ("cpu", *args[1:])  # module.to(0) is the first GPU.
            return function(*(to_cpu(value) for value in args), **named)

    return CudaAsCpu()


def _is_index(device: object) -> bool:
    return isinstance(device, int) and not isinstance(device, bool)


def _patch_cuda_module(patches: Patches, torch: Any, chip: Chip) -> None:
    interface = DeviceInterface(_Clock(), 0)
    properties = _properties(chip)
    answers: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "get_device_capability": lambda device=None: divmod(chip.arch, 10),
        "get_device_properties": lambda device=None: properties,
        "get_device_name": lambda device=None: properties.name,
        "is_bf16_supported": lambda *args, **kwargs: True,
        "is_current_stream_capturing": lambda: False,
        "synchronize": interface.synchronize,
        "stream": interface.stream,
        "current_stream": interface.current_stream,
        "default_stream": interface.default_stream,
        "device": interface.device,
        "device_of": interface.device,
        "Event": interface.Event,
        "Stream": interface.Stream,
        "ExternalStream": interface.Stream,
        "empty_cache": lambda: None,
        "mem_get_info": lambda device=None: (_MEMORY_BYTES, _MEMORY_BYTES),
        "memory_allocated": lambda device=None: 0,
        "max_memory_allocated": lambda device=None: 0,
        "memory_reserved": lambda device=None: 0,
        "max_memory_reserved": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None,
        # Not torch.manual_seed, which calls these.
        "manual_seed": lambda seed: torch.default_generator.manual_seed(int(seed)),
        "manual_seed_all": lambda seed: torch.default_generator.manual_seed(int(seed)),
    }
    for name, answer in answers.items():
        patches.replace(torch.cuda, name, answer)
    patches.replace(torch.version, "cuda", torch.version.cuda or "12.8")


def _properties(chip: Chip) -> SimpleNamespace:
    known = chip.triton_properties()
    return SimpleNamespace(
        name=f"SIMT device ({chip.name})",
        major=chip.arch // 10,
        minor=chip.arch % 10,
        multi_processor_count=known["multiprocessor_count"],
        total_memory=_MEMORY_BYTES,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=known["max_shared_mem"],
        shared_memory_per_multiprocessor=known["max_shared_mem"] + 1024,
        regs_per_multiprocessor=known["max_num_regs"],
        max_threads_per_multi_processor=2048,
        warp_size=known["warpSize"],
        L2_cache_size=40 << 20,
        gcnArchName="",
    )


def _patch_tensors(patches: Patches, torch: Any) -> None:
    tensor_to = torch.Tensor.to

    def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if args and _is_index(args[0]):
            args = ("cpu", *args[1:])  # tensor.to(0) is the first GPU.
        return tensor_to(tensor, *args, **kwargs)

    patches.replace(torch.Tensor, "to", to)
    patches.replace(torch.Tensor, "cuda", lambda tensor, *args, **kwargs: tensor)
    patches.replace(torch.Tensor, "is_cuda", property(lambda tensor: True))
    patches.replace(torch.Tensor, "get_device", lambda tensor: 0)
    patches.replace(torch.Tensor, "pin_memory", lambda tensor, *args, **kwargs: tensor)
    patches.replace(torch.Tensor, "record_stream", lambda tensor, stream: None)


def _patch_rest(patches: Patches, torch: Any) -> None:
    load, enter_autocast = torch.load, torch.autocast.__init__

    class CpuGenerator(torch.Generator):  # type: ignore[misc] # torch is untyped here.
        def __new__(cls, device: Any = "cpu") -> Any:
            return super().__new__(cls, "cpu" if _is_index(device) else to_cpu(device))

    def autocast(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        enter_autocast(self, to_cpu(device_type), *args, **kwargs)

    def load_on_cpu(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return load(file, to_cpu(map_location), *args, **kwargs)

    patches.replace(torch, "Generator", CpuGenerator)
    patches.replace(torch.autocast, "__init__", autocast)
    patches.replace(torch, "load", load_on_cpu)
