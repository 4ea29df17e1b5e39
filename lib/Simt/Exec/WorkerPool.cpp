//===- WorkerPool.cpp -----------------------------------------------------===//

#include "Simt/Exec/WorkerPool.h"

#include <algorithm>

namespace kperfir::simt {

WorkerPool::WorkerPool(unsigned threads) : parts(std::max(threads, 1u)) {
  for (size_t i = 1; i < threads; ++i)
    helpers.emplace_back([this, i] { helperLoop(i); });
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

void WorkerPool::work(size_t thread) {
  // Its own part, then what is left of the others.
  for (size_t i = 0; i < parts.size(); ++i) {
    Part &part = parts[(thread + i) % parts.size()];
    for (size_t n = part.next.fetch_add(1); n < part.end;
         n = part.next.fetch_add(1))
      current(n);
  }
}

void WorkerPool::runShared(size_t count, std::function<void(size_t)> function) {
  {
    std::lock_guard lock(mutex);
    current = std::move(function);
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].next = count * i / parts.size();
      parts[i].end = count * (i + 1) / parts.size();
    }
    running = helpers.size();
    ++generation;
  }
  wake.notify_all();
  work(0);
  std::unique_lock lock(mutex);
  done.wait(lock, [this] { return running == 0; });
}

void WorkerPool::helperLoop(size_t thread) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex);
      wake.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping)
        return;
      seen = generation;
    }
    work(thread);
    std::lock_guard lock(mutex);
    if (--running == 0)
      done.notify_one();
  }
}

} // namespace kperfir::simt
