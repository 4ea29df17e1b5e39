//===- WarpStorage.cpp ----------------------------------------------------===//

#include "Simt/Exec/WarpStorage.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace kperfir::simt {

namespace {
constexpr size_t kRowAlignment = 128;

size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
} // namespace

WarpStorage::WarpStorage(const Program &program, size_t warps,
                         ReusedPages &taken)
    : pages(taken) {
  // One more slot, which is always ready.
  predicateOffset = (program.numScoreboardSlots + 1) * sizeof(uint64_t);
  warpOffset =
      roundUp(predicateOffset + program.numPredicates * sizeof(uint32_t),
              alignof(Warp));
  rowOffset = roundUp(warpOffset + sizeof(Warp), kRowAlignment);
  bytesPerWarp = rowOffset + std::max<size_t>(program.numRows, 1) * kWarpSize *
                                 sizeof(uint32_t);
  visitBytes = roundUp(warpOffset + Warp::kHotBytes, kHostLine);
  taken.take(bytesPerWarp * warps);
}

WarpHandle WarpStorage::make(size_t index, const Program &program,
                             const uint8_t *params) const {
  uint8_t *begin = pages.data() + index * bytesPerWarp;
  WarpFiles files = {reinterpret_cast<uint32_t *>(begin + rowOffset),
                     reinterpret_cast<uint32_t *>(begin + predicateOffset),
                     reinterpret_cast<uint64_t *>(begin)};
  if (!pages.isFresh())
    std::memset(begin + rowOffset, 0, bytesPerWarp - rowOffset);
  WarpHandle warp(new (begin + warpOffset) Warp());
  warp->bind(program, files, params);
  return warp;
}

} // namespace kperfir::simt
