//===- CoalescerTest.cpp - Sectors of an access ---------------------------===//

#include "Simt/Timing/Coalescer.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

namespace {
constexpr uint64_t kBegin = 0x10010; // as a host may align it
struct Access {
  GlobalMemory memory;
  const GlobalRange *range = nullptr;
  uint64_t address[kWarpSize];

  Access(unsigned stride, unsigned bytes = 1 << 20) {
    memory.map(kBegin, bytes, "x", true);
    range = memory.find(kBegin);
    memory.place(*range);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      address[lane] = kBegin + uint64_t(lane) * stride;
  }
  LineList sectors(unsigned bytes, LaneMask lanes = kFullMask) {
    LineList list;
    coalesce(*range, address, bytes, lanes, isContiguous(address, bytes, lanes),
             list);
    return list;
  }
};
} // namespace

TEST(Coalescer, ConsecutiveWordsAreFourSectorsWhereverTheHostPutThem) {
  Access access(4);
  EXPECT_EQ(access.sectors(4).countSectors(), 4u);
  EXPECT_EQ(access.sectors(4).count, 1u);
}

TEST(Coalescer, ConsecutiveQuadsAreSixteenSectors) {
  Access access(16);
  EXPECT_EQ(access.sectors(16).countSectors(), 16u);
  EXPECT_EQ(access.sectors(16).count, 4u);
}

TEST(Coalescer, StridedLanesTouchASectorEach) {
  Access access(128);
  EXPECT_EQ(access.sectors(4).countSectors(), 32u);
  EXPECT_EQ(access.sectors(4, 0xFF).countSectors(), 8u);
  EXPECT_EQ(access.sectors(4).count, 32u);
}

TEST(Coalescer, SameAddressIsOneSector) {
  Access access(0);
  EXPECT_EQ(access.sectors(4).countSectors(), 1u);
}

TEST(Coalescer, ListHoldsEveryAccessThatPtxHas) {
  Access access(64); // 32 bytes per lane, each across two sectors
  for (uint64_t &address : access.address)
    address += 16;
  EXPECT_EQ(access.sectors(32).countSectors(), 64u);
}

TEST(Coalescer, RangeMustHoldAllLanes) {
  Access access(4, 32 * 4);
  const GlobalRange *hint = nullptr;
  EXPECT_EQ(commonRange(access.memory, access.address, 4, kFullMask, hint),
            access.range);
  EXPECT_EQ(hint, access.range);
  EXPECT_EQ(commonRange(access.memory, access.address, 8, kFullMask, hint),
            nullptr);
  EXPECT_EQ(commonRange(access.memory, access.address, 8, 0x7FFFFFFF, hint),
            access.range);
}
