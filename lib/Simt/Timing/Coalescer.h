//===- Coalescer.h - The 32-byte sectors that one access touches ----------===//

#ifndef KPERFIR_SIMT_TIMING_COALESCER_H
#define KPERFIR_SIMT_TIMING_COALESCER_H

#include "Simt/Exec/Memory.h"
#include "Simt/Timing/Chip.h"

#include <algorithm>

namespace kperfir::simt {

/// The sectors of one line that an access touches, a bit each.
struct LineAccess {
  uint64_t line; // timing address / kLineBytes
  uint8_t sectors;
};

/// Distinct lines in the order of the lanes.
struct LineList {
  static constexpr unsigned kSectorsPerLine = kLineBytes / kSectorBytes;
  /// 32 bytes per lane touch two lines at most.
  static constexpr unsigned kCapacity = 2 * kWarpSize;
  LineAccess lines[kCapacity];
  unsigned count = 0;

  /// Adds the sectors of [begin, begin + bytes).
  void add(uint64_t begin, uint64_t bytes) {
    uint64_t end = (begin + bytes - 1) / kSectorBytes + 1;
    for (uint64_t sector = begin / kSectorBytes; sector < end;) {
      uint64_t line = sector / kSectorsPerLine;
      uint64_t next = std::min(end, (line + 1) * kSectorsPerLine);
      unsigned all = (1u << (next - sector)) - 1;
      addSectors(line, static_cast<uint8_t>(all << sector % kSectorsPerLine));
      sector = next;
    }
  }
  unsigned countSectors() const {
    unsigned sectors = 0;
    for (unsigned i = 0; i < count; ++i)
      sectors += static_cast<unsigned>(__builtin_popcount(lines[i].sectors));
    return sectors;
  }

private:
  void addSectors(uint64_t line, uint8_t sectors) {
    // Neighbouring lanes mostly share a line.
    for (unsigned i = count; i-- > 0;) {
      if (lines[i].line == line) {
        lines[i].sectors |= sectors;
        return;
      }
    }
    lines[count++] = {line, sectors};
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
              LaneMask lanes, bool contiguous, LineList &list);
/// Sectors of the lanes whose ranges are placed; any ranges.
void coalesceMapped(const GlobalMemory &memory, const uint64_t *address,
                    unsigned bytes, LaneMask lanes, LineList &list);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_COALESCER_H
