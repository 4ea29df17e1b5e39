"""Records go to global memory where they would keep CTAs from sharing an SM, and only there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from kperfir.compile import placement

if TYPE_CHECKING:
    from collections.abc import Mapping

# Records of 4 warps with 512 words each, and a header of 4.
OURS = 4 * (4 + 512) * 4


def layout(**fields: Any) -> str:
    return json.dumps(
        {"target": "cuda:80", "buffer": "shared", "total_warps": 4, "words_per_warp": 512, "warp_size": 32} | fields
    )


# Bytes of the kernel's own, registers, and whether fewer CTAs share an SM with 8256 bytes more.
@pytest.mark.parametrize(
    ("own", "registers", "loses"),
    [
        (0, 32, False),  # 16 CTAs by threads; 164 KiB hold 17 with records.
        (2048, 32, True),  # 16, with records 14.
        (2048, 64, False),  # 8 by registers.
        (32768, 64, True),  # 4, with records 3.
        (32768, 168, False),  # 3 by registers.
        (81920, 255, True),  # 2, with records 1.
        (90000, 255, False),  # 1.
    ],
)
def test_ctas_are_lost_where_shared_memory_is_what_bounds_them(
    own: int, registers: int, monkeypatch: pytest.MonkeyPatch, *, loses: bool
) -> None:
    monkeypatch.setattr(placement, "_registers", lambda products: registers)
    assert placement.loses_ctas({}, {"shared": own + OURS, "name": "k"}, layout()) == loses


@pytest.mark.parametrize("fields", [{"target": "hip:gfx942"}, {"target": "cuda:75"}, {"buffer": "global"}])
def test_nothing_is_asked_where_nothing_can_be_gained(fields: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(products: Mapping[str, Any]) -> int:
        raise AssertionError

    monkeypatch.setattr(placement, "_registers", never)
    assert not placement.loses_ctas({}, {"shared": 32768 + OURS, "name": "k"}, layout(**fields))


def test_registers_of_ptx_are_an_estimate() -> None:
    ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
    assert 0 < placement._registers({"ptx": ptx, "cubin": b""}) < 64


def test_where_registers_are_not_known_records_stay() -> None:
    """The SIMT device does not know all that other targets' PTX has."""
    ptx = """.version 8.6
.target sm_100a
.address_size 64
.visible .entry k() { tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64; ret; }
"""
    assert placement._registers({"ptx": ptx, "cubin": b""}) is None
    metadata = {"shared": 32768 + OURS, "name": "k"}
    assert not placement.loses_ctas({"ptx": ptx, "cubin": b""}, metadata, layout(target="cuda:100"))
