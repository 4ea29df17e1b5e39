"""One PTX instruction applied to arrays, one element per thread.

    evaluate("add.s32", "b32", ["b32", "b32"], a, b)  # np.ndarray of uint32

Types are those of the registers: b8, b16, b32, b64, f32, f64 or pred. Arrays hold bits: unsigned
integers, bool for pred.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from support import ptx_lab

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_THREADS = 128
DTYPES: dict[str, type[np.generic]] = {
    "b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "f32": np.uint32, "f64": np.uint64,
    "pred": np.bool_,
}  # fmt: skip
_REGISTERS = {"b8": "b16", "pred": "pred"}

# Integers around every limit that a width or a shift count has.
INTEGERS = {
    bits: sorted({
        value & ((1 << bits) - 1)
        for power in (0, 1, 4, 5, 6, 7, 8, 15, 16, 31, 32, 63, 64)
        for delta in (-1, 0, 1)
        for value in ((1 << power) + delta, -(1 << power) + delta)
    } | {0x12345678_9ABCDEF0 & ((1 << bits) - 1), 0xA5A5A5A5_5A5A5A5A & ((1 << bits) - 1)})
    for bits in (8, 16, 32, 64)
}  # fmt: skip

# Zeros, the smallest and largest of each kind, halves (ties), NaNs quiet and signalling, and plain numbers.
_F32 = [
    0, 1, 0x7FFFFF, 0x800000, 0x800001, 0x33800000, 0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001,
    0x3FC00000, 0x40200000, 0x40490FDB, 0x4B000001, 0x4EFFFFFF, 0x4F000000, 0x5F000000, 0x7F7FFFFF,
    0x7F800000, 0x7F800001, 0x7FC00000, 0x3EAAAAAB, 0x42F6E979, 0x0D000000, 0x1F000003, 0x60000005,
]  # fmt: skip
_F64 = [
    0, 1, 0xFFFFFFFFFFFFF, 0x10000000000000, 0x3CA0000000000000, 0x3FE0000000000000,
    0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x3FF0000000000001, 0x3FF8000000000000,
    0x4004000000000000, 0x400921FB54442D18, 0x41E0000000000000, 0x43E0000000000000,
    0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001, 0x7FF8000000000000,
    0x3FD5555555555555, 0x36A0000000000000, 0x380FFFFFFFFFFFFF, 0x47EFFFFFF0000000,
    0x3FF0000010000000, 0x3FF0000030000000, 0x3E60000000000000,
]  # fmt: skip
_F16 = [
    0, 1, 2, 0x3FF, 0x400, 0x401, 0x1400, 0x3800, 0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x4100, 0x4248,
    0x5640, 0x6BFF, 0x7BFE, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x3555, 0x0BFF,
]  # fmt: skip
_BF16 = [
    0, 1, 0x7F, 0x80, 0x81, 0x3380, 0x3F00, 0x3F7F, 0x3F80, 0x3F81, 0x3FC0, 0x4020, 0x4049, 0x4B00,
    0x5F00, 0x7F7E, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x3EAB, 0x0100, 0x1F01, 0x2003,
]  # fmt: skip
FLOATS = {
    "f32": _F32 + [v | 1 << 31 for v in _F32],
    "f64": _F64 + [v | 1 << 63 for v in _F64],
    "f16": _F16 + [v | 1 << 15 for v in _F16],
    "bf16": _BF16 + [v | 1 << 15 for v in _BF16],
}


def combinations(*edges: Sequence[int], limit: int = 1500, seed: int = 0) -> list[list[int]]:
    """Return columns: all combinations of the edge values, or `limit` of them picked at random."""
    total = int(np.prod([len(e) for e in edges]))
    if total <= limit:
        picks = np.arange(total)
    else:
        picks = np.sort(np.random.default_rng(seed).choice(total, limit, replace=False))
    columns: list[list[int]] = []
    for values in reversed(edges):
        columns.append([values[int(p)] for p in picks % len(values)])
        picks = picks // len(values)
    return columns[::-1]


@functools.cache
def _device() -> Any:
    return ptx_lab.device()


def _register(kind: str) -> str:
    return _REGISTERS.get(kind, kind)


def _load(kind: str, name: str, index: int) -> str:
    size = np.dtype(DTYPES[kind]).itemsize
    address = f"mad.wide.u32 addr, idx, {size}, %rd{index};"
    if kind == "pred":
        return f"{address} ld.global.u8 %h1, [addr]; setp.ne.u16 {name}, %h1, 0;"
    return f"{address} ld.global.{kind} {name}, [addr];"


def _store(kind: str, name: str, index: int) -> str:
    size = np.dtype(DTYPES[kind]).itemsize
    address = f"mad.wide.u32 addr, idx, {size}, %rd{index};"
    if kind == "pred":
        return f"{address} selp.u16 %h1, 1, 0, {name}; st.global.u8 [addr], %h1;"
    return f"{address} st.global.{kind} [addr], {name};"


def execute(
    code: str, results: dict[str, str], sources: dict[str, str], *inputs: Sequence[int] | np.ndarray
) -> list[np.ndarray]:
    """Run `code` for each row of the inputs; return one array per result.

    Args:
        code: Instructions on the named registers.
        results: Register type by name, of what is stored.
        sources: Register type by name, of what the inputs are loaded into.
        inputs: One column per source.
    """
    count = len(inputs[0])
    padded = -(-count // _THREADS) * _THREADS
    arrays = []
    for column, kind in zip(inputs, sources.values(), strict=True):
        array = np.zeros(padded, DTYPES[kind])
        array[:count] = np.array(column, DTYPES[kind])
        arrays.append(array)
    outputs = [np.zeros(padded, DTYPES[kind]) for kind in results.values()]
    lines = [".reg .b32 idx, cta; .reg .b64 addr;"]
    lines += [f".reg .{_register(kind)} {name};" for name, kind in (sources | results).items()]
    lines += ["mov.u32 cta, %ctaid.x;", f"mad.lo.u32 idx, cta, {_THREADS}, %r0;"]
    lines += [_load(kind, name, i) for i, (name, kind) in enumerate(sources.items())]
    lines.append(code)
    lines += [_store(kind, name, len(sources) + i) for i, (name, kind) in enumerate(results.items())]
    body = "{\n" + "\n".join(lines) + "\n}"
    ptx_lab.run(body, *arrays, *outputs, on=_device(), threads=_THREADS, grid=(padded // _THREADS, 1, 1))
    return [array[:count] for array in outputs]


def evaluate(mnemonic: str, result: str, sources: Sequence[str], *inputs: Sequence[int] | np.ndarray) -> np.ndarray:
    """Apply one instruction `d = mnemonic s0, s1, ...`."""
    names = {f"s{i}": kind for i, kind in enumerate(sources)}
    code = f"{mnemonic} {', '.join(['d', *names])};"
    return execute(code, {"d": result}, names, *inputs)[0]


def check(
    mnemonic: str, result: str, sources: Sequence[str], columns: Sequence[Sequence[int]], reference: Callable[..., int]
) -> None:
    """Compare an instruction with a function on the bits of one lane."""
    found = evaluate(mnemonic, result, sources, *columns)
    mask = (1 << (8 * found.dtype.itemsize)) - 1 if found.dtype != np.bool_ else 1
    for lane, row in enumerate(zip(*columns, strict=True)):
        expected = int(reference(*row)) & mask
        actual = int(found[lane])
        if actual != expected:
            operands = ", ".join(f"{value:#x}" for value in row)
            raise AssertionError(f"{mnemonic} {operands}: found {actual:#x}, expected {expected:#x}")


def signed(value: int, bits: int) -> int:
    """Return the two's complement value of the low `bits`."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
