//===- WarpStorage.h - Where the warps of all SMs live --------------------===//
//
// One piece of memory, in huge pages where the host has them: the SMs of
// a chip hold thousands of warps, and a step visits all of them. What every
// visit touches (scoreboard, predicates and the Warp) lies side by side.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_WARPSTORAGE_H
#define KPERFIR_SIMT_EXEC_WARPSTORAGE_H

#include "Simt/Exec/LaunchMemory.h"
#include "Simt/Exec/Warp.h"

#include <memory>

namespace kperfir::simt {

class WarpStorage {
public:
  /// Takes `pages`, which must outlive it.
  WarpStorage(const Program &program, size_t warps, ReusedPages &pages);

  /// Makes warp `index`, bound to registers that are all zeros. Once for each
  /// index; the storage must outlive the warp.
  WarpHandle make(size_t index, const Program &program,
                  const uint8_t *params) const;

  /// Asks the host for what an issue of the warp touches first.
  void prefetch(const Warp *warp) const {
    auto end = reinterpret_cast<const char *>(warp) + Warp::kHotBytes;
    for (size_t byte = 0; byte < visitBytes; byte += kHostLine)
      __builtin_prefetch(end - visitBytes + byte, 0, 2);
  }

private:
  static constexpr size_t kHostLine = 64;

  size_t predicateOffset = 0, warpOffset = 0, rowOffset = 0;
  size_t bytesPerWarp = 0;
  size_t visitBytes = 0;
  const ReusedPages &pages;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WARPSTORAGE_H
