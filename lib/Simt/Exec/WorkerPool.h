//===- WorkerPool.h - Host threads that share a loop ----------------------===//
//
// A step of the machine has several short loops, some tens of microseconds
// apart, which is about what it takes to wake a thread that sleeps. So threads
// that wait look for work for a while before they sleep.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_WORKERPOOL_H
#define KPERFIR_SIMT_EXEC_WORKERPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace kperfir::simt {

/// Calls a function for 0..count-1, each once, on the calling thread and its
/// helpers. The function must not throw. A thread takes the same part of the
/// numbers each time, as long as it is not faster than others: what belongs to
/// a number stays in one host core's caches.
class WorkerPool {
public:
  explicit WorkerPool(unsigned threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool &) = delete;
  WorkerPool &operator=(const WorkerPool &) = delete;

  size_t threads() const { return parts.size(); }

  template <typename Function> void run(size_t count, Function &&function) {
    if (helpers.empty()) {
      for (size_t i = 0; i < count; ++i)
        function(i);
      return;
    }
    using Callee = std::remove_reference_t<Function>;
    runShared(count, {[](void *callee, size_t i) {
                        (*static_cast<Callee *>(callee))(i);
                      },
                      &function});
  }

private:
  struct Call {
    void (*invoke)(void *callee, size_t i) = nullptr;
    void *callee = nullptr;
  };
  /// Threads that wait for `isTrue` to be set true by another one.
  class Signal {
  public:
    template <typename Condition> void wait(const Condition &isTrue);
    void notify();

  private:
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<unsigned> sleeping{0};
  };

  void runShared(size_t count, Call call);
  void work(size_t thread);
  void helperLoop(size_t thread);

  std::vector<std::thread> helpers;
  Call current;
  struct alignas(64) Part {
    std::atomic<size_t> next{0};
    size_t end = 0;
  };
  std::vector<Part> parts; // by thread
  /// Counts the loops; the helpers wait for the next one.
  alignas(64) std::atomic<uint64_t> generation{0};
  std::atomic<bool> stopping{false};
  Signal begun;
  alignas(64) std::atomic<size_t> running{0}; // helpers
  Signal ended;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WORKERPOOL_H
