//===- Caches.cpp ---------------------------------------------------------===//

#include "Simt/Timing/Caches.h"

#include <bit>
#include <emmintrin.h>

namespace kperfir::simt {

namespace {
constexpr unsigned kWayBits = 4; // in Set::order
constexpr uint64_t kEachWay = 0x1111'1111'1111'1111u;
} // namespace

Cache::Cache(uint64_t bytes, unsigned ways, uint8_t *tags)
    : setCount(bytes / (uint64_t(ways) * kLineBytes)),
      leastShift((ways - 1) * kWayBits), sets(reinterpret_cast<Set *>(tags)) {
  for (uint64_t way = 0; way < ways; ++way)
    emptyOrder |= way << (leastShift - kWayBits * way);
}

size_t Cache::tagBytes(uint64_t bytes, unsigned ways) {
  return bytes / (uint64_t(ways) * kLineBytes) * sizeof(Set);
}

void Cache::clear(Set &set) const {
  set = {};
  set.era = era;
}

void Cache::touch(Set &set, unsigned way) const {
  uint64_t order = set.order ^ emptyOrder;
  // The lowest 4 bits that are 0 after the XOR are where the way is.
  uint64_t different = order ^ (kEachWay * way);
  uint64_t zeros = (different - kEachWay) & ~different & (kEachWay << 3);
  auto place = static_cast<unsigned>(std::countr_zero(zeros)) & ~3u;
  uint64_t newer = order & ((uint64_t(1) << place) - 1);
  uint64_t older = order & (~uint64_t(15) << place);
  set.order = (older | newer << kWayBits | way) ^ emptyOrder;
}

Cache::Line Cache::findIn(Set &set, uint64_t line) const {
  // All tags at once, to a bit for each.
  __m128i tag = _mm_set1_epi32(static_cast<int>(line));
  auto tags = reinterpret_cast<const __m128i *>(set.tags);
  __m128i first = _mm_packs_epi32(_mm_cmpeq_epi32(tags[0], tag),
                                  _mm_cmpeq_epi32(tags[1], tag));
  __m128i second = _mm_packs_epi32(_mm_cmpeq_epi32(tags[2], tag),
                                   _mm_cmpeq_epi32(tags[3], tag));
  auto matches =
      static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(first, second)));
  matches &= set.used;
  if (!matches)
    return {};
  auto way = static_cast<unsigned>(std::countr_zero(matches));
  touch(set, way);
  return {&set, way};
}

Cache::Line Cache::allocateIn(Set &set, uint64_t line, Evicted &evicted) const {
  auto way = static_cast<unsigned>((set.order ^ emptyOrder) >> leastShift & 15);
  Line result(&set, way);
  evicted.line = set.tags[way];
  evicted.dirty = result.within(Line::kAllSectors, set.dirty);
  result.drop(Line::kAllSectors);
  set.dirty &= ~result.at(Line::kAllSectors);
  set.tags[way] = static_cast<uint32_t>(line);
  set.used |= static_cast<uint16_t>(1u << way);
  touch(set, way);
  return result;
}

} // namespace kperfir::simt
