//===- Caches.cpp ---------------------------------------------------------===//

#include "Simt/Timing/Caches.h"

#include <algorithm>

namespace kperfir::simt {

Cache::Cache(uint64_t bytes, unsigned ways)
    : sets(bytes / (uint64_t(ways) * kLineBytes)), ways(ways),
      lines(sets * ways) {}

Cache::Line *Cache::setOf(uint64_t line) { return &lines[mixAddress(line) % sets * ways]; }

Cache::Line *Cache::find(uint64_t line) {
  Line *set = setOf(line);
  for (unsigned way = 0; way < ways; ++way) {
    if (set[way].tag == line) {
      set[way].lastUse = ++clock;
      return &set[way];
    }
  }
  return nullptr;
}

Cache::Line &Cache::allocate(uint64_t line, Line &evicted) {
  Line *set = setOf(line);
  Line *victim = set;
  for (unsigned way = 1; way < ways; ++way)
    if (set[way].lastUse < victim->lastUse)
      victim = &set[way];
  evicted = *victim;
  *victim = Line();
  victim->tag = line;
  victim->lastUse = ++clock;
  return *victim;
}

void Cache::invalidate() { std::fill(lines.begin(), lines.end(), Line()); }

} // namespace kperfir::simt
