"""Run workloads on the SIMT device, plain or profiled, and keep all that a test may want to look at.

plain = run_plain(workload)
profiled = run_profiled(workload, tmp_path / "out.kpf", log=True, strategy="ring")
assert differing_arguments(plain.arguments, profiled.arguments) == []
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import kperfir
from kernels.workload import bits
from kperfir.code.parts import Part
from kperfir.config import resolve
from kperfir.runtime.ghost import Ghost
from kperfir.runtime.select import Selection
from kperfir.runtime.simt import active_simt_driver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernels.workload import Arguments, Workload
    from kperfir.runtime.simt import FinishedLaunch, SimtDriver
    from kperfir.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Run:
    """What a launch left behind. `compiled` is Triton's kernel, `launch` the device's account of it."""

    arguments: Arguments
    compiled: Any
    launch: FinishedLaunch

    @property
    def cycles(self) -> int:
        """Simulated cycles of the launch."""
        return int(self.launch.result.cycles)


@dataclass(frozen=True, slots=True)
class ProfiledRun(Run):
    """A launch that was captured."""

    timeline: Timeline
    path: Path


@contextlib.contextmanager
def simt(*, scheduler_seed: int = 0, threads: int = 1, chip: str = "a100", waves: int = 0) -> Iterator[SimtDriver]:
    """The SIMT device as Triton's driver, nothing instrumented."""
    device = {"simt_seed": scheduler_seed, "simt_threads": threads, "simt_chip": chip, "simt_waves": waves}
    options = resolve({}, device="simt", **device)
    selection = Selection(options)
    selection.install()
    try:
        driver = active_simt_driver()
        assert driver is not None
        yield driver
    finally:
        selection.uninstall()


def run_plain(
    workload: Workload, *, seed: int = 0, log: bool = False, ghost: Ghost | None = None, **device: Any
) -> Run:
    """Launch `workload` uninstrumented; `seed` makes its arguments, `device` are options of `simt`.

    With `ghost`, what that says takes no time.
    """
    arguments = workload.arguments(seed)
    with simt(**device) as driver, driver.ghost(ghost) if ghost else contextlib.nullcontext():
        compiled, launch = _launch(workload, arguments, driver, log=log)
    return Run(arguments, compiled, launch)


def run_profiled(
    workload: Workload,
    path: Path,
    *,
    seed: int = 0,
    log: bool = False,
    ghost: Run | None = None,
    parts: frozenset[Part] = frozenset(Part),
    **options: Any,
) -> ProfiledRun:
    """Launch `workload` instrumented, on one host thread; `options` go to `kperfir.profile`.

    With `ghost`, a launch of it without records, they take no time, or these `parts` of them do not.
    """
    arguments = workload.arguments(seed)
    with kperfir.profile(path, **{"device": "simt", "simt_seed": 0, "simt_threads": 1} | options):
        driver = active_simt_driver()
        assert driver is not None
        with driver.ghost(Ghost.of(ghost.launch, parts)) if ghost else contextlib.nullcontext():
            compiled, launch = _launch(workload, arguments, driver, log=log)
    return ProfiledRun(arguments, compiled, launch, kperfir.load(path), path)


def _launch(workload: Workload, arguments: Arguments, driver: SimtDriver, *, log: bool) -> tuple[Any, FinishedLaunch]:
    with driver.observed(log=log) as launches:
        compiled = workload.launch(arguments)
    assert len(launches) == 1, f"{workload.name}: {len(launches)} launches reached the device"
    return compiled, launches[0]


def layout_of(run: Run) -> dict[str, Any]:
    """The layout that the compiler attached to an instrumented kernel."""
    layout: dict[str, Any] = json.loads(run.compiled.metadata.kperf_layout)
    return layout


def differing_arguments(first: Arguments, second: Arguments) -> list[str]:
    """Names of the tensors that differ in a bit; those that hold addresses of other tensors are left out."""
    addresses = {tensor.data_ptr() for tensor in _tensors(first).values()}
    return [
        name
        for name, tensor in _tensors(first).items()
        if not addresses.intersection(tensor.flatten()[:1].tolist()) and not bits(tensor).equal(bits(second[name]))
    ]


def _tensors(arguments: Arguments) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if hasattr(value, "data_ptr")}
