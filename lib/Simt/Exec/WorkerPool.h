//===- WorkerPool.h - Host threads that share a loop ----------------------===//

#ifndef KPERFIR_SIMT_EXEC_WORKERPOOL_H
#define KPERFIR_SIMT_EXEC_WORKERPOOL_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
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

  template <typename Function> void run(size_t count, Function &&function) {
    if (helpers.empty()) {
      for (size_t i = 0; i < count; ++i)
        function(i);
      return;
    }
    runShared(count, function);
  }

private:
  void runShared(size_t count, std::function<void(size_t)> function);
  void work(size_t thread);
  void helperLoop(size_t thread);

  std::vector<std::thread> helpers;
  std::mutex mutex;
  std::condition_variable wake, done;
  std::function<void(size_t)> current;
  struct alignas(64) Part {
    std::atomic<size_t> next{0};
    size_t end = 0;
  };
  std::vector<Part> parts; // by thread
  uint64_t generation = 0;
  size_t running = 0;
  bool stopping = false;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WORKERPOOL_H
