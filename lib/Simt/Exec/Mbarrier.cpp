//===- Mbarrier.cpp - mbarrier --------------------------------------------===//
//
// Those of the CTA itself; on an mbarrier of another one, Cluster.cpp. Bulk
// copies (Bulk.cpp) and cp.async (AsyncCopy.cpp) end phases as well.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Mbarrier.h"
#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kperfir::simt {

static uint64_t wordAt(const Cta &cta, uint32_t offset) {
  uint64_t word;
  std::memcpy(&word, cta.shared.data() + offset, sizeof word);
  return word;
}

/// One that `Sm::readMbarrier` has found to be there.
static Mbarrier mbarrierAt(const Cta &cta, uint32_t offset) {
  return Mbarrier::unpack(wordAt(cta, offset));
}

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
  return wordAt(*warp.cta, offset);
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
  checkInShared(warp, op, active, addresses);
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

void Sm::checkInShared(const Warp &warp, const MicroOp &op, LaneMask active,
                       const Addresses &addresses) const {
  if (op.space != Space::Generic || !op.has(kAddress64))
    return;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    if ((addresses.lane[lane] & kWindowMask) != kSharedWindow)
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds,
            "the generic address of an mbarrier is not one of shared memory",
            static_cast<int>(lane), addresses.lane[lane]});
  }
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
  if (const char *fault = applyToMbarrier(cta, op, offset, count))
    fail(warp, warp.pc - 1,
         {ErrorKind::OutOfBounds, fault, static_cast<int>(lane),
          uint64_t(offset)});
}

const char *Sm::applyToMbarrier(Cta &cta, const MicroOp &op, uint32_t offset,
                                uint32_t count) {
  Mbarrier barrier = mbarrierAt(cta, offset);
  auto arrival = static_cast<MbarrierArrival>(op.sub);
  bool isArrival = op.opcode == Opcode::MbarrierArrive;
  bool isBytes = !isArrival || expectsBytes(arrival);
  if (count > Mbarrier::kCountMask)
    return isBytes ? "more than 1048575 bytes for an mbarrier"
                   : "more than 1048575 arrivals at an mbarrier";
  if (op.opcode == Opcode::MbarrierCompleteTx) {
    completeTransactions(cta, offset, count);
    return nullptr;
  }
  if (isBytes)
    barrier.transactions += count;
  if (isArrival) {
    uint32_t arrivals = isBytes ? 1 : count;
    if (arrivals == 0)
      return "no arrival: the count for the mbarrier is 0";
    if (arrivals > barrier.pending)
      return "more arrivals than the phase of the mbarrier expects";
    if (mayNotComplete(arrival) && arrivals == barrier.pending &&
        !barrier.awaitsBytes())
      return "the arrival ends the phase of the mbarrier, which .noComplete "
             "rules out";
    if (drops(arrival))
      barrier.expected -= std::min(barrier.expected, arrivals);
    writeMbarrier(cta, offset, barrier.pack());
    arriveMbarrier(cta, offset, arrivals);
    return nullptr;
  }
  writeMbarrier(cta, offset, barrier.pack());
  return nullptr;
}

void Sm::arriveMbarrier(Cta &cta, uint32_t offset, uint32_t arrivals) {
  Mbarrier barrier = mbarrierAt(cta, offset);
  barrier.pending -= std::min(barrier.pending, arrivals);
  settleMbarrier(cta, offset, barrier);
}

void Sm::completeTransactions(Cta &cta, uint32_t offset, uint32_t bytes) {
  Mbarrier barrier = mbarrierAt(cta, offset);
  barrier.transactions -= bytes;
  settleMbarrier(cta, offset, barrier);
}

void Sm::settleMbarrier(Cta &cta, uint32_t offset, Mbarrier barrier) {
  bool completed = barrier.completeIfDone();
  writeMbarrier(cta, offset, barrier.pack());
  if (completed)
    wakeWaiters(cta, offset);
}

void Sm::addPendingArrivals(Cta &cta, uint32_t offset, uint32_t arrivals) {
  Mbarrier barrier = mbarrierAt(cta, offset);
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
