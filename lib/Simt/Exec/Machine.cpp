//===- Machine.cpp --------------------------------------------------------===//

#include "Simt/Exec/Machine.h"

#include "Simt/Exec/Dispatcher.h"
#include "Simt/Exec/WorkerPool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace kperfir::simt {

namespace {
class Machine {
public:
  Machine(const Launch &launch, MemorySystem &system, LaunchMemory &memory,
          const Occupancy &occupancy, const RunOptions &options)
      : launch(launch), memory(memory), occupancy(occupancy), options(options),
        exchange(launch, system),
        pool(std::min<unsigned>(options.threads, launch.chip->smCount)),
        smCount(std::min<uint64_t>(launch.chip->smCount, launch.ctaCount())),
        dispatcher(launch, occupancy, options.detailedWaves, smCount, sms) {
    addSms();
  }
  ~Machine() {
    for (uint64_t id = 0; id < sms.size(); ++id) {
      sms[id]->requests.clear();
      std::swap(sms[id]->requests, memory.queues[id]);
    }
    sms.clear(); // Warps live in that memory.
    memory.trim();
  }
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  RunResult run() {
    dispatcher.start(options.startCycle + launch.chip->ctaLaunchCycles);
    uint64_t step = launch.chip->l2Latency, end = options.startCycle;
    for (;;) {
      bool untimedRun = dispatcher.untimedRun();
      uint64_t begin = dispatcher.timeRuns() ? nextCycle() : kNever;
      if (begin == kNever && !(untimedRun && canRunUntimed())) {
        if (dispatcher.isDone())
          break;
        for (const std::unique_ptr<Sm> &sm : sms)
          sm->checkDeadlock();
        throw Error(ErrorKind::Deadlock, "no warp can go on");
      }
      uint64_t previous = end;
      if (begin != kNever)
        end = begin + step;
      runSms(end, begin != kNever, untimedRun);
      exchange.run(sms, end);
      finishExchange(end);
      // Where time stands still, those without time take a step all the same.
      callService(begin == kNever ? step : end - previous);
      dispatcher.replaceFinished(end);
      if (uint64_t count = dispatcher.wantedUntimedSms())
        addMoreUntimedSms(count);
      checkLimits();
    }
    return collect();
  }

private:
  // --- SMs ---

  void addSms() {
    // At most, at the same time.
    uint64_t warpsPerSm =
        launch.warpsPerCta *
        std::min<uint64_t>(occupancy.ctasPerSm,
                           (launch.ctaCount() + smCount - 1) / smCount);
    uint64_t untimedSms = dispatcher.firstUntimedSms();
    storages.push_back(std::make_unique<WarpStorage>(
        *launch.program,
        smCount * warpsPerSm + untimedSms * warpsPerUntimedSm(), memory.warps));
    size_t tagBytes = Cache::tagBytes(occupancy.l1Bytes, launch.chip->l1Ways);
    memory.l1Tags.take(smCount * tagBytes);
    if (!memory.l1Tags.isFresh())
      std::memset(memory.l1Tags.data(), 0, smCount * tagBytes);
    for (uint64_t id = 0; id < smCount; ++id)
      addSm(Sm::Mode::Detailed,
            Cache(occupancy.l1Bytes, launch.chip->l1Ways,
                  memory.l1Tags.data() + id * tagBytes),
            id * warpsPerSm);
    addUntimedSms(untimedSms, smCount * warpsPerSm);
  }

  /// In memory of their own, which does not outlast the launch.
  void addMoreUntimedSms(uint64_t count) {
    extraPages.push_back(std::make_unique<ReusedPages>());
    storages.push_back(std::make_unique<WarpStorage>(
        *launch.program, count * warpsPerUntimedSm(), *extraPages.back()));
    addUntimedSms(count, 0);
  }

  uint64_t warpsPerUntimedSm() const {
    return Dispatcher::kCtasPerUntimedSm * launch.warpsPerCta;
  }

  void addUntimedSms(uint64_t count, uint64_t firstWarp) {
    for (uint64_t i = 0; i < count; ++i)
      addSm(Sm::Mode::Untimed, Cache(0, launch.chip->l1Ways, nullptr),
            firstWarp + i * warpsPerUntimedSm());
  }

  void addSm(Sm::Mode mode, const Cache &l1, uint64_t firstWarp) {
    sms.push_back(std::make_unique<Sm>(launch,
                                       static_cast<uint32_t>(sms.size()), mode,
                                       l1, *storages.back(), firstWarp));
    memory.queues.resize(std::max(memory.queues.size(), sms.size()));
    std::swap(sms.back()->requests, memory.queues[sms.size() - 1]);
  }

  // --- Steps ---

