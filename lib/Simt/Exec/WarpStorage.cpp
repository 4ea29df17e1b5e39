//===- WarpStorage.cpp ----------------------------------------------------===//

#include "Simt/Exec/WarpStorage.h"

#include <algorithm>

namespace kperfir::simt {

namespace {
constexpr size_t kRowAlignment = 128;

size_t roundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}
} // namespace

WarpStorage::WarpStorage(const Program &program, size_t warps) {
  rowBytes =
      std::max<size_t>(program.numRows, 1) * kWarpSize * sizeof(uint32_t);
  predicateBytes =
      roundUp(std::max<size_t>(program.numPredicates, 1) * sizeof(uint32_t), 8);
  bytesPerWarp = roundUp(rowBytes + predicateBytes +
                             program.numScoreboardSlots * sizeof(uint64_t),
                         kRowAlignment);
  pages = HostPages(bytesPerWarp * warps);
}

WarpFiles WarpStorage::files(size_t index) const {
  uint8_t *begin = pages.data() + index * bytesPerWarp;
  return {reinterpret_cast<uint32_t *>(begin),
          reinterpret_cast<uint32_t *>(begin + rowBytes),
          reinterpret_cast<uint64_t *>(begin + rowBytes + predicateBytes)};
}

} // namespace kperfir::simt
