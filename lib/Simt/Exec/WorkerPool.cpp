//===- WorkerPool.cpp -----------------------------------------------------===//

#include "Simt/Exec/WorkerPool.h"

#include <algorithm>
#include <chrono>
#include <immintrin.h>

namespace kperfir::simt {

namespace {
/// How long a thread looks before it sleeps: a few times what a wake-up costs.
/// It yields between looks: on a machine with other work, the thread that it
/// waits for may need its core.
constexpr std::chrono::microseconds kLookFor(200);

/// Whether the condition has become true meanwhile.
template <typename Condition> bool lookFor(const Condition &isTrue) {
  constexpr unsigned kLooksInARow = 64;
  auto begin = std::chrono::steady_clock::now();
  do {
    for (unsigned i = 0; i < kLooksInARow; ++i) {
      if (isTrue())
        return true;
      _mm_pause();
    }
    std::this_thread::yield();
  } while (std::chrono::steady_clock::now() - begin < kLookFor);
  return false;
}
} // namespace

template <typename Condition>
void WorkerPool::Signal::wait(const Condition &isTrue) {
  if (lookFor(isTrue))
    return;
  // Either this thread sees the change below, or notify() sees it sleep.
  std::unique_lock lock(mutex);
  ++sleeping;
  changed.wait(lock, isTrue);
  --sleeping;
}

void WorkerPool::Signal::notify() {
  if (sleeping == 0)
    return;
  {
    std::lock_guard lock(mutex);
  }
  changed.notify_all();
}

WorkerPool::WorkerPool(unsigned threads) : parts(std::max(threads, 1u)) {
  for (size_t i = 1; i < threads; ++i)
    helpers.emplace_back([this, i] { helperLoop(i); });
}

WorkerPool::~WorkerPool() {
  stopping = true;
  begun.notify();
  for (std::thread &helper : helpers)
    helper.join();
}

void WorkerPool::work(size_t thread) {
  // Its own part, then what is left of the others.
  for (size_t i = 0; i < parts.size(); ++i) {
    Part &part = parts[(thread + i) % parts.size()];
    for (size_t n = part.next.fetch_add(1); n < part.end;
         n = part.next.fetch_add(1))
      current.invoke(current.callee, n);
  }
}

void WorkerPool::runShared(size_t count, Call call) {
  current = call;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].next = count * i / parts.size();
    parts[i].end = count * (i + 1) / parts.size();
  }
  running = helpers.size();
  ++generation;
  begun.notify();
  work(0);
  ended.wait([this] { return running == 0; });
}

void WorkerPool::helperLoop(size_t thread) {
  for (uint64_t seen = 0;; ++seen) {
    begun.wait([&] { return stopping || generation != seen; });
    if (stopping)
      return;
    work(thread);
    if (--running == 0)
      ended.notify();
  }
}

} // namespace kperfir::simt
