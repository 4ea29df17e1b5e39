//===- LaunchMemory.h - What a device keeps from launch to launch ---------===//
//
// A launch fills tens of megabytes. The host takes as long to bring fresh pages
// of that size as a small kernel takes to run, so a device keeps those of its
// last launch, as long as they are not out of the ordinary.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_LAUNCHMEMORY_H
#define KPERFIR_SIMT_EXEC_LAUNCHMEMORY_H

#include "Simt/Exec/GlobalRequest.h"
#include "Simt/Timing/HostPages.h"

#include <vector>

namespace kperfir::simt {

/// Memory for one launch at a time.
class ReusedPages {
public:
  /// At least `bytes` bytes, aligned to 4096; they replace the former ones.
  void take(size_t bytes) {
    isZero = bytes > pages.size();
    if (isZero) {
      pages = HostPages(); // The old ones first: never both at once.
      pages = HostPages(bytes);
    }
  }
  uint8_t *data() const { return pages.data(); }
  /// Nobody has written to them: all bytes are 0.
  bool isFresh() const { return isZero; }
  void dropIfAbove(size_t bytes) {
    if (pages.size() > bytes)
      pages = HostPages();
  }

private:
  HostPages pages;
  bool isZero = false;
};

struct LaunchMemory {
  ReusedPages warps;
  ReusedPages l1Tags;
  std::vector<RequestQueue> queues; // by SM

  /// After a launch.
  void trim() {
    constexpr size_t kMostPages = size_t(256) << 20;
    constexpr size_t kMostPerQueue = size_t(1) << 20;
    warps.dropIfAbove(kMostPages);
    l1Tags.dropIfAbove(kMostPages);
    for (RequestQueue &queue : queues)
      if (queue.capacity() > kMostPerQueue)
        queue = RequestQueue();
  }
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_LAUNCHMEMORY_H
