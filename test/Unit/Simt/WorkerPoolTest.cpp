//===- WorkerPoolTest.cpp -------------------------------------------------===//

#include "Simt/Exec/WorkerPool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

using namespace kperfir::simt;

TEST(WorkerPool, CallsEachIndexOnceInEveryRun) {
  for (unsigned threads : {1u, 2u, 4u}) {
    WorkerPool pool(threads);
    for (size_t count : {0u, 1u, 3u, 1000u}) {
      std::vector<std::atomic<int>> calls(count);
      for (int repeat = 0; repeat < 20; ++repeat)
        pool.run(count, [&](size_t i) { ++calls[i]; });
      for (const std::atomic<int> &n : calls)
        EXPECT_EQ(n, 20);
    }
  }
}

// Helpers look for work for a while, and then sleep.
TEST(WorkerPool, WakesHelpersThatSleep) {
  WorkerPool pool(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<bool> hasHelped = false;
    std::thread::id caller = std::this_thread::get_id();
    pool.run(2, [&](size_t) {
      if (std::this_thread::get_id() != caller)
        hasHelped = true;
      // Neither of the two can take both.
      while (std::this_thread::get_id() == caller && !hasHelped)
        std::this_thread::yield();
    });
    EXPECT_TRUE(hasHelped);
  }
}

TEST(WorkerPool, WakesACallerThatSleeps) {
  WorkerPool pool(2);
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> calls = 0;
  pool.run(2, [&](size_t) {
    while (std::this_thread::get_id() == caller && calls == 0)
      std::this_thread::yield();
    ++calls;
    if (std::this_thread::get_id() != caller)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  EXPECT_EQ(calls, 2);
}
