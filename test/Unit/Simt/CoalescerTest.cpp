//===- CoalescerTest.cpp - Sectors of an access ---------------------------===//

#include "Simt/Timing/Coalescer.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

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

/// Against a look at every byte: the same sectors, lines in the order of lanes.
TEST(Coalescer, RandomAccessesAgreeWithTheirBytes) {
  std::mt19937 random(5);
  for (unsigned round = 0; round < 2000; ++round) {
    unsigned bytes = 1u << random() % 6, runs = 1u << random() % 6;
    Access access(0);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      access.address[lane] = lane % runs
                                 ? access.address[lane - 1] + bytes
                                 : kBegin + random() % 4096 / bytes * bytes;
    LaneMask lanes = round % 2 ? kFullMask : random() | 1;
    std::vector<uint64_t> order;
    std::map<uint64_t, unsigned> sectors;
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned byte = 0; (lanes >> lane & 1) && byte < bytes; ++byte) {
        uint64_t at = access.range->timingAddress(access.address[lane]) + byte;
        if (!sectors.count(at / kLineBytes))
          order.push_back(at / kLineBytes);
        sectors[at / kLineBytes] |=
            1u << at / kSectorBytes % LineList::kSectorsPerLine;
      }
    LineList list = access.sectors(bytes, lanes);
    ASSERT_EQ(list.count, order.size()) << "round " << round;
    for (unsigned i = 0; i < list.count; ++i) {
      ASSERT_EQ(list.lines[i].line, order[i]) << "round " << round;
      ASSERT_EQ(list.lines[i].sectors, sectors[order[i]]) << "round " << round;
    }
  }
}
