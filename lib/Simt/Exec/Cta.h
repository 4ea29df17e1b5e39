//===- Cta.h - State of one resident CTA ----------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_CTA_H
#define KPERFIR_SIMT_EXEC_CTA_H

#include "Simt/Exec/Cluster.h"
#include "Simt/Exec/Memory.h"
#include "Simt/Exec/Warp.h"

#include <array>
#include <memory>
#include <vector>

namespace kperfir::simt {

inline constexpr unsigned kNumBarriers = 16;
static_assert(kMaxWarpsPerSm <= 64, "NamedBarrier::waiting has 64 bits");

/// One of the CTA's named barriers, between two releases.
struct NamedBarrier {
  uint32_t arrived = 0;  // threads
  uint32_t expected = 0; // threads; 0 = all that have not ended
  uint64_t waiting = 0;  // warps, a bit for each
  // bar.red: what the threads brought so far.
  uint32_t votes = 0;
  bool all = true;
  bool any = false;
};

/// A warp that sleeps in mbarrier.try_wait until the phase ends.
struct MbarrierWaiter {
  Warp *warp;
  uint32_t offset; // of the mbarrier in shared memory
  uint32_t phase;  // the phase (0 or 1) that must end
};

/// A wgmma that its warp has not waited for: it may still read its operands and
/// write its sums.
struct ProductInFlight {
  const Warp *warp;
  uint32_t pc;
  uint64_t group; // serial number among the warp's
  // As far as they are in shared memory: descriptors, and what they span.
  struct Operand {
    uint64_t descriptor = 0;
    uint32_t begin = 0, end = 0;
  } a, b;
};

struct Cta {
  uint32_t linear = 0;
  uint32_t rank = 0;                // in its cluster
  std::shared_ptr<Cluster> cluster; // null: the CTA is alone
  std::vector<WarpHandle> warps;
  SharedMemory shared;
  std::vector<uint8_t> local; // localBytes for each thread
  uint32_t localBytes = 0;    // per thread
  std::array<NamedBarrier, kNumBarriers> barriers;
  std::vector<MbarrierWaiter> waiters;
  std::vector<ProductInFlight> products;
  uint32_t threads = 0;
  uint32_t unfinishedWarps = 0;
  uint32_t blockedWarps = 0;  // in state Barrier or Mbarrier
  uint32_t pendingEvents = 0; // asynchronous arrivals still to come
  uint64_t endCycle = 0;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_CTA_H
