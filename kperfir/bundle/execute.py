"""Run the launches of a bundle on a device, check what they compute, time them, keep what they recorded.

    rows = [row for row in run_launch(folder, bundle, 0, device, out, repeat=20)]

Every variant of a launch starts from the same memory. Timed launches of the variants take turns, so that a device that
changes its clock does so for all of them.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from kperfir.bundle.manifest import PLAIN
from kperfir.bundle.values import compare
from kperfir.errors import KPerfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kperfir.bundle.manifest import Bundle, Launch, Parameter, Scratch, Variant

OK = "ok"
WRONG = "wrong results"
FAILED = "failed"


class BundleDevice(Protocol):
    """What a device must be able to do to run a bundle. Addresses are the device's."""

    @property
    def arch(self) -> int: ...
    def describe(self) -> dict[str, Any]: ...
    def allocate(self, nbytes: int, alignment: int) -> int: ...
    def free_all(self) -> None: ...
    def write(self, address: int, data: bytes) -> None: ...
    def clear(self, address: int, nbytes: int) -> None: ...
    def read(self, address: int, nbytes: int) -> bytes: ...
    def load(self, variant: Variant, folder: Path) -> Any: ...
    def tensor_map(self, address: int, description: dict[str, Any]) -> bytes: ...
    def launch(self, function: Any, grid: tuple[int, int, int], parameters: Sequence[bytes]) -> dict[str, Any]: ...


@dataclass(slots=True)
class Row:
    """What became of one variant of one launch.

    Attributes:
        launch: Its number in the bundle.
        kernel: Name.
        variant: Id.
        kind: ``plain``, or how it is instrumented.
        arch: Compute capability that it was compiled for, times 10.
        status: ``ok``, ``wrong results`` or ``failed``.
        error: Why it failed.
        beyond: Elements that are further from the expected result than their type explains.
        worst: The largest relative difference from it.
        bits_differ: Elements in which the result differs from that of the plain variant in a bit; None if that did not
            run.
        registers: Per thread.
        local_bytes: Stack and spills per thread.
        times: Microseconds of each timed launch.
        facts: What the device says of the first launch.
        profile: File with the profile buffer of the first launch; empty if there is none.
    """

    launch: int
    kernel: str
    variant: str
    kind: str
    arch: int
    status: str = OK
    error: str = ""
    beyond: int = 0
    worst: float = 0.0
    bits_differ: int | None = None
    registers: int = 0
    local_bytes: int = 0
    times: list[float] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    profile: str = ""

    @property
    def median_us(self) -> float | None:
        return statistics.median(self.times) if self.times else None