  uint64_t nextCycle() const {
    uint64_t next = kNever;
    for (size_t i = 0; i < smCount; ++i)
      next = std::min(next, sms[i]->nextCycle());
    return next;
  }
  bool canRunUntimed() const {
    return std::any_of(
        sms.begin() + static_cast<ptrdiff_t>(smCount), sms.end(),
        [](const std::unique_ptr<Sm> &sm) { return sm->canRunUntimed(); });
  }

  void runSms(uint64_t end, bool timeRuns, bool untimedRun) {
    auto first = static_cast<size_t>(timeRuns ? 0 : smCount);
    size_t last = untimedRun ? sms.size() : smCount;
    if (options.threads > 1) {
      pool.run(last - first, [&](size_t i) {
        sms[first + i]->prefetch(end);
        sms[first + i]->run(end);
      });
      return;
    }
    // While one SM runs, the host fetches what the next ones will touch.
    for (size_t i = first; i < last; ++i) {
      if (i + 1 < last)
        sms[i + 1]->prefetch(end);
      sms[i]->run(end);
    }
  }

  void finishExchange(uint64_t end) {
    bool hasClusters = launch.usesClusters;
    pool.run(sms.size(), [&](size_t i) {
      sms[i]->finishExchange(end);
      if (!hasClusters)
        sms[i]->releaseFinished();
    });
    if (!hasClusters)
      return;
    // A CTA that has ended counts at the barrier of its cluster.
    for (const std::shared_ptr<Cluster> &cluster :
         dispatcher.residentClusters())
      completeClusterBarrier(*cluster, *launch.chip, end);
    for (const std::unique_ptr<Sm> &sm : sms)
      sm->releaseFinished();
  }

  void callService(uint64_t passed) {
    if (!options.service.call)
      return;
    sinceService += passed;
    if (sinceService < options.service.cycles)
      return;
    sinceService = 0;
    options.service.call();
  }

  void checkLimits() {
    uint64_t executed = 0;
    for (const std::unique_ptr<Sm> &sm : sms)
      executed += sm->statistics.warpInstructions();
    if (executed > options.instructionLimit)
      throw Error(ErrorKind::Limit,
                  "the kernel executed more than " +
                      std::to_string(options.instructionLimit) +
                      " warp instructions; is there a loop without end? "
                      "(instruction_limit)" +
                      dispatcher.describeStall(),
                  ErrorSite{.kernel = launch.program->kernel});
    auto time = std::chrono::steady_clock::now();
    if (options.interrupt &&
        time - lastInterrupt > std::chrono::milliseconds(20)) {
      lastInterrupt = time;
      if (options.interrupt())
        throw Interrupted();
    }
  }

  RunResult collect() {
    RunResult result;
    result.endCycle = options.startCycle;
    std::vector<PrintedText> lines;
    for (const std::unique_ptr<Sm> &sm : sms) {
      if (!dispatcher.isUntimed(sm->id))
        result.endCycle = std::max(result.endCycle, sm->lastCycle);
      result.statistics.add(sm->statistics);
      result.log.append(sm->log);
      sm->log = EventLog();
      std::move(sm->printed.begin(), sm->printed.end(),
                std::back_inserter(lines));
    }
    std::stable_sort(lines.begin(), lines.end(),
                     [](const PrintedText &a, const PrintedText &b) {
                       return a.cycle < b.cycle;
                     });
    for (PrintedText &line : lines)
      result.printed.push_back(std::move(line.text));
    result.untimed = dispatcher.untimed();
    if (!result.untimed.empty()) {
      result.cyclesPerWave = dispatcher.cyclesPerWave();
      result.untimedWaves = dispatcher.untimedWaves();
      result.endCycle += static_cast<uint64_t>(
          result.cyclesPerWave * static_cast<double>(result.untimedWaves));
    }
    return result;
  }

  const Launch &launch;
  LaunchMemory &memory;
  const Occupancy &occupancy;
  const RunOptions &options;
  Exchange exchange;
  WorkerPool pool;
  uint64_t smCount; // those of the chip that get a CTA
  std::vector<std::unique_ptr<ReusedPages>> extraPages;
  std::vector<std::unique_ptr<WarpStorage>> storages;
  std::vector<std::unique_ptr<Sm>> sms; // the chip's, then those without time
  Dispatcher dispatcher;
  uint64_t sinceService = 0; // cycles
  std::chrono::steady_clock::time_point lastInterrupt =
      std::chrono::steady_clock::now();
};
} // namespace

RunResult runMachine(const Launch &launch, MemorySystem &system,
                     LaunchMemory &memory, const Occupancy &occupancy,
                     const RunOptions &options) {
  return Machine(launch, system, memory, occupancy, options).run();
}

} // namespace kperfir::simt
