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

#include <cstdint>
#include <vector>

namespace kperfir::simt {

inline constexpr unsigned kSectorsPerLine = kLineBytes / kSectorBytes;

/// Cycle values with a meaning of their own, larger than any real cycle.
inline constexpr uint64_t kNever = ~0ull;
inline constexpr uint64_t kUnresolved = ~0ull - 1; // known at the next exchange

class Cache {
public:
  struct Line {
    uint64_t tag = kNever;
    uint64_t lastUse = 0;
    /// When a sector's data is there: kNever = absent, kUnresolved = asked for.
    uint64_t ready[kSectorsPerLine] = {kNever, kNever, kNever, kNever};
    uint8_t dirty = 0; // one bit per sector
  };

  Cache() = default;
  /// The number of sets is bytes / (ways * kLineBytes); no cache if that is 0.
  Cache(uint64_t bytes, unsigned ways);

  bool exists() const { return !lines.empty(); }
  /// The line that holds `line` (address / kLineBytes), or null; counts as a use.
  Line *find(uint64_t line);
  /// The least recently used line of the set, emptied and tagged.
  /// `evicted` gets its previous content.
  Line &allocate(uint64_t line, Line &evicted);
  /// Forgets everything.
  void invalidate();

private:
  Line *setOf(uint64_t line);

  uint64_t sets = 0;
  unsigned ways = 0;
  uint64_t clock = 0;
  std::vector<Line> lines;
};

/// Spreads line addresses over sets, slices and channels.
inline uint64_t mixAddress(uint64_t x) {
  x ^= x >> 33;
  x *= 0xFF51AFD7ED558CCDull;
  x ^= x >> 33;
  return x;
}

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_CACHES_H
