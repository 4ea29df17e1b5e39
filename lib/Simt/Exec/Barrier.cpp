//===- Barrier.cpp - bar, barrier and mbarrier
//-----------------------------===//
//
// A warp that has to wait leaves the schedule until it is released: nothing
// spins.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Mbarrier.h"
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

//===----------------------------------------------------------------------===//
// mbarrier
//===----------------------------------------------------------------------===//

uint64_t Sm::readMbarrier(const Warp &warp, unsigned lane, uint64_t address,
                          bool initialised) const {
  const SharedMemory &shared = warp.cta->shared;
  auto offset = static_cast<uint32_t>(address);
  if (!shared.inBounds(offset, Mbarrier::kBytes))
    fail(warp, warp.pc - 1,
         {ErrorKind::OutOfBounds,
          "mbarrier at shared memory address " + std::to_string(offset) +
              " is outside of the CTA's " + std::to_string(shared.size()) +
              " bytes",
          static_cast<int>(lane), uint64_t(offset)});
  if (offset % Mbarrier::kBytes)
    fail(warp, warp.pc - 1,
         {ErrorKind::Misaligned, "mbarrier is not aligned to 8 bytes",
          static_cast<int>(lane), uint64_t(offset)});
  if (initialised && !shared.isWritten(offset, Mbarrier::kBytes))
    fail(warp, warp.pc - 1,
         {ErrorKind::Uninitialised, "mbarrier has not been initialised",
          static_cast<int>(lane), uint64_t(offset)});
  uint64_t word;
  std::memcpy(&word, shared.data() + offset, sizeof word);
  return word;
}

void Sm::writeMbarrier(Cta &cta, uint32_t offset, uint64_t word) {
  std::memcpy(cta.shared.data() + offset, &word, sizeof word);
  cta.shared.setWritten(offset, Mbarrier::kBytes);
}

void Sm::mbarrier(Warp &warp, const MicroOp &op, LaneMask active) {
  uint64_t done =
      accountShared(1, 1) + chip.cost(LatencyClass::Mbarrier).latency;
  setReady(warp, op, currentIsFree() ? now : done);
  if (op.opcode == Opcode::MbarrierPendingCount) {
    const uint64_t *states = warp.context.src64(op.src[1]);
    for (LaneMask rest = active; rest; rest &= rest - 1)
      warp.context.dst(op.dst[0])[firstLane(rest)] =
          Mbarrier::unpack(states[firstLane(rest)]).pending;
    return;
  }
  Addresses addresses = addressesOf(warp, op);
  LaneMask remote =
      launch.usesClusters ? splitRemote(warp, active, addresses) : 0;
  bool isWait = op.opcode == Opcode::MbarrierTestWait ||
                op.opcode == Opcode::MbarrierTryWait;
  if (isWait && !remote)
    return waitMbarrier(warp, op, active, addresses);
  if (remote)
    updateRemoteMbarrier(warp, op, remote, addresses);
  active &= ~remote;
  for (LaneMask rest = active; rest; rest &= rest - 1)
    updateMbarrier(warp, op, firstLane(rest), addresses.lane[firstLane(rest)]);
}

void Sm::updateMbarrier(Warp &warp, const MicroOp &op, unsigned lane,
                        uint64_t address) {
  Cta &cta = *warp.cta;
  auto offset = static_cast<uint32_t>(address);
  uint64_t word =
      readMbarrier(warp, lane, address, op.opcode != Opcode::MbarrierInit);
  uint32_t count = op.src[1] == kNoRow ? 1 : warp.context.src(op.src[1])[lane];
  if (op.opcode == Opcode::MbarrierInit) {
    if (count == 0 || count > Mbarrier::kCountMask)
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds, "mbarrier count must be 1 to 1048575",
            static_cast<int>(lane), uint64_t(offset)});
    return writeMbarrier(cta, offset, Mbarrier{count, count, 0, 0}.pack());
  }
  if (op.opcode == Opcode::MbarrierInval)
    return cta.shared.clearWritten(offset, Mbarrier::kBytes);
  if (op.opcode == Opcode::MbarrierArrive && op.dst[0] != kNoRow)
    warp.context.dst64(op.dst[0])[lane] = word; // The state before the arrival.
  if (!applyToMbarrier(cta, op, offset, count))
    fail(warp, warp.pc - 1,
         {ErrorKind::OutOfBounds,
          "more arrivals than the phase of the mbarrier expects",
          static_cast<int>(lane), uint64_t(offset)});
}

