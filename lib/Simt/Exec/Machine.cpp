//===- Machine.cpp --------------------------------------------------------===//

#include "Simt/Exec/Machine.h"

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
        warpsPerSm(
            launch.warpsPerCta *
            std::min<uint64_t>(occupancy.ctasPerSm,
                               (launch.ctaCount() + smCount - 1) / smCount)),
        storage(*launch.program, smCount * warpsPerSm, memory.warps) {
    size_t tagBytes = Cache::tagBytes(occupancy.l1Bytes, launch.chip->l1Ways);
    memory.l1Tags.take(smCount * tagBytes);
    if (!memory.l1Tags.isFresh())
      std::memset(memory.l1Tags.data(), 0, smCount * tagBytes);
    memory.queues.resize(std::max<size_t>(memory.queues.size(), smCount));
    for (uint64_t id = 0; id < smCount; ++id) {
      sms.push_back(
          std::make_unique<Sm>(launch, static_cast<uint32_t>(id),
                               Cache(occupancy.l1Bytes, launch.chip->l1Ways,
                                     memory.l1Tags.data() + id * tagBytes),
                               storage, id * warpsPerSm));
      std::swap(sms.back()->requests, memory.queues[id]);
    }
  }
  ~Machine() {
    for (uint64_t id = 0; id < smCount; ++id) {
      sms[id]->requests.clear();
      std::swap(sms[id]->requests, memory.queues[id]);
    }
    sms.clear(); // Warps live in that memory.
    memory.trim();
  }
  Machine(const Machine &) = delete;
  Machine &operator=(const Machine &) = delete;

  RunResult run() {
    placeFirst();
    uint64_t step = launch.chip->l2Latency;
    for (;;) {
      uint64_t begin = kNever;
      for (const std::unique_ptr<Sm> &sm : sms)
        begin = std::min(begin, sm->nextCycle());
      if (begin == kNever) {
        if (nextCta == launch.ctaCount() && residentCtas() == 0)
          break;
        for (const std::unique_ptr<Sm> &sm : sms)
          sm->checkDeadlock();
        throw Error(ErrorKind::Deadlock, "no warp can go on");
      }
      uint64_t end = begin + step;
      runSms(end);
      exchange.run(sms, end);
      for (const std::shared_ptr<Cluster> &cluster : clusters)
        completeClusterBarrier(*cluster, *launch.chip, end);
      replaceFinished(end);
      checkLimits();
    }
    return collect();
  }

private:
  void runSms(uint64_t end) {
    if (options.threads > 1) {
      pool.run(sms.size(), [&](size_t i) {
        sms[i]->prefetch(end);
        sms[i]->run(end);
      });
      return;
    }
    // While one SM runs, the host fetches what the next ones will touch.
    for (size_t i = 0; i < sms.size(); ++i) {
      if (i + 1 < sms.size())
        sms[i + 1]->prefetch(end);
      sms[i]->run(end);
    }
  }

  /// Breadth first: one CTA per SM, then a second one, and so on.
  void placeFirst() {
    uint64_t start = options.startCycle + launch.chip->ctaLaunchCycles;
    if (launch.usesClusters)
      return placeClusters(start);
    for (uint32_t round = 0; round < occupancy.ctasPerSm; ++round)
      for (const std::unique_ptr<Sm> &sm : sms)
        if (nextCta < launch.ctaCount())
          sm->place(nextCta++, start);
  }

  void replaceFinished(uint64_t end) {
    struct Place {
      uint64_t cycle;
      Sm *sm;
    };
    std::vector<Place> places;
    for (const std::unique_ptr<Sm> &sm : sms) {
      for (std::unique_ptr<Cta> &cta : sm->takeFinished()) {
        places.push_back({cta->endCycle, sm.get()});
        sm->recycle(std::move(cta));
      }
    }
    std::stable_sort(
        places.begin(), places.end(),
        [](const Place &a, const Place &b) { return a.cycle < b.cycle; });
    if (launch.usesClusters && !places.empty())
      placeClusters(
          std::max(end, places.back().cycle + launch.chip->ctaLaunchCycles));
    for (const Place &place : places)
      if (nextCta < launch.ctaCount() && !launch.usesClusters)
        place.sm->place(
            nextCta++,
            std::max(end, place.cycle + launch.chip->ctaLaunchCycles));
  }

  /// Places whole clusters while there is room, each on the SMs with the fewest
  /// CTAs.
  void placeClusters(uint64_t cycle) {
    std::erase_if(clusters, [](const std::shared_ptr<Cluster> &cluster) {
      return std::all_of(cluster->members.begin(), cluster->members.end(),
                         [](const ClusterMember &m) { return !m.cta; });
    });
    uint32_t size = launch.ctasPerCluster();
    while (nextCta < launch.ctaCount() &&
           residentCtas() + size <= sms.size() * occupancy.ctasPerSm) {
      auto cluster = std::make_shared<Cluster>();
      for (uint32_t rank = 0; rank < size; ++rank) {
        Sm &sm = **std::min_element(
            sms.begin(), sms.end(),
            [](const std::unique_ptr<Sm> &a, const std::unique_ptr<Sm> &b) {
              return a->residentCtas() < b->residentCtas();
            });
        Cta &cta = sm.place(ctaOfCluster(launch, nextCta / size, rank), cycle);
        cta.cluster = cluster;
        cta.rank = rank;
        cluster->members.push_back({&sm, &cta});
      }
      nextCta += size;
      clusters.push_back(std::move(cluster));
    }
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
                      "(instruction_limit)",
                  ErrorSite{.kernel = launch.program->kernel});
    auto time = std::chrono::steady_clock::now();
    if (options.interrupt &&
        time - lastInterrupt > std::chrono::milliseconds(20)) {
      lastInterrupt = time;
      if (options.interrupt())
        throw Interrupted();
    }
  }

  uint64_t residentCtas() const {
    uint64_t count = 0;
    for (const std::unique_ptr<Sm> &sm : sms)
      count += sm->residentCtas();
    return count;
  }

  RunResult collect() {
    RunResult result;
    result.endCycle = options.startCycle;
    std::vector<PrintedText> lines;
    for (const std::unique_ptr<Sm> &sm : sms) {
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
    return result;
  }

  const Launch &launch;
  LaunchMemory &memory;
  const Occupancy &occupancy;
  const RunOptions &options;
  Exchange exchange;
  WorkerPool pool;
  uint64_t smCount;    // those that get a CTA
  uint64_t warpsPerSm; // at most, at the same time
  WarpStorage storage;
  std::vector<std::unique_ptr<Sm>> sms;
  std::vector<std::shared_ptr<Cluster>> clusters; // with resident CTAs
  uint64_t nextCta = 0;
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
