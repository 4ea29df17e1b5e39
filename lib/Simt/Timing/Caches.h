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
  struct Set;

public:
  static constexpr unsigned kMaxWays = 16;

  /// A line that the cache holds, and the state of its sectors, of which each
  /// mask has a bit. Sectors that are on their way share one arrival, the
  /// latest. Valid until the cache's next allocate().
  class Line {
  public:
    Line() = default; // none
    explicit operator bool() const { return set != nullptr; }

    /// Those of `sectors` that are neither here nor asked for.
    uint8_t missing(uint8_t sectors) const {
      return without(sectors,
                     set->present | set->arriving | set->asked | set->claimed);
    }
    /// Those of `sectors` that have been asked for, and no request has claimed.
    uint8_t unanswered(uint8_t sectors) const {
      return within(sectors, set->asked);
    }
    /// Cycle at which `sectors`, none of them missing or unanswered, are here.
    uint64_t ready(uint8_t sectors) const {
      return within(sectors, set->arriving) ? set->arrival[way] : 0;
    }
    void ask(uint8_t sectors) { set->asked |= at(sectors); }
    /// A request brings those of `sectors` that have been asked for: no other
    /// one need do so. They arrive() later on.
    void claim(uint8_t sectors) {
      set->asked &= ~at(sectors);
      set->claimed |= at(sectors);
    }
    /// `sectors` arrive at `cycle`; `now` tells which others have arrived.
    void arrive(uint8_t sectors, uint64_t cycle, uint64_t now) {
      uint64_t &arrival = set->arrival[way];
      arrival = isWaiting(now) ? std::max(arrival, cycle) : cycle;
      set->arriving |= at(sectors);
      set->asked &= ~at(sectors);
      set->claimed &= ~at(sectors);
    }
    /// `sectors` are here, if nobody will ask about a cycle before `now`. As
    /// with arrive(), they have to wait for others that are on their way.
    void put(uint8_t sectors, uint64_t now) {
      (isWaiting(now) ? set->arriving : set->present) |= at(sectors);
      set->asked &= ~at(sectors);
    }
    void drop(uint8_t sectors) {
      uint64_t kept = ~at(sectors);
      set->present &= kept;
      set->arriving &= kept;
      set->asked &= kept;
    }
    /// To be written back when the line is evicted.
    void soil(uint8_t sectors) { set->dirty |= at(sectors); }

  private:
    friend class Cache;
    static constexpr uint8_t kAllSectors = (1u << kSectorsPerLine) - 1;

    Line(Set *set, unsigned way) : set(set), way(way) {}
    uint64_t at(uint8_t sectors) const {
      return uint64_t(sectors) << kSectorsPerLine * way;
    }
    uint8_t within(uint8_t sectors, uint64_t states) const {
      return static_cast<uint8_t>(sectors & (states >> kSectorsPerLine * way));
    }
    uint8_t without(uint8_t sectors, uint64_t states) const {
      return within(sectors, ~states);
    }

    /// Sectors are still on their way at `now`.
    bool isWaiting(uint64_t now) {
      uint64_t all = set->arriving & at(kAllSectors);
      if (all == 0 || set->arrival[way] > now)
        return all != 0;
      set->present |= all;
      set->arriving ^= all;
      return false;
    }

    Set *set = nullptr;
    unsigned way = 0;
  };

  /// What had to leave.
  struct Evicted {
    uint64_t line = 0;
    uint8_t dirty = 0; // sectors
  };

  /// The number of sets is bytes / (ways * kLineBytes); no cache if that is 0.
  /// At most kMaxWays ways. `tags` are tagBytes() zeros at a multiple of 64,
  /// which the cache uses but does not own.
  Cache(uint64_t bytes, unsigned ways, uint8_t *tags);
  static size_t tagBytes(uint64_t bytes, unsigned ways);

  bool exists() const { return setCount != 0; }
  /// Empties it, dirty lines too. Sets are cleared when they are next used.
  void forget() { ++era; }
  /// The line that holds `line` (address / kLineBytes), or none; counts as a
  /// use.
  Line find(uint64_t line) { return findIn(setOf(line), line); }
  /// The least recently used line of the set, emptied and tagged.
  Line allocate(uint64_t line, Evicted &evicted) {
    return allocateIn(setOf(line), line, evicted);
  }
  Line allocate(uint64_t line) {
    Evicted evicted;
    return allocate(line, evicted);
  }
  /// find(), or else allocate().
  Line findOrAllocate(uint64_t line, Evicted &evicted) {
    Set &set = setOf(line);
    Line found = findIn(set, line);
    return found ? found : allocateIn(set, line, evicted);
  }
  Line findOrAllocate(uint64_t line) {
    Evicted evicted;
    return findOrAllocate(line, evicted);
  }
  /// Asks the host for what find(line) will touch.
  void prefetch(uint64_t line) const {
    const Set &set = placeOf(line);
    __builtin_prefetch(set.tags, 0, 2);
    __builtin_prefetch(&set.order, 1, 2);
  }

private:
  /// An empty set is all zeros. A step visits many sets, of which the host's
  /// nearest caches hold few: what all visits touch is two of its lines.
  struct alignas(64) Set {
    /// The lower 32 bits: lines 512 GB apart may be taken for each other.
    uint32_t tags[kMaxWays];
    /// Ways from the most to the least recently used, 4 bits each, XORed with
    /// the order of an empty set: the last way first.
    uint64_t order;
    // kSectorsPerLine bits for each way.
    uint64_t present, arriving, asked, claimed, dirty;
    uint16_t used; // ways that hold a line
    uint32_t era;  // Cache::era when it was last used
    alignas(64) uint64_t arrival[kMaxWays];
  };
  static_assert(sizeof(Set) == 256 && kMaxWays * kSectorsPerLine == 64);

  /// The set of `line`, as it was left.
  Set &placeOf(uint64_t line) const {
    // The upper half of the product picks a set without a division.
    uint64_t index = (mixAddress(line) >> 32) * setCount >> 32;
    return sets[index];
  }
  Set &setOf(uint64_t line) const {
    Set &set = placeOf(line);
    if (set.era != era) [[unlikely]]
      clear(set);
    return set;
  }
  void clear(Set &set) const;
  Line findIn(Set &set, uint64_t line) const;
  Line allocateIn(Set &set, uint64_t line, Evicted &evicted) const;
  /// The way has been used.
  void touch(Set &set, unsigned way) const;

  uint64_t setCount = 0;
  uint32_t era = 0;
  uint64_t emptyOrder = 0;
  unsigned leastShift = 0; // of the least recently used way in `order`
  Set *sets = nullptr;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_CACHES_H
