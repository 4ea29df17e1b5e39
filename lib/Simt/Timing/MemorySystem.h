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

  /// Cycle at which the data of a sector is at the SM's port. `sector` is a
  /// timing address / kSectorBytes, `arrival` the cycle it left the SM.
  uint64_t read(uint64_t sector, uint64_t arrival);
  /// Cycle at which L2 has accepted the write.
  uint64_t write(uint64_t sector, uint64_t arrival);
  /// Cycle at which the old values are at the SM's port.
  uint64_t atomic(uint64_t sector, uint64_t arrival, unsigned lanes);

  /// Asks the host for what the above will touch.
  void prefetch(uint64_t sector) const {
    l2.prefetch(sector / kSectorsPerLine);
  }

  const MemoryStatistics &statistics() const { return stats; }
  void resetStatistics() { stats = {}; }

private:
  /// Fractions of a cycle, so that bandwidths need not be whole numbers.
  static constexpr uint64_t kTicksPerCycle = 1024;

  /// What all sectors of a line have in common. Sectors of one line come
  /// together, so the last one is remembered.
  struct Place {
    uint64_t line = kNever;
    uint64_t *sliceFree = nullptr;
    Cache::Line *content = nullptr; // null until it is needed
  };

  Place &placeOf(uint64_t sector);
  /// When the slice begins to serve, after which it is taken for `ticks`.
  uint64_t enterSlice(const Place &place, uint64_t arrival, uint64_t ticks);
  uint64_t transferDram(uint64_t line, uint64_t arrival);
  /// The L2 line; evicts and writes back if it has to be brought in.
  Cache::Line &contentOf(Place &place, uint64_t cycle);
  /// Cycle at which the sector is in L2.
  uint64_t fetch(Place &place, uint64_t sector, uint64_t cycle);

  uint64_t l2Latency;
  uint64_t dramLatency;
  uint64_t sliceTicks;   // per sector
  uint64_t atomicTicks;  // per lane
  uint64_t channelTicks; // per sector
  Cache l2;
  std::vector<uint64_t> sliceFree;   // ticks
  std::vector<uint64_t> channelFree; // ticks
  Place last;
  MemoryStatistics stats;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_MEMORYSYSTEM_H
