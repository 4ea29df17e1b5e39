"""A stand-in for `kperfir._native.simt` (docs/contracts.md, section 6): parses nothing, runs nothing, notes everything.

`Device.on_launch` lets a test act as the kernel.
"""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any, ClassVar

CHIP = json.dumps(
    {
        "name": "tiny",
        "figures": {
            name: {"value": value, "source": "test"}
            for name, value in {
                "compute_capability": 80, "clock_mhz": 1000, "sm_count": 2, "registers_per_sm": 65536,
                "max_shared_bytes_per_cta": 166912, "dram_channels": 40, "dram_bytes_per_second": 1.555e12,
            }.items()
        },
    }
)  # fmt: skip


class Error(Exception):
    """A fault of the device."""

    def __init__(self, kind: str, message: str, **place: Any) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message
        for name in ("kernel", "file"):
            setattr(self, name, place.get(name, ""))
        for name in ("ptx_line", "line", "address"):
            setattr(self, name, place.get(name, 0))
        for name in ("cta", "warp", "lane"):
            setattr(self, name, place.get(name, -1))
        self.is_global = "address" in place


class Module:
    """Keeps the PTX."""

    def __init__(self, ptx: str, source: str = "") -> None:
        entry = re.search(r"\.entry (\w+)", ptx)
        if entry is None:
            raise Error("parse", "no .entry")
        self.entry, self.ptx = entry.group(1), ptx
        reqntid = re.search(r"\.reqntid (\d+)", ptx)
        self.reqntid = (int(reqntid.group(1)), 1, 1) if reqntid else None
        self.registers, self.shared_static = 32, 0
        self.params = re.findall(r"\.param \.(\w+)", ptx)


class Device:
    """Notes mapped ranges and launches; each launch takes 1000 cycles."""

    created: ClassVar[list[Device]] = []
    untimed: ClassVar[list[tuple[int, int]]] = []  # What every launch says of its CTAs.

    def __init__(self, chip: str, threads: int = 1, seed: int = 0, timing: bool = True, waves: int = 0) -> None:
        self.chip, self.threads, self.seed = json.loads(chip), threads, seed
        self.ranges: dict[int, tuple[int, str, bool]] = {}
        self.resolver: Any = None
        self.launches: list[SimpleNamespace] = []
        self.on_launch: Any = None
        self.cycles = 0
        Device.created.append(self)

    def map(self, addr: int, nbytes: int, name: str, writable: bool) -> None:
        assert addr not in self.ranges
        self.ranges[addr] = (nbytes, name, writable)

    def unmap(self, addr: int) -> None:
        del self.ranges[addr]

    def set_resolver(self, resolver: Any) -> None:
        self.resolver = resolver

    def resolve(self, addr: int) -> tuple[int, int, str] | None:
        """Look for an address as the device does: in its ranges, then with the resolver's help."""
        for begin, (nbytes, name, _) in self.ranges.items():
            if begin <= addr < begin + nbytes:
                return begin, nbytes, name
        found: tuple[int, int, str] | None = self.resolver(addr)
        if found is not None:
            self.map(*found, writable=True)
        return found

    def launch(self, module: Module, *, params: list[bytes], grid: Any, **more: Any) -> Any:
        launch = SimpleNamespace(module=module, params=params, grid=grid, ranges=dict(self.ranges), **more)
        self.launches.append(launch)
        printed = self.on_launch(launch) if self.on_launch else None
        start, self.cycles = self.cycles, self.cycles + 1000
        return SimpleNamespace(
            cycles=1000, start_cycles=start, ns=1000.0, printf=printed or [], ctas=grid[0] * grid[1] * grid[2],
            occupancy=2, stats={"occupancy_limiter": "warps"}, log=None, warp_instructions=0, thread_instructions=0,
            untimed_ctas=self.untimed, untimed_waves=len(self.untimed), cycles_per_wave=100.0,
        )  # fmt: skip
