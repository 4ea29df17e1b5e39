//===- WorkerPool.cpp -----------------------------------------------------===//

#include "Simt/Exec/WorkerPool.h"

namespace kperfir::simt {

WorkerPool::WorkerPool(unsigned threads) {
  for (unsigned i = 1; i < threads; ++i)
    helpers.emplace_back([this] { helperLoop(); });
}

WorkerPool::~WorkerPool() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  wake.notify_all();
  for (std::thread &helper : helpers)
    helper.join();
}

void WorkerPool::work() {
  for (size_t i = next.fetch_add(1); i < currentCount; i = next.fetch_add(1))
    current(i);
}

void WorkerPool::runShared(size_t count, std::function<void(size_t)> function) {
  {
    std::lock_guard lock(mutex);
    current = std::move(function);
    currentCount = count;
    next = 0;
    running = helpers.size();
    ++generation;
  }
  wake.notify_all();
  work();
  std::unique_lock lock(mutex);
  done.wait(lock, [this] { return running == 0; });
}

void WorkerPool::helperLoop() {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping)
        return;
      seen = generation;
    }
    work();
    std::lock_guard lock(mutex);
    if (--running == 0)
      done.notify_one();
  }
}

} // namespace kperfir::simt
