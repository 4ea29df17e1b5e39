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
/// helpers. The function must not throw.
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
  void work();
  void helperLoop();

  std::vector<std::thread> helpers;
  std::mutex mutex;
  std::condition_variable wake, done;
  std::function<void(size_t)> current;
  size_t currentCount = 0;
  std::atomic<size_t> next{0};
  uint64_t generation = 0;
  size_t running = 0;
  bool stopping = false;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WORKERPOOL_H
