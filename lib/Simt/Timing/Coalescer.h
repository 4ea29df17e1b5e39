//===- Coalescer.h - The 32-byte sectors that one access touches ----------===//

#ifndef KPERFIR_SIMT_TIMING_COALESCER_H
#define KPERFIR_SIMT_TIMING_COALESCER_H

#include "Simt/Exec/Memory.h"
#include "Simt/Timing/Chip.h"

namespace kperfir::simt {

/// Distinct sectors in the order of the lanes (timing address / kSectorBytes).
struct SectorList {
  static constexpr unsigned kCapacity =
      2 * kWarpSize; // 32 bytes touch two at most
  uint64_t sectors[kCapacity];
  unsigned count = 0;

  void add(uint64_t first, uint64_t last) {
    for (; first <= last; ++first)
      addOne(first);
  }

private:
  void addOne(uint64_t sector) {
    // Neighbouring lanes mostly share a sector.
    for (unsigned i = count; i-- > 0;)
      if (sectors[i] == sector)
        return;
    sectors[count++] = sector;
  }
};

/// Lane i at address[0] + i * bytes, for all lanes.
bool isContiguous(const uint64_t *address, unsigned bytes, LaneMask lanes);

/// The range that holds the accesses of all lanes, or null. Looks at `hint`
/// first and updates it.
const GlobalRange *commonRange(const GlobalMemory &memory,
                               const uint64_t *address, unsigned bytes,
                               LaneMask lanes, const GlobalRange *&hint);

/// Sectors of an access within one range. Their number is right even before the
/// range is placed.
void coalesce(const GlobalRange &range, const uint64_t *address, unsigned bytes,
              LaneMask lanes, bool contiguous, SectorList &list);
/// Sectors of the lanes whose ranges are placed; any ranges.
void coalesceMapped(const GlobalMemory &memory, const uint64_t *address,
                    unsigned bytes, LaneMask lanes, SectorList &list);

/// 128-byte lines among the sectors.
unsigned countLines(const SectorList &list);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_COALESCER_H
