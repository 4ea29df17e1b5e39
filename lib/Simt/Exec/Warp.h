//===- Warp.h - State of one warp, and how its lanes diverge and meet -----===//

#ifndef KPERFIR_SIMT_EXEC_WARP_H
#define KPERFIR_SIMT_EXEC_WARP_H

#include "Simt/Exec/Bulk.h"
#include "Simt/Exec/GroupQueue.h"
#include "Simt/Exec/Program.h"
#include "Simt/Timing/Caches.h"

#include <bit>
#include <memory>
#include <vector>

namespace kperfir::simt {

struct Cta;

inline unsigned firstLane(LaneMask lanes) {
  return static_cast<unsigned>(std::countr_zero(lanes));
}

enum class WarpState : uint8_t {
  Running,  // issues at `wake`
  Memory,   // needs an answer of the next exchange with L2
  Barrier,  // at a bar.sync
  Mbarrier, // in mbarrier.try_wait
  Bulk,     // in cp.async.bulk.wait_group
  Cluster,  // in barrier.cluster.wait
  Finished,
};

/// Shared bytes that one lane's cp.async fills.
struct AsyncSpan {
  uint32_t offset;
  uint32_t bytes;
};

/// Copies between two cp.async.commit_group.
struct AsyncGroup {
  uint32_t unresolved = 0; // copies whose completion is not known yet
  uint64_t done = 0;       // completion of those that are
  uint64_t asked = 0;      // when the load/store unit took the last of them
  std::vector<AsyncSpan> spans;
};

/// Where one warp keeps what its instructions touch.
struct WarpFiles {
  uint32_t *rows = nullptr;
  uint32_t *predicates = nullptr;
  uint64_t *ready = nullptr; // scoreboard
};

/// A register that an op has touched, by its slot in the scoreboard.
struct UnfencedRegister {
  uint16_t slot;
  uint32_t pc; // of the op
};

class Warp {
public:
  /// Binds the warp to its registers; once, before its first CTA.
  void bind(const Program &program, const WarpFiles &storage,
            const uint8_t *params);
  /// Forgets what a former CTA has done to scoreboard and predicates. Registers
  /// keep their values: a kernel that reads before it writes sees those of
  /// another CTA, the same in every run.
  void clear(const Program &program);

  // --- Control flow: an immediate-post-dominator stack ---
  void start(LaneMask lanes);
  /// `taken` lanes go to `target`, the others to the next pc; all meet at
  /// `join`. Expects `pc` to be that next pc.
  void branch(LaneMask taken, uint32_t target, uint32_t join);
  /// Ends lanes. False when none is left.
  bool exitLanes(LaneMask lanes);
  /// To be called after every instruction that was executed: goes on with the
  /// next side, or with all lanes, when a side has reached its join.
  void meet() {
    if (pc == join)
      popSide();
    pending = pc;
  }

  // What every issue touches comes first, in few of the host's cache lines.
  uint32_t pc = 0;
  uint32_t join = kNoPc;
  /// Instructions from here to `pc` have issued, but are not executed yet.
  uint32_t pending = 0;
  LaneMask mask = 0;  // lanes that execute
  LaneMask alive = 0; // lanes that have not ended
  uint64_t nextIssue = 0;
  uint64_t *ready = nullptr; // scoreboard: when a slot may be read
  uint32_t subCore = 0;
  uint32_t position = 0; // in the sub-core's arrays
  ExecContext context;
  /// Groups below this serial must complete before the warp may go on.
  uint64_t waitedGroups = 0;
  uint64_t firstGroup = 0; // serial number of groups.front()
  uint64_t storesDone = 0;
  uint32_t unresolvedStores = 0;
  WarpState state = WarpState::Finished;
  Cta *cta = nullptr;
  uint32_t index = 0;    // in the CTA
  uint32_t priority = 0; // order among warps, from the seed

  GroupQueue<AsyncGroup> groups; // of cp.async
  uint32_t blockedAt = 0; // pc of the instruction that blocks, for reports
  GroupQueue<BulkGroup> bulkGroups; // of cp.async.bulk
  uint64_t firstBulkGroup = 0;      // serial number of bulkGroups.front()
  /// What cp.async.bulk.wait_group waits for: groups below this serial.
  uint64_t awaitedBulkGroups = 0;
  bool awaitsBulkReads = false;
  /// Per group of wgmma: when its products are there.
  GroupQueue<uint64_t> wgmmaGroups;
  uint64_t firstWgmmaGroup = 0; // serial number of wgmmaGroups.front()
  /// What ops marked kUnfenced have touched since the last wgmma.fence.
  std::vector<UnfencedRegister> unfenced;
  bool hasFencedProducts = false; // has executed a wgmma.fence
  uint64_t clusterArrivals = 0;   // barrier.cluster.arrive executed
  uint64_t clusterArrivalCycle = 0;
  LaneMask clusterLanes = 0; // that have arrived while the warp is diverged
  uint32_t barrier = 0;
  uint32_t waitLog = ~0u; // log entry to complete when the wait ends
  WarpSpecials specials;

  static constexpr size_t kHotBytes = 192; // of the members that come first

private:
  struct Side {
    uint32_t pc;
    uint32_t join;
    LaneMask mask;
  };
  void popSide();
  void enter(const Side &side) {
    pc = side.pc;
    join = side.join;
    mask = side.mask;
  }

  std::vector<Side> sides;
};

/// A Warp in memory of a WarpStorage.
struct DestroyInPlace {
  void operator()(Warp *warp) const { warp->~Warp(); }
};
using WarpHandle = std::unique_ptr<Warp, DestroyInPlace>;

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WARP_H
