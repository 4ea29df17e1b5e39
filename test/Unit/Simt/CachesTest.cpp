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
  EXPECT_FALSE(cache->find(7));
  cache->allocate(7).arrive(0b100, 100, 50);
  ASSERT_TRUE(cache->find(7));
  EXPECT_EQ(cache->find(7).ready(0b100), 100u);
  EXPECT_EQ(cache->find(7).missing(0b1111), 0b1011);
  EXPECT_FALSE(cache->find(0)); // An empty way is no line 0.
}

TEST(Cache, SectorsGoFromMissingOverAskedToPresent) {
  OwnedCache cache(16 * kLineBytes, 16); // one set
  cache->allocate(1).arrive(0b1111, 70, 50);
  Cache::Line line = cache->allocate(2);
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
  line.put(0b0010, 800); // Joins those on their way.
  EXPECT_EQ(line.ready(0b0010), 900u);
  EXPECT_EQ(cache->find(1).missing(0b1111), 0);
  EXPECT_EQ(cache->find(1).ready(0b1111), 70u);
}

TEST(Cache, SectorsThatAreHereAtOnceAreNotWaitedFor) {
  OwnedCache cache(2 * kLineBytes, 2);
  Cache::Line line = cache->allocate(1);
  line.put(0b0001, 100);
  EXPECT_EQ(line.ready(0b0001), 0u);
  EXPECT_EQ(line.missing(0b0011), 0b0010);
}

TEST(Cache, EvictsTheLeastRecentlyUsed) {
  OwnedCache cache(2 * kLineBytes, 2); // one set
  Cache::Evicted evicted;
  cache->allocate(1);
  cache->allocate(2).soil(5);
  cache->find(1);
  Cache::Line line = cache->findOrAllocate(3, evicted);
  EXPECT_EQ(evicted.line, 2u);
  EXPECT_EQ(evicted.dirty, 5u);
  EXPECT_EQ(line.missing(0b1111), 0b1111);
  EXPECT_TRUE(cache->find(1));
  EXPECT_FALSE(cache->find(2));
  cache->allocate(4, evicted);
  EXPECT_EQ(evicted.line, 3u);
  EXPECT_EQ(evicted.dirty, 0u);
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
  Cache::Evicted evicted;
  for (uint64_t expected : {4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 1, 2, 7}) {
    cache->allocate(100 + expected, evicted);
    EXPECT_EQ(evicted.line, expected);
  }
}