bool Sm::applyToMbarrier(Cta &cta, const MicroOp &op, uint32_t offset,
                         uint32_t count) {
  uint64_t word;
  std::memcpy(&word, cta.shared.data() + offset, sizeof word);
  Mbarrier barrier = Mbarrier::unpack(word);
  if (op.opcode == Opcode::MbarrierCompleteTx) {
    completeTransactions(cta, offset, count);
    return true;
  }
  if (op.opcode == Opcode::MbarrierExpectTx) {
    barrier.transactions += count;
    writeMbarrier(cta, offset, barrier.pack());
    return true;
  }
  auto arrival = static_cast<MbarrierArrival>(op.sub);
  if (expectsBytes(arrival)) {
    barrier.transactions += count;
    count = 1;
  }
  if (count > barrier.pending)
    return false;
  if (drops(arrival))
    barrier.expected -= std::min(barrier.expected, count);
  writeMbarrier(cta, offset, barrier.pack());
  arriveMbarrier(cta, offset, count);
  return true;
}

void Sm::arriveMbarrier(Cta &cta, uint32_t offset, uint32_t arrivals) {
  uint64_t word;
  std::memcpy(&word, cta.shared.data() + offset, sizeof word);
  Mbarrier barrier = Mbarrier::unpack(word);
  barrier.pending -= std::min(barrier.pending, arrivals);
  bool completed = barrier.completeIfDone();
  writeMbarrier(cta, offset, barrier.pack());
  if (completed)
    wakeWaiters(cta, offset);
}

void Sm::completeTransactions(Cta &cta, uint32_t offset, uint32_t bytes) {
  uint64_t word;
  std::memcpy(&word, cta.shared.data() + offset, sizeof word);
  Mbarrier barrier = Mbarrier::unpack(word);
  barrier.transactions -= bytes;
  bool completed = barrier.completeIfDone();
  writeMbarrier(cta, offset, barrier.pack());
  if (completed)
    wakeWaiters(cta, offset);
}

void Sm::addPendingArrivals(Cta &cta, uint32_t offset, uint32_t arrivals) {
  uint64_t word;
  std::memcpy(&word, cta.shared.data() + offset, sizeof word);
  Mbarrier barrier = Mbarrier::unpack(word);
  barrier.pending += arrivals;
  writeMbarrier(cta, offset, barrier.pack());
}

void Sm::waitMbarrier(Warp &warp, const MicroOp &op, LaneMask active,
                      const Addresses &addresses) {
  LaneMask completed = 0;
  bool same = true;
  uint32_t awaited = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    Mbarrier barrier =
        Mbarrier::unpack(readMbarrier(warp, lane, addresses.lane[lane], true));
    uint32_t phase =
        op.has(kParity)
            ? warp.context.src(op.src[1])[lane] & 1
            : Mbarrier::unpack(warp.context.src64(op.src[1])[lane]).phase;
    if (barrier.phase != phase)
      completed |= 1u << lane;
    same &= addresses.lane[lane] == addresses.lane[firstLane(active)];
    same &= rest == active || phase == awaited;
    awaited = phase;
  }
  uint32_t &predicate = warp.context.predicates[op.dst[0]];
  predicate = (predicate & ~active) | completed;
  if (op.opcode != Opcode::MbarrierTryWait || completed || !same)
    return;
  // try_wait may suspend the thread: it returns when the phase has ended.
  predicate |= active;
  warp.cta->waiters.push_back(
      {&warp, static_cast<uint32_t>(addresses.lane[firstLane(active)]),
       awaited});
  block(warp, WarpState::Mbarrier);
}

void Sm::wakeWaiters(Cta &cta, uint32_t offset) {
  uint64_t cycle = now + chip.mbarrierWakeCycles;
  std::vector<MbarrierWaiter> others;
  for (const MbarrierWaiter &waiter : std::exchange(cta.waiters, {})) {
    if (waiter.offset != offset) {
      others.push_back(waiter);
      continue;
    }
    for (uint16_t slot : program.writes(program.ops[waiter.warp->blockedAt]))
      waiter.warp->ready[slot] = cycle;
    unblock(*waiter.warp, cycle);
  }
  cta.waiters = std::move(others);
}

} // namespace kperfir::simt
