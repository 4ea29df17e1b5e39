//===- Caches.h - Tag arrays of L1 and L2 ---------------------------------===//
//
// Sectored, set-associative, least recently used. Tags only: data is read from
// and written to the host's memory (Exec/Memory). Addresses are timing
// addresses (GlobalMemory), so results do not depend on where the host put a
// tensor.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_TIMING_CACHES_H
#define KPERFIR_SIMT_TIMING_CACHES_H

#include "Simt/Timing/Chip.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace kperfir::simt {

inline constexpr unsigned kSectorsPerLine = kLineBytes / kSectorBytes;

/// Cycle values with a meaning of their own, larger than any real cycle.
inline constexpr uint64_t kNever = ~0ull;
inline constexpr uint64_t kUnresolved = ~0ull - 1; // known at the next exchange

/// Spreads line addresses over sets, slices and channels.
inline uint64_t mixAddress(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  return x;
}

class Cache {
public:
  /// A line and the state of its sectors. Sectors that are on their way share
  /// one arrival, the latest.
  class Line {
  public:
    /// Cycle at which the sector's data is there; kNever if it is absent,
    /// kUnresolved if it has been asked for.
    uint64_t ready(unsigned sector) const {
      unsigned bit = 1u << sector;
      if (present & bit)
        return 0;
      if (arriving & bit)
        return arrival;
      return asked & bit ? kUnresolved : kNever;
    }
    void ask(unsigned sector) { asked |= static_cast<uint8_t>(1u << sector); }
    /// The sector arrives at `cycle`; `now` tells who has arrived already.
    void arrive(unsigned sector, uint64_t cycle, uint64_t now) {
      if (arrival <= now) {
        present |= arriving;
        arriving = 0;
      }
      auto bit = static_cast<uint8_t>(1u << sector);
      asked &= static_cast<uint8_t>(~bit);
      arriving |= bit;
      arrival = arriving == bit ? cycle : std::max(arrival, cycle);
    }
    void drop(unsigned sector) {
      auto others = static_cast<uint8_t>(~(1u << sector));
      present &= others;
      arriving &= others;
      asked &= others;
    }

    uint8_t dirty = 0; // one bit per sector, as the next three

  private:
    uint8_t present = 0, arriving = 0, asked = 0;
    uint64_t arrival = 0;
  };

  Cache() = default;
  /// The number of sets is bytes / (ways * kLineBytes); no cache if that is 0.
  Cache(uint64_t bytes, unsigned ways);

  bool exists() const { return !lines.empty(); }
  /// The line that holds `line` (address / kLineBytes), or null; counts as a
  /// use.
  Line *find(uint64_t line);
  /// The least recently used line of the set, emptied and tagged. `evicted`
  /// gets its previous content, and `evictedLine` its address.
  Line &allocate(uint64_t line, Line &evicted, uint64_t &evictedLine);
  Line &allocate(uint64_t line) {
    Line evicted;
    uint64_t evictedLine;
    return allocate(line, evicted, evictedLine);
  }
  /// Asks the host for what find(line) will touch.
  void prefetch(uint64_t line) const {
    size_t first = firstWay(line);
    __builtin_prefetch(&tags[first], 0, 2);
    __builtin_prefetch(&lastUse[first], 1, 2);
  }
  /// Forgets everything.
  void invalidate();

private:
  size_t firstWay(uint64_t line) const {
    // The upper half of the product picks a set without a division.
    return ((mixAddress(line) >> 32) * sets >> 32) * ways;
  }

  uint64_t sets = 0;
  unsigned ways = 0;
  uint32_t clock = 0;
  // Apart, so that a search touches few of the host's cache lines. Tags are the
  // lower 32 bits: lines 512 GB apart may be taken for each other.
  std::vector<uint32_t> tags;
  std::vector<uint32_t> lastUse; // 0: empty
  std::vector<Line> lines;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_CACHES_H
