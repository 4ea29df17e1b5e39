//===- Warp.cpp -----------------------------------------------------------===//

#include "Simt/Exec/Warp.h"

#include <algorithm>

namespace kperfir::simt {

void Warp::bind(const Program &program, const WarpFiles &storage,
                const uint8_t *params) {
  ready = storage.ready;
  context = ExecContext();
  context.bind(program);
  context.rowBase[0] = storage.rows;
  context.predicates = storage.predicates;
  context.specials = &specials;
  context.params = params;
}

void Warp::clear(const Program &program) {
  std::fill_n(context.predicates, program.numPredicates, 0u);
  std::fill_n(ready, program.numScoreboardSlots + 1, uint64_t(0));
}

void Warp::start(LaneMask lanes) {
  pc = pending = 0;
  join = kNoPc;
  mask = alive = lanes;
  sides.clear();
  nextIssue = 0;
  waitLog = ~0u;
  unresolvedStores = 0;
  storesDone = 0;
  groups.reset();
  firstGroup = waitedGroups = 0;
  bulkGroups.reset();
  firstBulkGroup = awaitedBulkGroups = 0;
  wgmmaGroups.reset();
  firstWgmmaGroup = 0;
  unfenced.clear();
  hasFencedProducts = false;
  clusterArrivals = 0;
  clusterLanes = 0;
}

void Warp::branch(LaneMask taken, uint32_t target, uint32_t meeting) {
  if (taken == 0)
    return;
  if (taken == mask) {
    pc = target;
    return;
  }
  Side away{target, meeting, taken};
  Side next{pc, meeting, mask & ~taken};
  // All lanes go on at the meeting point once both sides are there. When that
  // is the current side's own join, whoever waits there has them in its mask.
  if (meeting != kNoPc && meeting != join)
    sides.push_back({meeting, join, mask});
  if (away.pc == meeting) {
    enter(next);
  } else if (next.pc == meeting) {
    enter(away);
  } else {
    sides.push_back(away);
    enter(next);
  }
}

void Warp::popSide() {
  while (!sides.empty()) {
    Side side = sides.back();
    sides.pop_back();
    side.mask &= alive;
    if (side.mask == 0)
      continue;
    enter(side);
    if (pc != join)
      return;
  }
}

bool Warp::exitLanes(LaneMask lanes) {
  alive &= ~lanes;
  mask &= ~lanes;
  if (mask)
    return true;
  join = kNoPc;
  popSide();
  return mask != 0;
}

} // namespace kperfir::simt
