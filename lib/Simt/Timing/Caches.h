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
  /// A line and the state of its sectors, of which each mask has a bit. Sectors
  /// that are on their way share one arrival, the latest.
  class Line {
  public:
    /// Those of `sectors` that are neither here nor asked for.
    uint8_t missing(uint8_t sectors) const {
      return static_cast<uint8_t>(sectors & ~(present | arriving | asked));
    }
    /// Those of `sectors` that have been asked for.
    uint8_t unanswered(uint8_t sectors) const { return sectors & asked; }
    /// Cycle at which `sectors`, none of them missing or unanswered, are here.
    uint64_t ready(uint8_t sectors) const {
      return sectors & arriving ? arrival : 0;
    }
    void ask(uint8_t sectors) { asked |= sectors; }
    /// `sectors` arrive at `cycle`; `now` tells which others have arrived.
    void arrive(uint8_t sectors, uint64_t cycle, uint64_t now) {
      if (arrival <= now) {
        present |= arriving;
        arriving = 0;
      }
      arrival = arriving ? std::max(arrival, cycle) : cycle;
      arriving |= sectors;
      asked &= static_cast<uint8_t>(~sectors);
    }
    void drop(uint8_t sectors) {
      auto others = static_cast<uint8_t>(~sectors);
      present &= others;
      arriving &= others;
      asked &= others;
    }

    uint8_t dirty = 0;

  private:
    uint8_t present = 0, arriving = 0, asked = 0;
    uint64_t arrival = 0;
  };

  static constexpr unsigned kMaxWays = 16;

  /// The number of sets is bytes / (ways * kLineBytes); no cache if that is 0.
  /// At most kMaxWays ways. `tags` are tagBytes() zeros, which the cache uses
  /// but does not own.
  Cache(uint64_t bytes, unsigned ways, uint8_t *tags);
  static size_t tagBytes(uint64_t bytes, unsigned ways);

  bool exists() const { return setCount != 0; }
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
    const Set &set = setOf(line);
    __builtin_prefetch(set.tags, 0, 2);
    __builtin_prefetch(set.lastUse, 1, 2);
  }

private:
  /// Tags are the lower 32 bits: lines 512 GB apart may be taken for each
  /// other. An empty set is all zeros.
  struct Set {
    uint32_t tags[kMaxWays];
    uint32_t lastUse[kMaxWays]; // 0: empty
    Line lines[kMaxWays];
  };

  Set &setOf(uint64_t line) const {
    // The upper half of the product picks a set without a division.
    uint64_t index = (mixAddress(line) >> 32) * setCount >> 32;
    return sets[index];
  }

  uint64_t setCount = 0;
  unsigned ways = 0;
  uint32_t clock = 0;
  Set *sets = nullptr;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_CACHES_H