def variants_for(bundle: Bundle, launch: Launch, arch: int) -> list[Variant]:
    """The variants of a launch that a device of `arch` can run, the plain one first.

    A cubin runs on its own major version, at its own minor version or later; those of sm_90 and up use features of that
    version alone.
    """
    found = [variant for variant in bundle.kernels[launch.kernel].variants if variant.arch // 10 == arch // 10]
    best = max((variant.arch for variant in found if variant.arch <= arch), default=0)
    return sorted((variant for variant in found if variant.arch == best), key=lambda variant: variant.kind != PLAIN)


def run_launch(
    folder: Path, bundle: Bundle, number: int, device: BundleDevice, out: Path, *, repeat: int
) -> Iterator[Row]:
    """Run all variants of one launch that fit `device`; yield each row as soon as its first launch is checked.

    Times are added to the rows afterwards: whoever keeps a row sees them when the iterator has ended.

    Args:
        folder: Of the bundle.
        bundle: Its manifest.
        number: Of the launch.
        device: Where to run it.
        out: Folder for profile buffers.
        repeat: Timed launches per variant.
    """
    launch = bundle.launches[number]
    memory = _Memory(folder, launch, device)
    plain: list[bytes] | None = None
    ready: list[tuple[Row, _Prepared]] = []
    try:
        for variant in variants_for(bundle, launch, device.arch):
            row = Row(number, bundle.kernels[launch.kernel].name, variant.id, variant.kind, variant.arch)
            try:
                prepared = _Prepared.of(folder, launch, variant, device, memory)
                results = _first_run(row, launch, prepared, plain)
                if variant.kind == PLAIN:
                    plain = results
                if variant.layout:
                    row.profile = f"launch{number}-{variant.id}.profile"
                    (out / row.profile).write_bytes(prepared.profile())
                ready.append((row, prepared))
            except KPerfError as error:
                row.status, row.error = FAILED, str(error)
            yield row
        for _ in range(repeat):
            for row, prepared in ready:
                row.times.append(prepared.run()["us"])
    finally:
        device.free_all()


def _first_run(row: Row, launch: Launch, prepared: _Prepared, plain: list[bytes] | None) -> list[bytes]:
    """Launch, and say in `row` what came of it; return all arrays as they are then."""
    row.registers, row.local_bytes = prepared.resources
    row.facts = prepared.run()
    results = prepared.memory.results()
    _judge(row, launch, prepared.memory.expected, results, plain)
    return results


def _judge(row: Row, launch: Launch, expected: list[bytes], found: list[bytes], plain: list[bytes] | None) -> None:
    for index, array in enumerate(launch.arrays):
        difference = compare(array.dtype, expected[index], found[index])
        row.beyond += difference.beyond
        row.worst = max(row.worst, difference.worst)
        if row.kind == PLAIN:
            row.bits_differ = 0
        elif plain is not None:
            row.bits_differ = (row.bits_differ or 0) + compare(array.dtype, plain[index], found[index]).unequal
    if row.beyond:
        row.status = WRONG


class _Memory:
    """The arrays of a launch on the device."""

    def __init__(self, folder: Path, launch: Launch, device: BundleDevice) -> None:
        self._device = device
        self.launch = launch
        self._before = [self._contents(folder, array.before, array.nbytes) for array in launch.arrays]
        self.expected = [
            self._contents(folder, array.after, array.nbytes) if array.after else before
            for array, before in zip(launch.arrays, self._before, strict=True)
        ]
        self.addresses = [device.allocate(array.nbytes, 256) for array in launch.arrays]

    @staticmethod
    def _contents(folder: Path, file: str, nbytes: int) -> bytes:
        return (folder / file).read_bytes() if file else bytes(nbytes)

    def restore(self) -> None:
        """Put every array back to what it was before the launch."""
        for address, before in zip(self.addresses, self._before, strict=True):
            self._device.write(address, before)

    def results(self) -> list[bytes]:
        """All arrays as they are."""
        return [
            self._device.read(address, array.nbytes)
            for address, array in zip(self.addresses, self.launch.arrays, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A variant that is loaded, with its parameters and scratch memory."""

    device: BundleDevice
    memory: _Memory
    function: Any
    grid: tuple[int, int, int]
    parameters: list[bytes]
    scratch: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, folder: Path, launch: Launch, variant: Variant, device: BundleDevice, memory: _Memory) -> _Prepared:
        x, y, z = launch.grid
        ctas = x * y * z * variant.cluster
        scratch = {
            "global_scratch": _allocate(device, variant.global_scratch, ctas),
            "profile_scratch": _allocate(device, variant.profile_scratch, ctas),
        }
        parameters = [_value(one, device, memory, scratch) for one in launch.parameters[variant.id]]
        return cls(device, memory, device.load(variant, folder), launch.grid, parameters, scratch)

    @property
    def resources(self) -> tuple[int, int]:
        """Registers and bytes of local memory per thread."""
        return int(getattr(self.function, "registers", 0)), int(getattr(self.function, "local_bytes", 0))

    def run(self) -> dict[str, Any]:
        """Launch once, from the same memory as ever."""
        self.memory.restore()
        for address, nbytes in self.scratch.values():
            if nbytes:
                self.device.clear(address, nbytes)
        return self.device.launch(self.function, self.grid, self.parameters)

    def profile(self) -> bytes:
        """The profile buffer."""
        address, nbytes = self.scratch["profile_scratch"]
        return self.device.read(address, nbytes)


def _allocate(device: BundleDevice, scratch: Scratch, ctas: int) -> tuple[int, int]:
    nbytes = scratch.nbytes * ctas
    return (device.allocate(nbytes, scratch.alignment), nbytes) if nbytes else (0, 0)


def _value(parameter: Parameter, device: BundleDevice, memory: _Memory, scratch: dict[str, tuple[int, int]]) -> bytes:
    if parameter.kind == "bytes":
        return bytes.fromhex(parameter.value)
    if parameter.kind in scratch:
        return (scratch[parameter.kind][0] + parameter.offset).to_bytes(8, "little")
    address = memory.addresses[parameter.array] + parameter.offset if parameter.array >= 0 else 0
    if parameter.kind == "tensormap":
        return device.tensor_map(address, parameter.tensor_map)
    return address.to_bytes(8, "little")
