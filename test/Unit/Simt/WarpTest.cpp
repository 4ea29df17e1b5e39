//===- WarpTest.cpp - Divergence and reconvergence ------------------------===//

#include "Simt/Exec/Warp.h"

#include <gtest/gtest.h>

using namespace kperfir::simt;

namespace {
Warp started(LaneMask lanes = kFullMask) {
  Warp warp;
  warp.start(lanes);
  return warp;
}

/// The engine advances the pc before a branch.
void branchAt(Warp &warp, uint32_t pc, LaneMask taken, uint32_t target,
              uint32_t join) {
  ASSERT_EQ(warp.pc, pc);
  warp.pc = pc + 1;
  warp.branch(taken, target, join);
  warp.meet();
}

void step(Warp &warp) {
  ++warp.pc;
  warp.meet();
}
} // namespace

TEST(Warp, UniformBranchesDoNotDiverge) {
  Warp warp = started();
  branchAt(warp, 0, kFullMask, 7, 9);
  EXPECT_EQ(warp.pc, 7u);
  EXPECT_EQ(warp.join, kNoPc);
  branchAt(warp, 7, 0, 20, 30);
  EXPECT_EQ(warp.pc, 8u);
}

TEST(Warp, SidesOfAnIfMeet) {
  // 0: bra 3 | 1,2: else | 3,4: then | 5: join. Branch from 2 to 5.
  Warp warp = started();
  branchAt(warp, 0, 0xFF, 3, 5);
  EXPECT_EQ(warp.pc, 1u);
  EXPECT_EQ(warp.mask, 0xFFFFFF00u);
  step(warp);
  branchAt(warp, 2, warp.mask, 5, 5);
  EXPECT_EQ(warp.pc, 3u); // The other side is next.
  EXPECT_EQ(warp.mask, 0xFFu);
  step(warp);
  step(warp);
  EXPECT_EQ(warp.pc, 5u);
  EXPECT_EQ(warp.mask, kFullMask);
}

TEST(Warp, LanesLeavingALoopWaitBehindIt) {
  // 0: body, 1: bra 0 while more, 2: join. Lane i leaves after i + 1 rounds.
  Warp warp = started();
  unsigned rounds = 0;
  while (warp.pc != 2) {
    ASSERT_EQ(warp.pc, 0u);
    ++rounds;
    step(warp);
    LaneMask more = rounds >= 32 ? 0 : ~0u << rounds;
    branchAt(warp, 1, more & warp.mask, 0, 2);
  }
  EXPECT_EQ(rounds, 32u);
  EXPECT_EQ(warp.mask, kFullMask);
  EXPECT_EQ(warp.join, kNoPc);
}

TEST(Warp, NestedBranchWithTheSameJoin) {
  Warp warp = started(0xF);
  branchAt(warp, 0, 0x3, 10, 20); // 0xC goes on at 1
  branchAt(warp, 1, 0x4, 15, 20); // 0x8 goes on at 2
  EXPECT_EQ(warp.mask, 0x8u);
  warp.pc = 19;
  step(warp);
  EXPECT_EQ(warp.pc, 15u);
  EXPECT_EQ(warp.mask, 0x4u);
  warp.pc = 19;
  step(warp);
  EXPECT_EQ(warp.pc, 10u);
  EXPECT_EQ(warp.mask, 0x3u);
  warp.pc = 19;
  step(warp);
  EXPECT_EQ(warp.pc, 20u);
  EXPECT_EQ(warp.mask, 0xFu);
}

TEST(Warp, ExitingLanesDoNotComeBack) {
  Warp warp = started(0xF);
  branchAt(warp, 0, 0x3, 10, 20);
  EXPECT_TRUE(warp.exitLanes(warp.mask)); // lanes 2, 3
  EXPECT_EQ(warp.pc, 10u);
  EXPECT_EQ(warp.mask, 0x3u);
  warp.pc = 19;
  step(warp);
  EXPECT_EQ(warp.pc, 20u);
  EXPECT_EQ(warp.mask, 0x3u);
  EXPECT_FALSE(warp.exitLanes(warp.mask));
}

TEST(Warp, SidesThatOnlyMeetAtTheExitRunToTheirEnds) {
  Warp warp = started(0xF);
  branchAt(warp, 0, 0x1, 50, kNoPc);
  EXPECT_EQ(warp.mask, 0xEu);
  EXPECT_TRUE(warp.exitLanes(warp.mask));
  EXPECT_EQ(warp.pc, 50u);
  EXPECT_FALSE(warp.exitLanes(warp.mask));
}
