//===- MemorySystem.h - When L2 and DRAM answer ---------------------------===//
//
// What the SMs share: L2 slices and DRAM channels, each a queue with a
// bandwidth. Called by one thread, in the order in which requests arrive.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_TIMING_MEMORYSYSTEM_H
#define KPERFIR_SIMT_TIMING_MEMORYSYSTEM_H

#include "Simt/Timing/Caches.h"
#include "Simt/Timing/Chip.h"
#include "Simt/Timing/HostPages.h"

#include <cstdint>
#include <vector>

namespace kperfir::simt {

struct MemoryStatistics {
  uint64_t l2SectorReads = 0;
  uint64_t l2SectorWrites = 0;
  uint64_t l2SectorHits = 0;
  uint64_t l2Atomics = 0;
  uint64_t dramReadBytes = 0;
  uint64_t dramWriteBytes = 0;
};

class MemorySystem {
public:
  explicit MemorySystem(const Chip &chip);

  // `line` is a timing address / kLineBytes, `sectors` a mask, `arrival` the
  // cycle at which the request has left the SM.

  /// Cycle at which the data is at the SM's port.
  uint64_t read(uint64_t line, uint8_t sectors, uint64_t arrival);
  /// Cycle at which L2 has accepted the write.
  uint64_t write(uint64_t line, uint8_t sectors, uint64_t arrival);
  /// Cycle at which the old values of `lanes` lanes are at the SM's port.
  uint64_t atomic(uint64_t line, uint8_t sectors, uint64_t arrival,
                  unsigned lanes);
  /// L2 has the sectors, and nobody has waited for it; `isDirty`: they were
  /// written.
  void warm(uint64_t line, uint8_t sectors, bool isDirty);
  /// Asks the host for what the above will touch.
  void prefetch(uint64_t line) const { l2.prefetch(line); }

  /// As if nothing had run yet.
  void forget();

  const MemoryStatistics &statistics() const { return stats; }
  void resetStatistics() { stats = {}; }

private:
  /// Fractions of a cycle, so that bandwidths need not be whole numbers.
  static constexpr uint64_t kTicksPerCycle = 1024;

  /// The cycle at which the slice has served `ticks` of work, the last of it
  /// included.
  uint64_t enterSlice(uint64_t line, uint64_t arrival, uint64_t ticks);
  uint64_t transferDram(uint64_t line, unsigned sectors, uint64_t arrival);
  /// The L2 line; evicts and writes back if it has to be brought in. It is
  /// `free` when DRAM takes what was evicted.
  Cache::Line contentOf(uint64_t line, uint64_t cycle, uint64_t &free);
  /// Cycle at which the sectors are in L2.
  uint64_t fetch(uint64_t line, uint8_t sectors, uint64_t cycle);

  uint64_t l2Latency;
  uint64_t dramLatency;
  uint64_t sliceTicks;   // per sector
  uint64_t atomicTicks;  // per lane
  uint64_t channelTicks; // per sector
  HostPages l2Tags;
  Cache l2;
  std::vector<uint64_t> sliceFree;   // ticks
  std::vector<uint64_t> channelFree; // ticks
  MemoryStatistics stats;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_MEMORYSYSTEM_H
