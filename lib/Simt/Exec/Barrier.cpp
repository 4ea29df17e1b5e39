//===- Barrier.cpp - bar and barrier --------------------------------------===//
//
// A warp that has to wait leaves the schedule until it is released: nothing
// spins.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kperfir::simt {

void Sm::executeBarrier(Warp &warp, const MicroOp &op, LaneMask active) {
  logComplete(now + launch.costs[warp.pc - 1].latency);
  if (!active) {
    setReady(warp, op, now + 1);
    return;
  }
  switch (op.opcode) {
  case Opcode::BarSync:
  case Opcode::BarArrive:
  case Opcode::BarRed:
    return arriveAtBarrier(warp, op, active);
  case Opcode::BarWarpSync:
    return; // Lanes meet at joins; one path runs at a time.
  case Opcode::ClusterArrive:
  case Opcode::ClusterWait:
    return clusterBarrier(warp, op, active);
  default:
    return mbarrier(warp, op, active);
  }
}

//===----------------------------------------------------------------------===//
// Named barriers
//===----------------------------------------------------------------------===//

void Sm::block(Warp &warp, WarpState state) {
  warp.state = state;
  warp.blockedAt = warp.pc - 1;
  warp.waitLog = currentLog;
  ++warp.cta->blockedWarps;
  cores[warp.subCore].queue.setWake(warp.position, kNever);
}

void Sm::unblock(Warp &warp, uint64_t cycle) {
  --warp.cta->blockedWarps;
  warp.state = WarpState::Running;
  warp.nextIssue = cycle;
  if (warp.waitLog != kNoLog)
    log.complete[warp.waitLog] = cycle;
  warp.meet();
  updateWake(warp);
}

void Sm::checkAligned(const Warp &warp, const MicroOp &op,
                      LaneMask active) const {
  if (op.has(kAligned) && active != warp.alive)
    fail(warp, warp.pc - 1,
         {ErrorKind::Deadlock, "an aligned barrier is executed by " +
                                   std::to_string(std::popcount(active)) +
                                   " of " +
                                   std::to_string(std::popcount(warp.alive)) +
                                   " lanes: the warp has diverged"});
}

void Sm::arriveAtBarrier(Warp &warp, const MicroOp &op, LaneMask active) {
  Cta &cta = *warp.cta;
  unsigned lane = firstLane(active);
  uint32_t id = warp.context.src(op.src[0])[lane];
  uint32_t count = op.src[1] == kNoRow ? 0 : warp.context.src(op.src[1])[lane];
  if (id >= kNumBarriers)
    fail(warp, warp.pc - 1,
         {ErrorKind::OutOfBounds, "there is no barrier " + std::to_string(id)});
  if (op.src[1] != kNoRow &&
      (count == 0 || count % kWarpSize || count > chip.maxThreadsPerCta))
    fail(warp, warp.pc - 1,
         {ErrorKind::Unsupported,
          "barrier " + std::to_string(id) + " expects " +
              std::to_string(count) +
              " threads; need a multiple of the warp size"});
  checkAligned(warp, op, active);

  NamedBarrier &barrier = cta.barriers[id];
  barrier.expected = count;
  barrier.arrived += active == warp.alive
                         ? kWarpSize
                         : static_cast<uint32_t>(std::popcount(active));
  if (op.opcode == Opcode::BarRed) {
    LaneMask votes = warp.context.predicate(op.predSrc());
    if (op.has(kPredSrcNegated))
      votes = ~votes;
    barrier.votes += static_cast<uint32_t>(std::popcount(votes & active));
    barrier.all &= (votes & active) == active;
    barrier.any |= (votes & active) != 0;
  }
  if (op.opcode != Opcode::BarArrive) {
    warp.barrier = id;
    barrier.waiting |= uint64_t(1) << warp.index;
    block(warp, WarpState::Barrier);
  }
  releaseIfComplete(cta, id);
}

bool Sm::releaseIfComplete(Cta &cta, unsigned id) {
  NamedBarrier &barrier = cta.barriers[id];
  uint32_t expected =
      barrier.expected ? barrier.expected : cta.unfinishedWarps * kWarpSize;
  if (barrier.arrived == 0 || barrier.arrived < expected)
    return false;
  NamedBarrier released = std::exchange(barrier, NamedBarrier());
  uint64_t cycle = now + chip.barrierReleaseCycles;
  for (uint64_t rest = released.waiting; rest; rest &= rest - 1) {
    Warp *warp = cta.warps[static_cast<size_t>(std::countr_zero(rest))].get();
    const MicroOp &op = program.ops[warp->blockedAt];
    if (op.opcode == Opcode::BarRed) {
      LaneMask lanes = warp->mask;
      auto reduce = static_cast<BarReduce>(op.sub);
      if (reduce == BarReduce::Popc) {
        for (unsigned lane = 0; lane < kWarpSize; ++lane)
          if (lanes >> lane & 1)
            warp->context.dst(op.dst[0])[lane] = released.votes;
      } else {
        bool value = reduce == BarReduce::And ? released.all : released.any;
        uint32_t &predicate = warp->context.predicates[op.dst[0]];
        predicate = value ? predicate | lanes : predicate & ~lanes;
      }
      for (uint16_t slot : program.writes(op))
        warp->ready[slot] = cycle;
    }
    unblock(*warp, cycle);
  }
  return true;
}

void Sm::releaseForExit(Cta &cta) {
  // Barriers without a count wait for the threads that are left.
  if (cta.unfinishedWarps == 0)
    return;
  for (unsigned id = 0; id < kNumBarriers; ++id)
    if (cta.barriers[id].arrived && cta.barriers[id].expected == 0)
      releaseIfComplete(cta, id);
}

} // namespace kperfir::simt
