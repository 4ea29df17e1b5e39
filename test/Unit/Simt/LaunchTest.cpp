//===- LaunchTest.cpp - Occupancy -----------------------------------------===//

#include "Simt/Exec/Launch.h"

#include "TestChip.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

TEST(Occupancy, EachResourceCanBind) {
  Chip chip = test::chip();
  Occupancy warps = computeOccupancy(chip, 8, 16, 0);
  EXPECT_EQ(warps.ctasPerSm, 8u);
  EXPECT_STREQ(warps.limiter, "warps");

  Occupancy slots = computeOccupancy(chip, 1, 16, 0);
  EXPECT_EQ(slots.ctasPerSm, 32u);
  EXPECT_STREQ(slots.limiter, "cta slots");

  // 128 registers x 32 lanes = 4096 a warp: 4 warps in each sub-core's 16384.
  Occupancy registers = computeOccupancy(chip, 4, 128, 0);
  EXPECT_EQ(registers.ctasPerSm, 4u);
  EXPECT_STREQ(registers.limiter, "registers");

  // 49152 bytes and 1024 reserved: three in 167936.
  Occupancy shared = computeOccupancy(chip, 4, 32, 49152);
  EXPECT_EQ(shared.ctasPerSm, 3u);
  EXPECT_STREQ(shared.limiter, "shared memory");
}

TEST(Occupancy, WhatDoesNotFitIsZero) {
  Chip chip = test::chip();
  EXPECT_EQ(
      computeOccupancy(chip, 4, 32, chip.maxSharedBytesPerCta + 1).ctasPerSm,
      0u);
  EXPECT_EQ(computeOccupancy(chip, 32, 255, 0).ctasPerSm, 0u);
}

TEST(Occupancy, EstimateLeavesRoomForOneCta) {
  Chip chip = test::chip();
  for (uint32_t warps : {1u, 3u, 4u, 15u, 16u, 17u, 32u}) {
    uint32_t registers = registersThatFit(chip, warps, 1000);
    EXPECT_GE(computeOccupancy(chip, warps, registers, 0).byRegisters, 1u)
        << warps << " warps";
  }
  EXPECT_EQ(registersThatFit(chip, 16, 152), 128u);
  EXPECT_EQ(registersThatFit(chip, 16, 120), 120u);
}

TEST(Occupancy, L1GetsWhatSharedMemoryLeaves) {
  Chip chip = test::chip();
  EXPECT_EQ(computeOccupancy(chip, 64, 16, 0).l1Bytes, chip.unifiedL1Bytes);
  // One CTA per SM with 40000 bytes: the 64 KB carve-out.
  EXPECT_EQ(computeOccupancy(chip, 64, 16, 40000).l1Bytes, (192u - 64u) * 1024);
}
