//===- Dispatcher.h - Which CTA goes to which SM, and when ----------------===//
//
// Says where the CTAs of a launch go: breadth first at the start, then wherever
// one has left; clusters as a whole. In a sampled launch (Sampling.h) it also
// says whether the chip's time runs, or that of the CTAs which are not
// simulated in detail: those have SMs of their own, behind the chip's.
//
// CTAs may wait for others that a GPU would have placed by then. So if none of
// those without time has ended for long, more of them get room, up to a whole
// wave; and if that does not help either, time runs and the last ones start.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_DISPATCHER_H
#define KPERFIR_SIMT_EXEC_DISPATCHER_H

#include "Simt/Exec/Launch.h"
#include "Simt/Exec/Sampling.h"
#include "Simt/Exec/Sm.h"

#include <memory>
#include <string>
#include <vector>

namespace kperfir::simt {

class Dispatcher {
public:
  /// The most CTAs of an SM that runs them without time: few, so that the host
  /// finds their registers in its caches.
  static constexpr uint64_t kCtasPerUntimedSm = 2;

  /// `sms` are the chip's, `smCount` of them, and then those without time. They
  /// are there when start() is called; more of the latter may come.
  Dispatcher(const Launch &launch, const Occupancy &occupancy,
             unsigned detailedWaves, uint64_t smCount,
             std::vector<std::unique_ptr<Sm>> &sms);

  /// SMs without time that a launch needs to begin with.
  uint64_t firstUntimedSms() const;
  /// So many more would help: CTAs without time seem to wait for some that have
  /// no room.
  uint64_t wantedUntimedSms() const;

  /// Both leave CTAs planned (Sm::plan) that are not of a cluster.
  void start(uint64_t cycle);
  /// After an exchange, which SMs have run to: sees what has departed and says
  /// where what comes next goes.
  void replaceFinished(uint64_t end);
  /// CTAs have been placed, and all have left.
  bool isDone() const;

  bool untimedRun() const { return untimedHaveBegun && untimedLeft; }
  bool timeRuns() const;
  bool isUntimed(size_t sm) const { return sm >= smCount; }

  /// The CTAs without time, by their place in the grid.
  std::vector<CtaRange> untimed() const;
  double cyclesPerWave() const { return waves.cyclesPerWave(); }
  /// Waves that are left out.
  uint64_t untimedWaves() const { return untimedCtas.count() / waveCtas; }
  /// What to know of CTAs without time that do not end, for an error; else an
  /// empty text.
  std::string describeStall() const;
  /// Those with resident CTAs.
  const std::vector<std::shared_ptr<Cluster>> &residentClusters() const {
    return clusters;
  }

private:
  /// Room for a CTA.
  struct Place {
    uint64_t cycle; // from then on
    Sm *sm;
  };

  /// The next CTA of the chip is one behind those without time, which it waits
  /// for.
  bool mustPause();
  void placeNext(Sm &sm, uint64_t cycle);
  void placeUntimed(uint64_t cycle);
  void placeClusters(uint64_t cycle);
  void placeCluster(uint64_t first, uint64_t cycle, size_t begin, size_t end);
  void noteStart(uint64_t place, uint64_t cycle);
  uint64_t residentCtas(size_t begin, size_t end) const;

  const Launch &launch;
  const Occupancy &occupancy;
  const uint64_t smCount;
  std::vector<std::unique_ptr<Sm>> &sms;
  const uint64_t waveCtas; // of a whole wave
  // CTAs by the order in which they are placed (ClusterGrid.h).
  const CtaRange untimedCtas;
  WaveClock waves;
  uint64_t nextCta = 0;
  uint64_t nextUntimed, untimedLeft; // to place; to finish
  bool untimedHaveBegun = false;
  bool lastMayStart = false;  // before those without time have ended
  std::vector<Place> waiting; // for the CTAs behind those without time
  unsigned stepsInVain = 0;   // since a CTA without time has finished
  std::vector<std::shared_ptr<Cluster>> clusters;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_DISPATCHER_H
