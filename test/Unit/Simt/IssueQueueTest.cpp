//===- IssueQueueTest.cpp - Which warp of a sub-core issues next ----------===//

#include "Simt/Exec/IssueQueue.h"

#include <gtest/gtest.h>

#include <random>

using namespace kperfir::simt;

namespace {
constexpr uint32_t kNoWarp = IssueQueue::kNoWarp;
constexpr uint64_t kIdleLsu = 0;

/// The same with loops over cycles of 64 bits.
struct Model {
  std::array<uint64_t, IssueQueue::kCapacity> wake;
  std::array<Pipe, IssueQueue::kCapacity> pipe;
  std::array<uint64_t, kNumPipes> ready{};
  uint64_t lsuReady = 0;

  Model() {
    wake.fill(kNever);
    pipe.fill(Pipe::None);
  }
  uint64_t pipeReady(unsigned i) const {
    uint64_t cycle = ready[static_cast<unsigned>(pipe[i])];
    return sharesLsu(pipe[i]) ? std::max(cycle, lsuReady) : cycle;
  }
  uint64_t able(unsigned i, uint64_t cycle) const {
    return std::max({wake[i], pipeReady(i), cycle});
  }
  uint64_t soonest(uint64_t cycle) const {
    uint64_t result = kNever;
    for (unsigned i = 0; i < wake.size(); ++i)
      result = std::min(result, able(i, cycle));
    return result;
  }
  uint32_t position(uint64_t cycle, uint32_t last) const {
    if (last != kNoWarp && able(last, cycle) == cycle)
      return last;
    for (uint32_t i = 0; i < wake.size(); ++i)
      if (able(i, cycle) == cycle)
        return i;
    return kNoWarp;
  }
  uint64_t lsuWake(uint64_t cycle) const {
    uint64_t result = kNever;
    for (unsigned i = 0; i < wake.size(); ++i)
      if (sharesLsu(pipe[i]))
        result = std::min(result, std::max(wake[i], cycle));
    return result;
  }
  uint64_t nextChange(uint64_t cycle) const {
    uint64_t result = kNever;
    for (unsigned i = 0; i < wake.size(); ++i)
      result = std::min(result, wake[i] > cycle ? wake[i] : pipeReady(i));
    return result;
  }
};
} // namespace

TEST(IssueQueue, GreedyThenOldest) {
  IssueQueue queue;
  for (unsigned position : {2u, 5u, 9u}) {
    queue.setPipe(position, Pipe::Alu);
    queue.setWake(position, 10);
  }
  EXPECT_EQ(queue.choose(3, kNoWarp, kIdleLsu).cycle, 10u);
  EXPECT_EQ(queue.choose(3, kNoWarp, kIdleLsu).position, 2u);
  EXPECT_EQ(queue.choose(3, 9, kIdleLsu).position, 9u);
  EXPECT_EQ(queue.choose(12, 9, kIdleLsu).cycle, 12u);
}

TEST(IssueQueue, PipeThatIsTakenKeepsItsWarpsWaiting) {
  IssueQueue queue;
  queue.setPipe(0, Pipe::Fma);
  queue.setPipe(1, Pipe::Alu);
  queue.setWake(0, 4);
  queue.setWake(1, 6);
  queue.takePipe(Pipe::Fma, 9);
  EXPECT_EQ(queue.choose(1, 0, kIdleLsu).position, 1u);
  EXPECT_EQ(queue.choose(1, 0, kIdleLsu).cycle, 6u);
  queue.setWake(1, kNever);
  EXPECT_EQ(queue.choose(1, 0, kIdleLsu).cycle, 9u);
  EXPECT_EQ(queue.nextChange(1, kIdleLsu), 4u);
  EXPECT_EQ(queue.nextChange(4, kIdleLsu), 9u);
}

TEST(IssueQueue, LoadStoreUnitMayBeBehind) {
  IssueQueue queue;
  queue.setPipe(0, Pipe::Lsu);
  queue.setPipe(1, Pipe::Alu);
  queue.setWake(0, 2);
  queue.setWake(1, 7);
  EXPECT_TRUE(queue.choose(1, 0, kIdleLsu).isFirm);
  IssueQueue::Choice choice = queue.choose(1, 0, 20);
  EXPECT_EQ(choice.position, 1u);
  EXPECT_EQ(choice.cycle, 7u);
  EXPECT_FALSE(choice.isFirm);
  EXPECT_EQ(choice.lsuWake, 2u);
}

TEST(IssueQueue, NothingIssuesByItself) {
  IssueQueue queue;
  EXPECT_EQ(queue.choose(100, kNoWarp, kIdleLsu).cycle, kNever);
  EXPECT_EQ(queue.choose(100, kNoWarp, kIdleLsu).position, kNoWarp);
  EXPECT_EQ(queue.nextChange(100, kIdleLsu), kNever);
}

/// Cycles go far beyond 16 bits, and some wakes are far ahead.
TEST(IssueQueue, RandomUseAgreesWithTheModel) {
  std::mt19937_64 random(7);
  IssueQueue queue;
  Model model;
  uint64_t now = 0;
  uint32_t last = kNoWarp;
  constexpr Pipe kPipes[] = {Pipe::Alu, Pipe::Fma, Pipe::Lsu, Pipe::Async};
  for (unsigned step = 0; step < 100000; ++step) {
    uint64_t far = random() % 50 ? random() % 30 : random() % 100000;
    unsigned position = random() % IssueQueue::kCapacity;
    Pipe pipe = kPipes[random() % 4];
    switch (random() % 4) {
    case 0:
      model.wake[position] = random() % 8 ? now + far : kNever;
      queue.setWake(position, model.wake[position]);
      break;
    case 1:
      model.pipe[position] = pipe;
      queue.setPipe(position, pipe);
      break;
    case 2:
      model.ready[static_cast<unsigned>(pipe)] = now + far % 40;
      queue.takePipe(pipe, now + far % 40);
      break;
    default:
      model.lsuReady = now + random() % 20;
      break;
    }
    uint64_t soonest = model.soonest(now);
    IssueQueue::Choice choice = queue.choose(now, last, model.lsuReady);
    ASSERT_EQ(choice.cycle, soonest) << "step " << step;
    ASSERT_EQ(choice.isFirm, model.lsuWake(now) >= soonest) << "step " << step;
    if (!choice.isFirm) {
      ASSERT_EQ(choice.lsuWake, model.lsuWake(now)) << "step " << step;
    }
    if (choice.position != kNoWarp) {
      ASSERT_EQ(choice.position, model.position(soonest, last));
      last = choice.position;
    } else {
      ASSERT_GT(soonest, now); // It is far.
    }
    if (soonest > now) {
      ASSERT_EQ(queue.nextChange(now, model.lsuReady), model.nextChange(now));
    }
    if (random() % 4 == 0)
      now = soonest == kNever || random() % 2 ? now + random() % 10 : soonest;
  }
}
