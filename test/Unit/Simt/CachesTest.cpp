//===- CachesTest.cpp - Tag arrays ----------------------------------------===//

#include "Simt/Timing/Caches.h"
#include "Simt/Timing/HostPages.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

namespace {
/// A cache with tags of its own.
class OwnedCache {
public:
  OwnedCache(uint64_t bytes, unsigned ways)
      : tags(Cache::tagBytes(bytes, ways)), cache(bytes, ways, tags.data()) {}
  Cache *operator->() { return &cache; }

private:
  HostPages tags;
  Cache cache;
};
} // namespace

TEST(Cache, FindsWhatWasAllocated) {
  OwnedCache cache(16 * kLineBytes, 4);
  EXPECT_EQ(cache->find(7), nullptr);
  cache->allocate(7).arrive(0b100, 100, 50);
  ASSERT_NE(cache->find(7), nullptr);
  EXPECT_EQ(cache->find(7)->ready(0b100), 100u);
  EXPECT_EQ(cache->find(7)->missing(0b1111), 0b1011);
}

TEST(Cache, SectorsGoFromMissingOverAskedToPresent) {
  Cache::Line line;
  EXPECT_EQ(line.missing(0b0011), 0b0011);
  line.ask(0b0001);
  EXPECT_EQ(line.missing(0b0011), 0b0010);
  EXPECT_EQ(line.unanswered(0b0011), 0b0001);
  line.arrive(0b0001, 100, 50);
  EXPECT_EQ(line.unanswered(0b0011), 0);
  EXPECT_EQ(line.ready(0b0001), 100u);
  line.arrive(0b0010, 130, 60); // Both are on their way.
  EXPECT_EQ(line.ready(0b0001), 130u);
  line.arrive(0b0100, 900, 500); // The others are there.
  EXPECT_EQ(line.ready(0b0011), 0u);
  EXPECT_EQ(line.ready(0b0111), 900u);
  line.drop(0b0010);
  EXPECT_EQ(line.missing(0b0111), 0b0010);
}

TEST(Cache, EvictsTheLeastRecentlyUsed) {
  OwnedCache cache(2 * kLineBytes, 2); // one set
  Cache::Line evicted;
  uint64_t evictedLine = 0;
  cache->allocate(1);
  cache->allocate(2).dirty = 5;
  cache->find(1);
  cache->allocate(3, evicted, evictedLine);
  EXPECT_EQ(evictedLine, 2u);
  EXPECT_EQ(evicted.dirty, 5u);
  EXPECT_NE(cache->find(1), nullptr);
  EXPECT_EQ(cache->find(2), nullptr);
}

TEST(Cache, WithoutBytesDoesNotExist) {
  EXPECT_FALSE(OwnedCache(0, 4)->exists());
  EXPECT_TRUE(OwnedCache(4 * kLineBytes, 4)->exists());
}

TEST(Cache, EvictsTheLeastRecentlyUsedOfSixteenWays) {
  OwnedCache cache(16 * kLineBytes, 16); // one set
  for (uint64_t line = 1; line <= 16; ++line)
    cache->allocate(line);
  for (uint64_t line : {1, 2, 7, 16, 3})
    cache->find(line);
  Cache::Line evicted;
  for (uint64_t expected : {4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 1, 2, 7}) {
    uint64_t evictedLine = 0;
    cache->allocate(100 + expected, evicted, evictedLine);
    EXPECT_EQ(evictedLine, expected);
  }
}
