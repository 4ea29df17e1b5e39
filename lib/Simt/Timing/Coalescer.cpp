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
              LaneMask lanes, bool contiguous, SectorList &list) {
  uint64_t delta = range.timingBegin - range.begin;
  if (contiguous) {
    uint64_t first = (address[0] + delta) / kSectorBytes;
    uint64_t last =
        (address[0] + delta + uint64_t(bytes) * kWarpSize - 1) / kSectorBytes;
    for (; first <= last && list.count < SectorList::kCapacity; ++first)
      list.sectors[list.count++] = first;
    return;
  }
  for (; lanes; lanes &= lanes - 1) {
    uint64_t begin = address[__builtin_ctz(lanes)] + delta;
    list.add(begin / kSectorBytes, (begin + bytes - 1) / kSectorBytes);
  }
}

void coalesceMapped(const GlobalMemory &memory, const uint64_t *address,
                    unsigned bytes, LaneMask lanes, SectorList &list) {
  for (; lanes; lanes &= lanes - 1) {
    uint64_t value = address[__builtin_ctz(lanes)];
    const GlobalRange *range = memory.find(value);
    if (!range || !range->isPlaced())
      continue;
    uint64_t begin = range->timingAddress(value);
    list.add(begin / kSectorBytes, (begin + bytes - 1) / kSectorBytes);
  }
}

unsigned countLines(const SectorList &list) {
  uint64_t lines[SectorList::kCapacity];
  unsigned count = 0;
  for (unsigned i = 0; i < list.count; ++i) {
    uint64_t line = list.sectors[i] / (kLineBytes / kSectorBytes);
    unsigned known = count;
    while (known > 0 && lines[known - 1] != line)
      --known;
    if (known == 0)
      lines[count++] = line;
  }
  return count;
}

} // namespace kperfir::simt
