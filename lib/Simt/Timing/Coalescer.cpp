//===- Coalescer.cpp ------------------------------------------------------===//

#include "Simt/Timing/Coalescer.h"

#include <algorithm>

namespace kperfir::simt {

bool isContiguous(const uint64_t *address, unsigned bytes, LaneMask lanes) {
  if (lanes != kFullMask)
    return false;
  uint64_t different = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    different |= address[lane] ^ (address[0] + uint64_t(lane) * bytes);
  return different == 0;
}

const GlobalRange *commonRange(const GlobalMemory &memory,
                               const uint64_t *address, unsigned bytes,
                               LaneMask lanes, const GlobalRange *&hint) {
  uint64_t low = ~0ull, high = 0;
  if (lanes == kFullMask) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      low = std::min(low, address[lane]);
      high = std::max(high, address[lane]);
    }
  } else {
    for (LaneMask rest = lanes; rest; rest &= rest - 1) {
      uint64_t value = address[__builtin_ctz(rest)];
      low = std::min(low, value);
      high = std::max(high, value);
    }
  }
  auto holdsAll = [&](const GlobalRange *range) {
    return range && low >= range->begin && range->contains(high, bytes);
  };
  if (holdsAll(hint))
    return hint;
  const GlobalRange *range = memory.find(low);
  if (!holdsAll(range))
    return nullptr;
  return hint = range;
}

void coalesce(const GlobalRange &range, const uint64_t *address, unsigned bytes,
              LaneMask lanes, bool contiguous, LineList &list) {
  uint64_t delta = range.timingBegin - range.begin;
  if (contiguous)
    return list.add(address[0] + delta, uint64_t(bytes) * kWarpSize);
  // Rows of a tile: runs of lanes that follow each other.
  while (lanes) {
    uint64_t begin = address[__builtin_ctz(lanes)];
    uint64_t end = begin;
    do {
      end += bytes;
      lanes &= lanes - 1;
    } while (lanes && address[__builtin_ctz(lanes)] == end);
    list.add(begin + delta, end - begin);
  }
}

void coalesceMapped(const GlobalMemory &memory, const uint64_t *address,
                    unsigned bytes, LaneMask lanes, LineList &list) {
  for (; lanes; lanes &= lanes - 1) {
    uint64_t value = address[__builtin_ctz(lanes)];
    const GlobalRange *range = memory.find(value);
    if (range && range->isPlaced())
      list.add(range->timingAddress(value), bytes);
  }
}

} // namespace kperfir::simt
