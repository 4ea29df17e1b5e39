"""Bases of encodings of shared memory, against Triton's own conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kperfir.compile.shared_places import NoPlaces, Places, offset_bases

if TYPE_CHECKING:
    from collections.abc import Sequence

SWIZZLED = [(1, 1, 1), (8, 1, 8), (8, 2, 4), (4, 1, 16), (1, 1, 32), (2, 4, 2)]
SHAPES = [(64, 64), (16, 128), (128, 32)]


def bases_of(layout: object, shape: Sequence[int]) -> list[tuple[int, ...]]:
    from triton._C.libtriton import gluon_ir, ir

    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    linear = builder.to_linear_layout(layout._to_ir(builder), list(shape))  # type: ignore[attr-defined]
    return [tuple(basis) for basis in linear.offset_bases]


@pytest.mark.parametrize("swizzle", SWIZZLED)
@pytest.mark.parametrize("order", [(1, 0), (0, 1)])
def test_swizzled_layouts_are_tritons(swizzle: tuple[int, int, int], order: tuple[int, int]) -> None:
    from triton.experimental.gluon import language as gl

    vector, per_phase, phases = swizzle
    text = (
        f"#ttg.swizzled_shared<{{vec = {vector}, perPhase = {per_phase}, maxPhase = {phases}, "
        f"order = [{order[0]}, {order[1]}]}}>"
    )
    for shape in SHAPES:
        layout = gl.SwizzledSharedLayout(vector, per_phase, phases, list(order))
        assert offset_bases(text, shape) == bases_of(layout, shape)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("transposed", [False, True])
def test_layouts_of_matrix_operands_are_tritons(width: int, bits: int, transposed: bool) -> None:
    from triton.experimental.gluon import language as gl

    text = (
        f"#ttg.nvmma_shared<{{swizzlingByteWidth = {width}, transposed = {str(transposed).lower()}, "
        f"elementBitWidth = {bits}}}>"
    )
    layout = gl.NVMMASharedLayout(width, bits, 2, transposed)
    for shape in [(128, 128), (128, 256), (256, 128)]:
        assert offset_bases(text, shape) == bases_of(layout, shape)


def test_places_are_where_the_bases_say() -> None:
    text = "#ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>"
    places = Places.of(text, (64, 64))
    bases = offset_bases(text, (64, 64))
    for offset in (0, 1, 8, 64, 100, 4095):
        row = column = 0
        for bit, basis in enumerate(bases):
            if offset >> bit & 1:
                row, column = row ^ basis[0], column ^ basis[1]
        assert places.at((row, column)) == offset


@pytest.mark.parametrize(
    ("encoding", "shape"),
    [
        ("#ttg.padded_shared<[64:+8] {order = [1, 0]}>", (64, 64)),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>", (64, 32)),
        ("#ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>", (64, 64)),
        ("#ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>", (64, 64)),
    ],
)
def test_what_is_not_known_is_said(encoding: str, shape: tuple[int, int]) -> None:
    with pytest.raises(NoPlaces):
        offset_bases(encoding, shape)
