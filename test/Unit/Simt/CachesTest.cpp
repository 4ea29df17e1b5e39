//===- CachesTest.cpp - Tag arrays ----------------------------------------===//

#include "Simt/Timing/Caches.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

TEST(Cache, FindsWhatWasAllocated) {
  Cache cache(16 * kLineBytes, 4);
  Cache::Line evicted;
  EXPECT_EQ(cache.find(7), nullptr);
  cache.allocate(7, evicted).ready[2] = 100;
  ASSERT_NE(cache.find(7), nullptr);
  EXPECT_EQ(cache.find(7)->ready[2], 100u);
  EXPECT_EQ(cache.find(7)->ready[1], kNever);
}

TEST(Cache, EvictsTheLeastRecentlyUsed) {
  Cache cache(2 * kLineBytes, 2); // one set
  Cache::Line evicted;
  cache.allocate(1, evicted);
  cache.allocate(2, evicted).dirty = 5;
  cache.find(1);
  cache.allocate(3, evicted);
  EXPECT_EQ(evicted.tag, 2u);
  EXPECT_EQ(evicted.dirty, 5u);
  EXPECT_NE(cache.find(1), nullptr);
  EXPECT_EQ(cache.find(2), nullptr);
}

TEST(Cache, InvalidateForgetsAll) {
  Cache cache(16 * kLineBytes, 4);
  Cache::Line evicted;
  cache.allocate(7, evicted);
  cache.invalidate();
  EXPECT_EQ(cache.find(7), nullptr);
}

TEST(Cache, WithoutBytesDoesNotExist) {
  EXPECT_FALSE(Cache(0, 4).exists());
  EXPECT_TRUE(Cache(4 * kLineBytes, 4).exists());
}
