//===- SharedBanks.cpp ----------------------------------------------------===//

#include "Simt/Timing/SharedBanks.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

namespace {
constexpr unsigned kBanks = 32;

/// Most distinct units (of unitBytes) that any one bank group has to serve.
class Conflicts {
public:
  explicit Conflicts(unsigned groups) : groups(groups) {
    std::fill_n(count, groups, uint8_t(0));
  }

  void add(uint32_t unit) {
    unsigned group = unit % groups;
    unsigned n = count[group];
    for (unsigned i = 0; i < n; ++i)
      if (units[group][i] == unit)
        return; // The same word is broadcast.
    units[group][n] = unit;
    count[group] = static_cast<uint8_t>(n + 1);
    degree = std::max(degree, n + 1);
  }

  unsigned degree = 0;

private:
  unsigned groups;
  uint8_t count[kBanks];
  uint32_t units[kBanks][kBanks];
};

/// Most distinct units of `unitBytes` (4 to 32, a power of two) that share
/// their banks.
unsigned mostUnits(const uint32_t *offsets, LaneMask lanes,
                   unsigned unitBytes) {
  auto shift = static_cast<unsigned>(std::countr_zero(unitBytes));
  unsigned groups = kBanks * 4 >> shift;
  uint32_t low = ~0u, high = 0;
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    uint32_t offset = offsets[std::countr_zero(rest)];
    low = std::min(low, offset);
    high = std::max(high, offset);
  }
  if (!lanes || (high >> shift) - (low >> shift) < groups)
    return lanes ? 1 : 0; // Too near each other to conflict.
  // Mostly there is no conflict: every group has one unit at most.
  uint32_t unitOf[kBanks];
  uint32_t used = 0;
  bool conflict = false;
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    uint32_t unit = offsets[std::countr_zero(rest)] >> shift;
    uint32_t group = unit & (groups - 1);
    if (used >> group & 1)
      conflict |= unitOf[group] != unit;
    used |= 1u << group;
    unitOf[group] = unit;
  }
  if (!conflict)
    return 1;
  Conflicts conflicts(groups);
  for (LaneMask rest = lanes; rest; rest &= rest - 1)
    conflicts.add(offsets[std::countr_zero(rest)] >> shift);
  return conflicts.degree;
}

/// All lanes active and lane i at offset base + i * bytes, base aligned.
bool isContiguous(const uint32_t *offsets, unsigned bytes, LaneMask mask) {
  if (mask != kFullMask || offsets[0] % 4 != 0)
    return false;
  uint32_t different = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    different |= offsets[lane] ^ (offsets[0] + lane * bytes);
  return different == 0;
}
} // namespace

unsigned sharedWavefronts(const uint32_t *offsets, unsigned bytes,
                          LaneMask mask) {
  if (mask == 0)
    return 1;
  unsigned lanesPerGroup = bytes <= 4    ? 32
                           : bytes <= 8  ? 16
                           : bytes <= 16 ? 8
                                         : 4;
  unsigned groups = kWarpSize / lanesPerGroup;
  if (isContiguous(offsets, bytes, mask))
    return groups;

  // Aligned accesses of 4 bytes and more either share all of their banks or
  // none.
  unsigned unitBytes = std::max(bytes, 4u);
  unsigned total = 0;
  for (unsigned first = 0; first < kWarpSize; first += lanesPerGroup) {
    LaneMask lanes = mask >> first;
    if (lanesPerGroup < kWarpSize)
      lanes &= (1u << lanesPerGroup) - 1;
    total += mostUnits(offsets + first, lanes, unitBytes);
  }
  return std::max(total, 1u);
}

unsigned matrixWavefronts(const uint32_t *rowOffsets, unsigned matrices) {
  constexpr unsigned kRows = 8;
  unsigned total = 0;
  for (unsigned matrix = 0; matrix < matrices; ++matrix) {
    const uint32_t *rows = rowOffsets + matrix * kRows;
    uint32_t seen = 0;
    for (unsigned row = 0; row < kRows; ++row)
      seen |= 1u << (rows[row] / 16 % 8);
    if (seen == 0xFF) { // One row per group of four banks.
      ++total;
      continue;
    }
    Conflicts conflicts(8);
    for (unsigned row = 0; row < kRows; ++row)
      conflicts.add(rows[row] / 16);
    total += conflicts.degree;
  }
  return total;
}

} // namespace kperfir::simt
