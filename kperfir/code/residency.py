"""How many CTAs of a kernel an SM holds at a time.

Limits are those of NVIDIA's programming guide, technical specifications per compute capability.
"""

from __future__ import annotations

_WARP_SIZE = 32
SUB_CORES = 4  # Of an SM, each with a scheduler of its own; a warp belongs to that of its number modulo this.
_REGISTERS_PER_SM = 65536
_MOST_REGISTERS = 255  # Per thread.
_REGISTER_UNIT = 256  # Per warp.
_SHARED_UNIT = 128
_SHARED_RESERVED = 1024  # Per CTA, for the system.
_KIB = 1024
# Warps, CTAs and bytes of shared memory of an SM.
_LIMITS = {
    80: (64, 32, 164 * _KIB),
    86: (48, 16, 100 * _KIB),
    89: (48, 24, 100 * _KIB),
    90: (64, 32, 228 * _KIB),
    100: (64, 32, 228 * _KIB),
    103: (64, 32, 228 * _KIB),
}


def occupancy(arch: int, *, threads: int, registers: int, shared_bytes: int) -> tuple[int, str]:
    """CTAs that an SM holds at a time, and what limits them; (0, "") for a chip that is not known."""
    if arch not in _LIMITS:
        return 0, ""
    max_warps, max_ctas, max_shared = _LIMITS[arch]
    warps = -(-threads // _WARP_SIZE)
    per_warp = _round_up(max(registers, 1) * _WARP_SIZE, _REGISTER_UNIT)
    # The register file is split over the sub-cores, and so are the warps.
    by_registers = _REGISTERS_PER_SM // SUB_CORES // per_warp * SUB_CORES // warps
    by_shared = max_shared // _round_up(shared_bytes + _SHARED_RESERVED, _SHARED_UNIT)
    return min(
        (max_warps // warps, "warps"),
        (max_ctas, "CTA slots"),
        (by_registers, "registers"),
        (by_shared, "shared memory"),
        key=lambda bound: bound[0],
    )


def most_registers(*, threads: int, ctas: int) -> int:
    """Registers that a thread may have where an SM is to hold so many CTAs; 0 if there are not enough for any."""
    warps = -(-threads // _WARP_SIZE) * ctas
    if warps < 1:
        return 0
    per_warp = _REGISTERS_PER_SM // SUB_CORES // -(-warps // SUB_CORES) // _REGISTER_UNIT * _REGISTER_UNIT
    return min(per_warp // _WARP_SIZE, _MOST_REGISTERS)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
