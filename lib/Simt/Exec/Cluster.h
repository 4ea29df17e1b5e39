//===- Cluster.h - CTAs that are resident together ------------------------===//

#ifndef KPERFIR_SIMT_EXEC_CLUSTER_H
#define KPERFIR_SIMT_EXEC_CLUSTER_H

#include "Simt/Exec/Launch.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace kperfir::simt {

class Sm;
struct Cta;

struct ClusterMember {
  Sm *sm = nullptr;
  Cta *cta = nullptr; // null once it has ended
};

/// SMs may read it while they run; but for `mayBeComplete`, only the exchange
/// and the placing of CTAs change it.
struct Cluster {
  std::vector<ClusterMember> members;      // by rank
  uint64_t completedBarriers = 0;          // of barrier.cluster
  uint64_t completedCycle = 0;             // when the last of them was
  std::atomic<bool> mayBeComplete = false; // somebody arrived, or ended
};

/// At the exchange: lets warps go on when all have arrived.
void completeClusterBarrier(Cluster &cluster, const Chip &chip, uint64_t end);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_CLUSTER_H
