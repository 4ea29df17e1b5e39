"""Records go to global memory where they would keep CTAs from sharing an SM, and only there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kperfir.compile import placement
from kperfir.config import resolve
from kperfir.runtime.select import Selection

# Records of 4 warps with 512 words each, a header of 4, and 4 for zeros; and the anchor.
OURS = 4 * (4 + 512 + 4) * 4 + 16


def layout(**fields: Any) -> str:
    return json.dumps(
        {"target": "cuda:80", "buffer": "shared", "total_warps": 4, "words_per_warp": 512, "warp_size": 32} | fields
    )


# Bytes of the kernel's own, registers, and whether fewer CTAs share an SM with 8336 bytes more.
@pytest.mark.parametrize(
    ("own", "registers", "loses"),
    [
        (0, 32, False),  # 16 CTAs by threads; 164 KiB hold 17 with records.
        (2048, 32, True),  # 16, with records 14.
        (2048, 64, False),  # 8 by registers.
        (32768, 64, True),  # 4, with records 3.
        (32768, 168, False),  # 3 by registers.
        (81920, 255, True),  # 2, with records 1.
        (82900, 255, True),  # 2 just so.
        (90000, 255, False),  # 1.
    ],
)
def test_ctas_are_lost_where_shared_memory_is_what_bounds_them(own: int, registers: int, *, loses: bool) -> None:
    metadata = {"shared": own + OURS, "name": "k"}
    assert placement.loses_ctas({}, metadata, layout(), lambda kernel, binary: registers) == loses


@pytest.mark.parametrize("fields", [{"target": "hip:gfx942"}, {"target": "cuda:75"}, {"buffer": "global"}])
def test_nothing_is_asked_where_nothing_can_be_gained(fields: dict[str, str]) -> None:
    def never(kernel: str, binary: bytes) -> int:
        raise AssertionError

    assert not placement.loses_ctas({}, {"shared": 32768 + OURS, "name": "k"}, layout(**fields), never)


PTX = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"
UNKNOWN_PTX = PTX.replace(b"ret;", b"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64; ret;")


def test_registers_are_what_the_device_says_that_is_to_run_the_kernel() -> None:
    selection = Selection(resolve({}, device="simt"))
    assert selection.registers("k", PTX) is None, "nothing is to run it"
    selection.install()
    try:
        assert 0 < (selection.registers("k", PTX) or 0) < 64
        # A target that the device does not know: records stay.
        assert selection.registers("k", UNKNOWN_PTX) is None
        metadata = {"shared": 32768 + OURS, "name": "k"}
        assert not placement.loses_ctas({"cubin": UNKNOWN_PTX}, metadata, layout(), selection.registers)
    finally:
        selection.uninstall()
