//===- Caches.cpp ---------------------------------------------------------===//

#include "Simt/Timing/Caches.h"

#include <bit>
#include <smmintrin.h>

namespace kperfir::simt {

Cache::Cache(uint64_t bytes, unsigned ways, uint8_t *tags)
    : setCount(bytes / (uint64_t(ways) * kLineBytes)), ways(ways),
      sets(reinterpret_cast<Set *>(tags)) {}

size_t Cache::tagBytes(uint64_t bytes, unsigned ways) {
  return bytes / (uint64_t(ways) * kLineBytes) * sizeof(Set);
}

Cache::Line *Cache::find(uint64_t line) {
  Set &set = setOf(line);
  // All tags at once; ways beyond `ways` are empty.
  __m128i tag = _mm_set1_epi32(static_cast<int>(line));
  auto tags = reinterpret_cast<const __m128i *>(set.tags);
  unsigned matches = 0;
  for (unsigned i = 0; i < kMaxWays / 4; ++i) {
    __m128i equal = _mm_cmpeq_epi32(_mm_loadu_si128(tags + i), tag);
    matches |= static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(equal)))
               << 4 * i;
  }
  for (; matches; matches &= matches - 1) {
    auto way = static_cast<unsigned>(std::countr_zero(matches));
    if (set.lastUse[way]) {
      set.lastUse[way] = ++clock;
      return &set.lines[way];
    }
  }
  return nullptr;
}

namespace {
/// The first way with the smallest `lastUse`.
unsigned leastRecent(const uint32_t *lastUse, unsigned ways) {
  if (ways != Cache::kMaxWays)
    return static_cast<unsigned>(std::min_element(lastUse, lastUse + ways) -
                                 lastUse);
  __m128i uses[Cache::kMaxWays / 4];
  for (unsigned i = 0; i < Cache::kMaxWays / 4; ++i)
    uses[i] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(lastUse) + i);
  __m128i least = _mm_min_epu32(_mm_min_epu32(uses[0], uses[1]),
                                _mm_min_epu32(uses[2], uses[3]));
  least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0x4E));
  least = _mm_min_epu32(least, _mm_shuffle_epi32(least, 0xB1));
  unsigned matches = 0;
  for (unsigned i = 0; i < Cache::kMaxWays / 4; ++i) {
    __m128i equal = _mm_cmpeq_epi32(uses[i], least);
    matches |= static_cast<unsigned>(_mm_movemask_ps(_mm_castsi128_ps(equal)))
               << 4 * i;
  }
  return static_cast<unsigned>(std::countr_zero(matches));
}
} // namespace

Cache::Line &Cache::allocate(uint64_t line, Line &evicted,
                             uint64_t &evictedLine) {
  Set &set = setOf(line);
  unsigned victim = leastRecent(set.lastUse, ways);
  evicted = set.lines[victim];
  evictedLine = set.tags[victim];
  set.lines[victim] = Line();
  set.tags[victim] = static_cast<uint32_t>(line);
  set.lastUse[victim] = ++clock;
  return set.lines[victim];
}

} // namespace kperfir::simt
