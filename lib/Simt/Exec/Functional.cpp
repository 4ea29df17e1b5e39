//===- Functional.cpp - CTAs that run without time ------------------------===//
//
// Executes the CTAs that a sampled launch does not simulate in detail. Their
// instructions have the same effects and checks as all others, but no
// scoreboard, pipes or caches, and every warp goes on for as long as it can.
// What they ask of global memory goes through the exchange, but for loads of
// what this SM has not written since the last one. L2 gets their lines, so that
// what is simulated afterwards finds it as it would.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

namespace {
/// Instructions of a warp before the next warp has its turn, and turns before
/// the next exchange: for warps that wait for each other in loops.
constexpr unsigned kInstructionsPerTurn = 1024, kTurnsPerStep = 16;
} // namespace

bool Sm::canRunUntimed() const {
  if (!events.empty() || !planned.empty())
    return true;
  for (const std::unique_ptr<Cta> &cta : ctas)
    for (const WarpHandle &warp : cta->warps)
      if (warp->state == WarpState::Running)
        return true;
  return false;
}

void Sm::runUntimed(uint64_t end) {
  // Its clocks go on even while those of the chip stand still: a warp may wait
  // for one.
  now = std::max(now + chip.l2Latency, end);
  issuingFree = true;
  currentLog = kNoLog;
  bool hasRun = true;
  for (unsigned turn = 0; turn < kTurnsPerStep && hasRun; ++turn) {
    hasRun = false;
    for (; !events.empty(); hasRun = true) {
      now = std::max(now, events.top().cycle);
      runEvents(now);
    }
    for (const std::unique_ptr<Cta> &cta : ctas) {
      for (const WarpHandle &warp : cta->warps) {
        if (warp->state != WarpState::Running)
          continue;
        runUntimed(*warp);
        hasRun = true;
      }
    }
  }
}

void Sm::runUntimed(Warp &warp) {
  for (unsigned i = 0; i < kInstructionsPerTurn; ++i) {
    const MicroOp &op = program.ops[warp.pc];
    const OpCost &cost = costs[warp.pc];
    if (warp.waitedGroups > warp.firstGroup)
      retireGroups(warp, warp.waitedGroups);
    ++warp.pc;
    LaneMask active = warp.context.guardedMask(op, warp.mask);
    if (!cost.free) {
      ++statistics.issued[static_cast<unsigned>(cost.pipe)];
      statistics.threadInstructions +=
          static_cast<unsigned>(std::popcount(active));
    }
    if (cost.deferred && (!cost.allLanes || warp.mask == kFullMask)) {
      if (op.opcode == Opcode::Mma)
        multiply(warp, op);
      else if (active)
        op.handler(warp.context, op, active);
      warp.meet();
      continue;
    }
    execute(warp, op, active);
    if (warp.state != WarpState::Running)
      return; // Finished, or goes on when it is released.
    warp.meet();
    if (mustWait(warp, op))
      return;
  }
}

bool Sm::mustWait(Warp &warp, const MicroOp &op) {
  bool waits = costs[warp.pc].waitsForStores && warp.unresolvedStores;
  // There is no scoreboard: a result that the exchange brings is awaited here.
  for (uint16_t slot : program.writes(op))
    waits |= warp.ready[slot] == kUnresolved;
  if (warp.waitedGroups > warp.firstGroup)
    waits |= groupsDone(warp, warp.waitedGroups) == kUnresolved;
  if (waits)
    warp.state = WarpState::Memory;
  return waits;
}

void Sm::noteUntimedWrite(const GlobalRange *range) {
  constexpr size_t kFew = 16;
  if (!range || untimedWrites.size() == kFew)
    untimedWritesAny = true;
  else if (std::ranges::find(untimedWrites, range) == untimedWrites.end())
    untimedWrites.push_back(range);
}

bool Sm::isReadableUntimed(const GlobalRange *range) const {
  return range && !untimedWritesAny &&
         std::ranges::find(untimedWrites, range) == untimedWrites.end();
}

bool Sm::loadUntimed(Warp &warp, const MicroOp &op, LaneMask active,
                     const Addresses &addresses, const GlobalRange *range) {
  // An ordered load must see what other SMs have stored.
  if (!isReadableUntimed(range) || op.sem() != MemSem::Weak ||
      op.has(kVolatile))
    return false;
  loadLanes(warp.context, op, active, addresses.lane);
  if (range->isPlaced()) {
    LineList list;
    unsigned bytes = accessBytes(op);
    coalesce(*range, addresses.lane, bytes, active,
             isContiguous(addresses.lane, bytes, active), list);
    noteWarmed(list);
  }
  return true;
}

void Sm::noteWarmed(const LineList &list) {
  warmed.insert(warmed.end(), list.lines, list.lines + list.count);
}

} // namespace kperfir::simt
