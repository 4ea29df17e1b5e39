//===- WakeQueueTest.cpp - Which warps of a sub-core may issue ------------===//

#include "Simt/Exec/WakeQueue.h"

#include <gtest/gtest.h>

#include <random>

using namespace kperfir::simt;

TEST(WakeQueue, WarpsWakeAtTheirCycle) {
  WakeQueue queue;
  queue.set(0, 5);
  queue.set(3, 5);
  queue.set(1, 70); // Beyond the slots.
  EXPECT_EQ(queue.ready(4), 0u);
  EXPECT_EQ(queue.nextAfter(4), 5u);
  EXPECT_EQ(queue.ready(5), 0b1001u);
  EXPECT_EQ(queue.nextAfter(5), 70u);
  EXPECT_EQ(queue.ready(1000), 0b1011u);
  EXPECT_EQ(queue.nextAfter(1000), kNever);
}

TEST(WakeQueue, WarpThatIsSetAgainForgetsItsFormerCycle) {
  for (uint64_t former : {0u, 5u, 500u}) {
    WakeQueue queue;
    queue.set(2, former);
    queue.set(2, kNever);
    EXPECT_EQ(queue.nextAfter(0), kNever);
    EXPECT_EQ(queue.ready(1000), 0u);
  }
}

TEST(WakeQueue, EarlierCycleCanBeAskedForAgain) {
  WakeQueue queue;
  queue.set(0, 10);
  EXPECT_EQ(queue.ready(10), 1u);
  queue.set(1, 4);
  EXPECT_EQ(queue.ready(3), 0u);
  EXPECT_EQ(queue.nextAfter(3), 4u);
  EXPECT_EQ(queue.ready(4), 2u);
  EXPECT_EQ(queue.nextAfter(4), 10u);
}

/// Against an array that is searched.
TEST(WakeQueue, RandomUseAgreesWithASearch) {
  std::mt19937_64 random(7);
  WakeQueue queue;
  std::array<uint64_t, WakeQueue::kCapacity> wake;
  wake.fill(kNever);
  uint64_t now = 0;
  for (unsigned step = 0; step < 20000; ++step) {
    uint64_t ahead[] = {0, 1, random() % 8, random() % 64, random() % 200};
    unsigned position = random() % WakeQueue::kCapacity;
    wake[position] = random() % 8 ? now + ahead[random() % 5] : kNever;
    queue.set(position, wake[position]);
    uint64_t asked = now + ahead[random() % 5];
    unsigned ready = 0;
    uint64_t next = kNever;
    for (unsigned i = 0; i < WakeQueue::kCapacity; ++i) {
      if (wake[i] <= asked)
        ready |= 1u << i;
      else
        next = std::min(next, wake[i]);
    }
    ASSERT_EQ(queue.ready(asked), ready) << "step " << step;
    ASSERT_EQ(queue.nextAfter(asked), next) << "step " << step;
    if (random() % 2)
      now = asked; // Else later ones have been asked for already.
  }
}
