//===- WorkerPoolTest.cpp -------------------------------------------------===//

#include "Simt/Exec/WorkerPool.h"

#include <gtest/gtest.h>

#include <atomic>

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
