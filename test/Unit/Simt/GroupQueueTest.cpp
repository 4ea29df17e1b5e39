//===- GroupQueueTest.cpp - Groups of asynchronous work -------------------===//

#include "Simt/Exec/GroupQueue.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

using namespace kperfir::simt;

TEST(GroupQueue, HasAnOpenGroupFromTheStart) {
  GroupQueue<int> queue;
  EXPECT_EQ(queue.size(), 1u);
  queue.back() = 7;
  EXPECT_EQ(queue.front(), 7);
  queue.commit();
  EXPECT_EQ(queue.size(), 2u);
  EXPECT_EQ(queue.front(), 7);
  EXPECT_EQ(queue.back(), 0);
  queue.reset();
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.front(), 0);
}

/// Against a deque whose last element is open.
TEST(GroupQueue, RandomUseAgreesWithADeque) {
  std::mt19937_64 random(7);
  GroupQueue<uint64_t> queue;
  std::deque<uint64_t> expected(1, 0);
  for (unsigned step = 0; step < 20000; ++step) {
    switch (random() % 4) {
    case 0:
      queue.commit();
      expected.push_back(0);
      break;
    case 1:
      if (expected.size() > 1) {
        queue.popFront();
        expected.pop_front();
      }
      break;
    default:
      queue.back() = expected.back() = random();
      break;
    }
    ASSERT_EQ(queue.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_EQ(queue[i], expected[i]) << "step " << step;
  }
}
