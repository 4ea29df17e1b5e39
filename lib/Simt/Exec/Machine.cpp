//===- Machine.cpp --------------------------------------------------------===//

#include "Simt/Exec/Machine.h"

#include "Simt/Exec/WorkerPool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace kperfir::simt {

namespace {
/// SMs that run CTAs without time, and the most CTAs of each: few, so that the
/// host finds their registers in its caches.
constexpr uint64_t kUntimedSms = 8, kCtasPerUntimedSm = 2;

class Machine {
public:
  Machine(const Launch &launch, MemorySystem &system, LaunchMemory &memory,
          const Occupancy &occupancy, const RunOptions &options)
      : launch(launch), memory(memory), occupancy(occupancy), options(options),
        exchange(launch, system),
        untimed(launch.usesClusters ? UntimedCtas()
                                    : chooseUntimed(launch.ctaCount(), places(),
                                                    options.detailedWaves)),
        waves(places(), std::max(options.detailedWaves, 3u)),
        nextUntimed(untimed.begin), untimedLeft(untimed.count()),
        untimedSms(std::min(kUntimedSms, untimed.count())),
        pool(std::min<unsigned>(options.threads, launch.chip->smCount)),
        smCount(std::min<uint64_t>(launch.chip->smCount, launch.ctaCount())),
        warpsPerSm(
            launch.warpsPerCta *
            std::min<uint64_t>(occupancy.ctasPerSm,
                               (launch.ctaCount() + smCount - 1) / smCount)),
        storage(*launch.program,
                smCount * warpsPerSm +
                    untimedSms * kCtasPerUntimedSm * launch.warpsPerCta,
                memory.warps) {
    size_t tagBytes = Cache::tagBytes(occupancy.l1Bytes, launch.chip->l1Ways);
    memory.l1Tags.take(smCount * tagBytes);
    if (!memory.l1Tags.isFresh())
      std::memset(memory.l1Tags.data(), 0, smCount * tagBytes);
    for (uint64_t id = 0; id < smCount; ++id)
      sms.push_back(std::make_unique<Sm>(
          launch, static_cast<uint32_t>(id), Sm::Mode::Detailed,
          Cache(occupancy.l1Bytes, launch.chip->l1Ways,
                memory.l1Tags.data() + id * tagBytes),
          storage, id * warpsPerSm));
    for (uint64_t i = 0; i < untimedSms; ++i)
      sms.push_back(std::make_unique<Sm>(
          launch, static_cast<uint32_t>(smCount + i), Sm::Mode::Untimed,
          Cache(0, launch.chip->l1Ways, nullptr), storage,
          smCount * warpsPerSm + i * kCtasPerUntimedSm * launch.warpsPerCta));
    memory.queues.resize(std::max(memory.queues.size(), sms.size()));
    for (uint64_t id = 0; id < sms.size(); ++id)
      std::swap(sms[id]->requests, memory.queues[id]);
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
    placeFirst();
    uint64_t step = launch.chip->l2Latency, end = options.startCycle;
    for (;;) {
      bool untimedRun = !waiting.empty();
      // Those without time may wait for what others store: seen by nothing else
      // than that none has ended for long.
      constexpr unsigned kPatience = 4096;
      bool timeRuns = !untimedRun || stepsInVain >= kPatience;
      uint64_t begin = timeRuns ? nextCycle() : kNever;
      if (begin == kNever && !(untimedRun && canRunUntimed())) {
        if (nextCta == launch.ctaCount() && residentCtas() == 0)
          break;
        for (const std::unique_ptr<Sm> &sm : sms)
          sm->checkDeadlock();
        throw Error(ErrorKind::Deadlock, "no warp can go on");
      }
      if (begin != kNever)
        end = begin + step;
      runSms(end, begin != kNever, untimedRun);
      exchange.run(sms, end);
      for (const std::shared_ptr<Cluster> &cluster : clusters)
        completeClusterBarrier(*cluster, *launch.chip, end);
      replaceFinished(end);
      checkLimits();
    }
    return collect();
  }

private:
  /// Room for a CTA.
  struct Place {
    uint64_t cycle; // from then on
    Sm *sm;
  };

  /// CTAs of a whole wave.
  uint64_t places() const {
    return uint64_t(launch.chip->smCount) * occupancy.ctasPerSm;
  }
  bool isUntimed(size_t sm) const { return sm >= smCount; }

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

  /// Breadth first: one CTA per SM, then a second one, and so on.
  void placeFirst() {
    uint64_t start = options.startCycle + launch.chip->ctaLaunchCycles;
    if (launch.usesClusters)
      return placeClusters(start);
    for (uint32_t round = 0; round < occupancy.ctasPerSm; ++round)
      for (size_t i = 0; i < smCount; ++i)
        placeNext(*sms[i], start);
    for (uint64_t round = 0; round < kCtasPerUntimedSm; ++round)
      for (size_t i = smCount; i < sms.size(); ++i)
        placeNext(*sms[i], start);
  }

  /// Gives the SM the next CTA of its kind, if there is one.
  void placeNext(Sm &sm, uint64_t cycle) {
    if (isUntimed(sm.id)) {
      if (nextUntimed < untimed.end)
        sm.place(nextUntimed++, cycle);
      return;
    }
    if (untimedLeft && nextCta == untimed.begin) {
      if (waiting.empty())
        stepsInVain = 0; // Patience is with CTAs that run.
      return waiting.push_back({cycle, &sm});
    }
    if (nextCta == untimed.begin)
      nextCta += untimed.count();
    if (nextCta == launch.ctaCount())
      return;
    if (untimed.count())
      waves.start(nextCta < untimed.begin ? nextCta : nextCta - untimed.count(),
                  cycle);
    sm.place(nextCta++, cycle);
  }

  void replaceFinished(uint64_t end) {
    std::vector<Place> places;
    ++stepsInVain;
    for (const std::unique_ptr<Sm> &sm : sms) {
      for (std::unique_ptr<Cta> &cta : sm->takeFinished()) {
        places.push_back({cta->endCycle, sm.get()});
        if (isUntimed(sm->id)) {
          --untimedLeft;
          stepsInVain = 0;
        }
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
      if (!launch.usesClusters)
        placeNext(*place.sm,
                  std::max(end, place.cycle + launch.chip->ctaLaunchCycles));
    if (untimedLeft == 0)
      for (const Place &place : std::exchange(waiting, {}))
        placeNext(*place.sm, std::max(end, place.cycle));
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
      if (!isUntimed(sm->id))
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
    if (untimed.count()) {
      result.untimed = untimed;
      result.cyclesPerWave = waves.cyclesPerWave();
      result.endCycle += static_cast<uint64_t>(
          result.cyclesPerWave *
          (static_cast<double>(untimed.count()) / double(places())));
    }
    return result;
  }

  const Launch &launch;
  LaunchMemory &memory;
  const Occupancy &occupancy;
  const RunOptions &options;
  Exchange exchange;
  const UntimedCtas untimed;
  WaveClock waves;
  uint64_t nextUntimed, untimedLeft; // to place; to finish
  uint64_t untimedSms;
  WorkerPool pool;
  uint64_t smCount;    // those that get a CTA
  uint64_t warpsPerSm; // at most, at the same time
  WarpStorage storage;
  std::vector<std::unique_ptr<Sm>> sms; // the chip's, then those without time
  std::vector<std::shared_ptr<Cluster>> clusters; // with resident CTAs
  uint64_t nextCta = 0;
  /// For the CTAs behind those without time, which run until they have it.
  std::vector<Place> waiting;
  unsigned stepsInVain = 0; // since a CTA has finished
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
