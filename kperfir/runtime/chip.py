"""The chip that the SIMT device models, as far as a Triton driver must know it.

The files in `chips/` belong to the timing model (lib/Simt/Timing); this module reads from them what Triton asks of a
device.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from kperfir.errors import DeviceError

# Device indices of SIMT devices start here, so that Triton never mistakes kernels compiled for one for a GPU's.
_FIRST_INDEX = 0x53000000
_INDEX_MASK = 0x00FFFFFF
_DRAM_CHANNEL_BITS = 128
# The chip that an architecture stands for.
_CHIP_OF_ARCH = {"sm_80": "a100", "sm_90": "h100"}


@dataclass(frozen=True, slots=True)
class Chip:
    """A chip file: its JSON text, and what it says."""

    name: str
    text: str
    fields: dict[str, Any]

    @property
    def index(self) -> int:
        """Device index. Triton caches kernels by it, so it differs between chips."""
        return _FIRST_INDEX | zlib.crc32(self.text.encode()) & _INDEX_MASK

    @property
    def arch(self) -> int:
        """Compute capability times ten: 80 for sm_80."""
        return int(self._figure("compute_capability"))

    @property
    def clock_hz(self) -> float:
        """Frequency of the SMs."""
        return self._figure("clock_mhz") * 1e6

    def triton_properties(self) -> dict[str, int]:
        """Return what Triton's drivers say about a device."""
        # Triton computes the bandwidth as clock * 2 * width: any pair that gives the chip's own is right.
        bus_bits = int(self._figure("dram_channels")) * _DRAM_CHANNEL_BITS
        return {
            "max_shared_mem": int(self._figure("max_shared_bytes_per_cta")),
            "multiprocessor_count": int(self._figure("sm_count")),
            "max_num_regs": int(self._figure("registers_per_sm")),
            "warpSize": 32,
            "sm_clock_rate": int(self._figure("clock_mhz") * 1e3),
            "mem_clock_rate": round(self._figure("dram_bytes_per_second") * 8 / (2 * bus_bits) / 1e3),
            "mem_bus_width": bus_bits,
        }

    def _figure(self, name: str) -> float:
        try:
            return float(self.fields["figures"][name]["value"])
        except (KeyError, TypeError, ValueError):
            raise DeviceError(
                "bad-chip", what="the chip file is not valid", where=f"chip {self.name}, figures.{name}",
                found="no number", expected='an object with a number "value"', fix="compare it with a100.json",
            ) from None  # fmt: skip


def chip_names() -> list[str]:
    """Return the chips that kperfir knows by name."""
    folder = resources.files("kperfir.runtime") / "chips"
    return sorted(entry.name.removesuffix(".json") for entry in folder.iterdir() if entry.name.endswith(".json"))


def load_chip(name: str) -> Chip:
    """Return the chip called `name`, that of the architecture `name`, or the one that the JSON file `name` describes.

    Raises:
        DeviceError: ``unknown-chip``.
    """
    name = _CHIP_OF_ARCH.get(name, name)
    packaged = resources.files("kperfir.runtime") / "chips" / f"{name}.json"
    source = Path(name) if name.endswith(".json") else packaged
    try:
        text = source.read_text(encoding="utf-8")
        return Chip(Path(name).stem, text, json.loads(text))
    except (OSError, ValueError) as error:
        raise DeviceError(
            "unknown-chip",
            what="the SIMT device cannot model this chip",
            where="TRITON_KPERF_SIMT_CHIP",
            found=repr(name) if source is packaged else f"{name!r} ({error})",
            expected=f"{', '.join([*chip_names(), *_CHIP_OF_ARCH])}, or the name of a JSON file",
            fix="name one of those",
        ) from None
