"""Small PTX kernels around a body under test, run on the SIMT device.

    out = np.zeros(32, np.uint32)
    run("st.global.u32 [%rd0], 7;", out)

The body finds the addresses of the arrays in `%rd0`, `%rd1`, ... and the thread index in `%r0`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Any

from kperfir._native import simt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

_HEADER = """
.version 8.0
.target {target}
.address_size 64
.extern .shared .align 16 .b8 smem[];
{globals}
.visible .entry kernel({params})
{{
  .reg .pred %p<16>;
  .reg .b16 %h<32>;
  .reg .b32 %r<96>;
  .reg .f32 %f<64>;
  .reg .b64 %rd<32>;
  .reg .f64 %fd<32>;
  {loads}
  mov.u32 %r0, %tid.x;
{body}
  ret;
}}
"""


def chip_text(name: str = "a100") -> str:
    """Return the JSON text of a packaged chip file."""
    return (resources.files("kperfir.runtime") / "chips" / f"{name}.json").read_text(encoding="utf-8")


def ptx(body: str, arrays: int, *, module_scope: str = "", target: str = "sm_80") -> str:
    """Return the PTX text of a kernel with `body` and so many array parameters."""
    return _HEADER.format(
        target=target,
        globals=module_scope,
        params=", ".join(f".param .u64 a{i}" for i in range(arrays)),
        loads="\n  ".join(f"ld.param.u64 %rd{i}, [a{i}];" for i in range(arrays)),
        body=body,
    )


def mbarrier_prologue(offset: int) -> str:
    """PTX that makes an mbarrier for one arrival: %r1 shared memory, %r2 the mbarrier, %p1 holds in thread 0."""
    return f"""
      mov.u32 %r1, smem; add.u32 %r2, %r1, {offset};
      setp.eq.u32 %p1, %r0, 0;
      @%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
      bar.sync 0;
    """


# Waits for the first phase of that mbarrier; once in a kernel.
MBARRIER_WAIT = """
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
  @!%p2 bra.uni wait;
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a body is launched."""

    threads: int = 32
    grid: tuple[int, int, int] = (1, 1, 1)
    shared: int = 0
    registers: int = 32
    log: bool = False
    free: bytes | None = None
    cluster: tuple[int, int, int] = (1, 1, 1)
    service: Callable[[], object] | None = None
    service_cycles: int = 0


CHIP_OF = {"sm_80": "a100", "sm_90a": "h100"}


def device(chip: str = "a100", **options: Any) -> Any:
    """Return a device with the figures of a chip."""
    return simt.Device(chip_text(chip), **options)


def run(
    body: str, *arrays: np.ndarray[Any, Any], on: Any = None, module_scope: str = "", read_only: Sequence[int] = (),
    target: str = "sm_80", **shape: Any,
) -> Any:  # fmt: skip
    """Launch `body` and return the device's result. `shape` are the fields of `Shape`.

    The device is one of the chip that `target` stands for, unless `on` is another.
    """
    module = simt.Module(ptx(body, len(arrays), module_scope=module_scope, target=target))
    return launch(module, *arrays, on=on or device(CHIP_OF[target]), read_only=read_only, **shape)


def launch(
    module: Any, *arrays: np.ndarray[Any, Any], on: Any = None, read_only: Sequence[int] = (), **shape: Any
) -> Any:
    """Launch a module whose parameters are addresses of `arrays`."""
    form = replace(Shape(), **shape)
    on = on or device()
    mapped = []
    try:
        for index, array in enumerate(arrays):
            if any(array is other for other in arrays[:index]):
                continue
            on.map(array.ctypes.data, array.nbytes, f"a{index}", index not in read_only)
            mapped.append(array.ctypes.data)
        return on.launch(
            module, grid=form.grid, block_threads=form.threads, shared_bytes=form.shared,
            params=[array.ctypes.data.to_bytes(8, "little") for array in arrays], registers=form.registers,
            log=form.log, free=form.free, cluster=form.cluster, service=form.service,
            service_cycles=form.service_cycles,
        )  # fmt: skip
    finally:
        for address in mapped:
            on.unmap(address)
