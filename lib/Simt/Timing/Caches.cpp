//===- Caches.cpp ---------------------------------------------------------===//

#include "Simt/Timing/Caches.h"

#include <algorithm>

namespace kperfir::simt {

Cache::Cache(uint64_t bytes, unsigned ways)
    : sets(bytes / (uint64_t(ways) * kLineBytes)), ways(ways),
      tags(sets * ways), lastUse(sets * ways), lines(sets * ways) {}

Cache::Line *Cache::find(uint64_t line) {
  size_t first = firstWay(line);
  auto tag = static_cast<uint32_t>(line);
  for (size_t way = first; way < first + ways; ++way) {
    if (tags[way] == tag && lastUse[way]) {
      lastUse[way] = ++clock;
      return &lines[way];
    }
  }
  return nullptr;
}

Cache::Line &Cache::allocate(uint64_t line, Line &evicted,
                             uint64_t &evictedLine) {
  size_t first = firstWay(line);
  size_t victim = first;
  for (size_t way = first + 1; way < first + ways; ++way)
    if (lastUse[way] < lastUse[victim])
      victim = way;
  evicted = lines[victim];
  evictedLine = tags[victim];
  lines[victim] = Line();
  tags[victim] = static_cast<uint32_t>(line);
  lastUse[victim] = ++clock;
  return lines[victim];
}

void Cache::invalidate() {
  std::fill(lastUse.begin(), lastUse.end(), 0u);
  std::fill(lines.begin(), lines.end(), Line());
}

} // namespace kperfir::simt
