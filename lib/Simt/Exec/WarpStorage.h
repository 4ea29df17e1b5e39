//===- WarpStorage.h - Register files of all resident warps ---------------===//
//
// One allocation per launch, in huge pages where the host has them: the SMs of
// a chip hold thousands of warps, and a step visits all of them.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_WARPSTORAGE_H
#define KPERFIR_SIMT_EXEC_WARPSTORAGE_H

#include "Simt/Exec/Program.h"
#include "Simt/Timing/HostPages.h"

namespace kperfir::simt {

/// Where one warp keeps what its instructions touch.
struct WarpFiles {
  uint32_t *rows = nullptr;
  uint32_t *predicates = nullptr;
  uint64_t *ready = nullptr; // scoreboard
};

class WarpStorage {
public:
  WarpStorage(const Program &program, size_t warps);

  /// The files of warp `index`, all zeros as long as nobody has written to
  /// them.
  WarpFiles files(size_t index) const;

private:
  size_t rowBytes = 0, predicateBytes = 0, bytesPerWarp = 0;
  HostPages pages;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WARPSTORAGE_H
