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
  if (contiguous) {
    uint64_t begin = (address[0] + delta) / kSectorBytes;
    uint64_t end =
        (address[0] + delta + uint64_t(bytes) * kWarpSize - 1) / kSectorBytes +
        1;
    while (begin < end) {
      uint64_t line = begin / LineList::kSectorsPerLine;
      uint64_t next = std::min(end, (line + 1) * LineList::kSectorsPerLine);
      unsigned all = (1u << (next - begin)) - 1;
      list.lines[list.count++] = {
          line, static_cast<uint8_t>(all << begin % LineList::kSectorsPerLine)};
      begin = next;
    }
    return;
  }
  for (; lanes; lanes &= lanes - 1)
    list.add(address[__builtin_ctz(lanes)] + delta, bytes);
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
