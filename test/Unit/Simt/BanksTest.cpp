//===- BanksTest.cpp - Shared-memory bank conflicts -----------------------===//

#include "Simt/Timing/SharedBanks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <set>

using namespace kperfir::simt;

namespace {
unsigned wavefronts(unsigned bytes,
                    const std::function<uint32_t(unsigned)> &offsetOf,
                    LaneMask mask = kFullMask) {
  uint32_t offsets[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    offsets[lane] = offsetOf(lane);
  return sharedWavefronts(offsets, bytes, mask);
}
} // namespace

TEST(SharedBanks, ConsecutiveWordsTakeOneWavefrontPer128Bytes) {
  for (unsigned bytes : {4u, 8u, 16u})
    EXPECT_EQ(
        wavefronts(bytes, [&](unsigned lane) { return 256 + lane * bytes; }),
        bytes / 4);
}

TEST(SharedBanks, SameWordIsBroadcast) {
  EXPECT_EQ(wavefronts(4, [](unsigned) { return 64u; }), 1u);
  EXPECT_EQ(wavefronts(1, [](unsigned lane) { return lane % 4; }), 1u);
}

TEST(SharedBanks, StrideDecidesTheDegree) {
  // A stride of s words meets a bank again after 32 / gcd(s, 32) lanes.
  EXPECT_EQ(wavefronts(4, [](unsigned lane) { return lane * 8; }), 2u);
  EXPECT_EQ(wavefronts(4, [](unsigned lane) { return lane * 16; }), 4u);
  EXPECT_EQ(wavefronts(4, [](unsigned lane) { return lane * 128; }), 32u);
  EXPECT_EQ(wavefronts(4, [](unsigned lane) { return lane * 132; }), 1u);
}

TEST(SharedBanks, InactiveLanesDoNotConflict) {
  EXPECT_EQ(
      wavefronts(4, [](unsigned lane) { return lane * 128; }, 0x0000000F), 4u);
  EXPECT_EQ(wavefronts(4, [](unsigned lane) { return lane * 128; }, 0), 1u);
}

TEST(SharedBanks, SixteenBytesConflictWithinQuarters) {
  // Eight lanes of a quarter, all rows of 128 bytes: the same four banks.
  EXPECT_EQ(wavefronts(16, [](unsigned lane) { return lane * 128; }), 32u);
  // Rows rotated as a swizzle does: none.
  EXPECT_EQ(
      wavefronts(16, [](unsigned lane) { return lane * 128 + lane % 8 * 16; }),
      4u);
}

TEST(SharedBanks, MatrixRowsConflictWithinOneMatrix) {
  uint32_t straight[32], swizzled[32];
  for (uint32_t row = 0; row < 32; ++row) {
    straight[row] = row * 128;
    swizzled[row] = row * 128 + row % 8 * 16;
  }
  EXPECT_EQ(matrixWavefronts(straight, 4), 32u);
  EXPECT_EQ(matrixWavefronts(swizzled, 4), 4u);
  EXPECT_EQ(matrixWavefronts(swizzled, 1), 1u);
}

/// Against counting the words that each bank serves.
TEST(SharedBanks, RandomAccessesAgreeWithACount) {
  std::mt19937 random(3);
  for (unsigned round = 0; round < 2000; ++round) {
    unsigned bytes = 1u << random() % 6, span = 1u << random() % 12;
    unsigned lanesPerGroup = bytes <= 4 ? 32 : 128 / bytes;
    LaneMask mask = round % 3 ? kFullMask : random();
    uint32_t offsets[kWarpSize];
    for (uint32_t &offset : offsets)
      offset = random() % span / bytes * bytes;
    unsigned expected = 0;
    for (unsigned first = 0; first < kWarpSize; first += lanesPerGroup) {
      std::array<std::set<uint32_t>, 32> words;
      for (unsigned lane = first; lane < first + lanesPerGroup; ++lane)
        for (unsigned byte = 0; (mask >> lane & 1) && byte < bytes; ++byte)
          words[(offsets[lane] + byte) / 4 % 32].insert((offsets[lane] + byte) /
                                                        4);
      size_t most = 0;
      for (const std::set<uint32_t> &bank : words)
        most = std::max(most, bank.size());
      expected += static_cast<unsigned>(most);
    }
    ASSERT_EQ(sharedWavefronts(offsets, bytes, mask), std::max(expected, 1u))
        << "round " << round;
  }
}
