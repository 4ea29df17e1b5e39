//===- Sm.cpp - Scheduling and issue --------------------------------------===//

#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

namespace {
/// Instructions without time in a row, before they take a cycle after all:
/// keeps a loop of free instructions from hanging the device.
constexpr unsigned kMaxFreeRun = 1u << 14;
} // namespace

void SmStatistics::add(const SmStatistics &other) {
  threadInstructions += other.threadInstructions;
  l1SectorHits += other.l1SectorHits;
  l1SectorMisses += other.l1SectorMisses;
  sharedAccesses += other.sharedAccesses;
  sharedWavefronts += other.sharedWavefronts;
  sharedConflictWavefronts += other.sharedConflictWavefronts;
  for (unsigned i = 0; i < kNumPipes; ++i)
    issued[i] += other.issued[i];
}

Sm::Sm(const Launch &launch, uint32_t id, Mode mode, const Cache &emptyL1,
       const WarpStorage &storage, size_t firstWarp)
    : l1(emptyL1), id(id), launch(launch), program(*launch.program),
      costs(launch.costs.data()), chip(*launch.chip), storage(storage),
      isUntimed(mode == Mode::Untimed),
      usesAsyncProxy(!program.wgmmas.empty() || !program.bulkCopies.empty()),
      nextWarp(firstWarp), rangeHint(launch.program->ops.size(), nullptr) {
  coreNext.fill(kNever);
}

//===----------------------------------------------------------------------===//
// Scheduling
//===----------------------------------------------------------------------===//

uint64_t Sm::nextCycle() const {
  uint64_t next = events.empty() ? kNever : events.top().cycle;
  for (uint64_t cycle : coreNext)
    next = std::min(next, cycle);
  return planned.empty() ? next : std::min(next, plannedStart());
}

void Sm::run(uint64_t end) {
  if (error)
    return;
  for (const PlannedCta &cta : planned)
    place(cta.linear, cta.cycle);
  planned.clear();
  runEnd = end;
  try {
    isUntimed ? runUntimed(end) : issueUntil(end);
  } catch (const Error &caught) {
    error.emplace(caught);
    errorCycle = now;
  }
  prepareRequests();
}

void Sm::issueUntil(uint64_t end) {
  for (;;) {
    // The first of those that are next at the same cycle.
    uint32_t low = coreNext[1] < coreNext[0] ? 1 : 0;
    uint32_t high = coreNext[3] < coreNext[2] ? 3 : 2;
    uint32_t index = coreNext[high] < coreNext[low] ? high : low;
    uint64_t next = coreNext[index];
    if (!events.empty() && events.top().cycle <= next) [[unlikely]] {
      if (events.top().cycle >= end)
        return;
      now = events.top().cycle;
      runEvents(now);
      continue;
    }
    if (next >= end)
      return;
    now = next;
    issueFrom(index);
  }
}

void Sm::prefetch(uint64_t end) const {
  for (const SubCore &core : cores)
    for (uint32_t i = 0; i < core.count; ++i)
      if (core.queue.wakeOf(i) < end)
        storage.prefetch(core.warps[i]);
}

KPERFIR_SIMT_INLINE uint32_t Sm::chooseNow(uint32_t index) {
  SubCore &core = cores[index];
  IssueQueue::Choice choice = core.queue.choose(now, core.last, lsuReady());
  if (choice.cycle <= now)
    return choice.position;
  core.chosen = kNoWarp;
  coreNext[index] = core.queue.nextChange(now, lsuReady());
  return kNoWarp;
}

KPERFIR_SIMT_INLINE void Sm::planNext(uint32_t index) {
  SubCore &core = cores[index];
  uint64_t &next = coreNext[index];
  core.chosen = kNoWarp;
  next = now + 1;
  if (next >= runEnd)
    return;
  IssueQueue::Choice choice = core.queue.choose(next, core.last, lsuReady());
  // What the others do until then may take the load/store unit; it may also
  // wake a warp (setWake).
  if (!choice.isFirm && choice.lsuWake < runEnd) {
    next = choice.lsuWake;
    return;
  }
  if (choice.cycle < runEnd) {
    next = choice.cycle;
    core.chosen = choice.position;
    return;
  }
  next = core.queue.nextChange(runEnd - 1, lsuReady());
}

KPERFIR_SIMT_INLINE void Sm::setReady(const Warp &warp, const OpCost &cost,
                                      uint64_t cycle) const {
  if (cost.few) {
    for (unsigned i = 0; i < cost.numWrites; ++i)
      warp.ready[cost.writes[i]] = cycle;
    return;
  }
  const uint16_t *slots = program.scoreboard.data() + cost.slotBegin;
  for (unsigned i = 0; i < cost.numWrites; ++i)
    warp.ready[slots[cost.numReads + i]] = cycle;
}

KPERFIR_SIMT_INLINE uint64_t Sm::wakeOf(const Warp &warp,
                                        const OpCost &cost) const {
  const uint64_t *ready = warp.ready;
  uint64_t read, older;
  if (cost.few) {
    read = std::max(std::max(ready[cost.reads[0]], ready[cost.reads[1]]),
                    std::max(ready[cost.reads[2]], ready[cost.reads[3]]));
    older = std::max(ready[cost.writes[0]], ready[cost.writes[1]]);
  } else {
    const uint16_t *slots = program.scoreboard.data() + cost.slotBegin;
    read = older = 0;
    for (unsigned i = 0; i < cost.numReads; ++i)
      read = std::max(read, ready[slots[i]]);
    slots += cost.numReads;
    for (unsigned i = 0; i < cost.numWrites; ++i)
      older = std::max(older, ready[slots[i]]);
  }
  if (older == kUnresolved)
    return kUnresolved;
  // Values are there in program order, but for those that memory has not told
  // yet.
  if (cost.eager) [[unlikely]]
    return read == kUnresolved ? kUnresolved : warp.nextIssue;
  // A result may not arrive before that of an older write to the same register.
  uint64_t wake = std::max(warp.nextIssue, read);
  return older > wake && older - wake > cost.latency ? older - cost.latency
                                                     : wake;
}

KPERFIR_SIMT_INLINE void Sm::issue(SubCore &core, Warp &warp,
                                   const OpCost &cost) {
  currentLog = kNoLog;
  uint64_t done = now, next = now;
  if (!cost.free) [[likely]] {
    ++statistics.issued[static_cast<unsigned>(cost.pipe)];
    core.queue.takePipe(cost.pipe, now + cost.interval);
    done += cost.latency;
    ++next;
  }
  warp.nextIssue = next;
  if (launch.log && !program.ops[warp.pc].has(kSynthetic)) [[unlikely]]
    logIssue(warp, program.ops[warp.pc], warp.pc);
  ++warp.pc;
  if (!cost.deferred || warp.waitedGroups > warp.firstGroup ||
      warp.pc == warp.join || (cost.allLanes && warp.mask != kFullMask))
      [[unlikely]]
    return issueAndExecute(warp, cost);
  setReady(warp, cost, done);
  logComplete(done);
  const OpCost &following = (&cost)[1];
  uint64_t wake = wakeOf(warp, following);
  if (following.waitsForStores || wake == kUnresolved) [[unlikely]]
    return updateWake(warp);
  core.queue.setPipe(warp.position, following.pipe);
  core.queue.setWake(warp.position, wake);
}

void Sm::issueGhosts(SubCore &core) {
  for (uint32_t position = 0; position < core.count; ++position) {
    Warp &warp = *core.warps[position];
    for (unsigned run = 0; run < kMaxFreeRun && costs[warp.pc].ghost &&
                           core.queue.wakeOf(position) <= now;
         ++run) {
      core.chosen = kNoWarp;
      issue(core, warp, costs[warp.pc]);
    }
  }
}

void Sm::issueFrom(uint32_t index) {
  SubCore &core = cores[index];
  if (launch.hasGhosts) [[unlikely]]
    issueGhosts(core);
  uint32_t position = core.chosen;
  if (position == kNoWarp ||
      core.queue.readyOf(core.queue.pipeOf(position), lsuReady()) > now) {
    position = chooseNow(index);
    if (position == kNoWarp)
      return;
  }
  for (unsigned freeRun = 0;;) {
    Warp &warp = *core.warps[position];
    const OpCost &cost = costs[warp.pc];
    core.last = position;
    issue(core, warp, cost);
    // A free one took no issue slot.
    if (!cost.free || ++freeRun == kMaxFreeRun) [[likely]]
      return planNext(index);
    position = chooseNow(index);
    if (position == kNoWarp)
      return;
  }
}

void Sm::issueAndExecute(Warp &warp, const OpCost &cost) {
  issuingFree = cost.free;
  uint32_t pc = warp.pc - 1;
  if (warp.waitedGroups > warp.firstGroup)
    retireGroups(warp, warp.waitedGroups);
  const MicroOp &op = program.ops[pc];
  if (cost.deferred && (!cost.allLanes || warp.mask == kFullMask)) {
    uint64_t done = cost.free ? now : now + cost.latency;
    setReady(warp, cost, done);
    logComplete(done);
    if (warp.pc != warp.join)
      return updateWake(warp);
    executePending(warp, warp.pc); // The mask is about to change.
  } else {
    executePending(warp, pc);
    LaneMask active = warp.context.guardedMask(op, warp.mask);
    countThreads(cost, active);
    execute(warp, op, active);
    if (warp.state != WarpState::Running)
      return; // Finished, or goes on when it is released.
  }
  warp.meet();
  updateWake(warp);
}

void Sm::countThreads(const OpCost &cost, LaneMask active) {
  if (!cost.free)
    statistics.threadInstructions +=
        static_cast<unsigned>(std::popcount(active));
}

void Sm::executePending(Warp &warp, uint32_t end) {
  for (uint32_t pc = warp.pending; pc < end; ++pc) {
    const MicroOp &op = program.ops[pc];
    LaneMask active = warp.context.guardedMask(op, warp.mask);
    countThreads(launch.costs[pc], active);
    if (op.opcode == Opcode::Mma)
      multiply(warp, op);
    else if (active)
      op.handler(warp.context, op, active);
  }
}

void Sm::execute(Warp &warp, const MicroOp &op, LaneMask active) {
  if (op.has(kMeetsProduct)) [[unlikely]]
    checkProductRegisters(warp, op);
  if (op.has(kUnfenced) && active && op.opcode != Opcode::Wgmma) [[unlikely]]
    noteUnfenced(warp, op);
  switch (op.kind) {
  case OpKind::Register: // One that is not deferred: it may read a clock.
    warp.context.clock = now;
    warp.context.globaltimer = chip.cyclesToNs(now);
    if (active)
      op.handler(warp.context, op, active);
    setReady(warp, op,
             issuingFree ? now : now + launch.costs[warp.pc - 1].latency);
    if (currentLog != kNoLog && op.dst[0] != kNoRow)
      log.value[currentLog] = warp.context.dst(op.dst[0])[0];
    return;
  case OpKind::Control:
    return executeControl(warp, op, active);
  case OpKind::Memory:
    return executeMemory(warp, op, active);
  case OpKind::Barrier:
    return executeBarrier(warp, op, active);
  case OpKind::Async:
    return executeAsync(warp, op, active);
  case OpKind::Matrix:
    return executeMatrix(warp, op, active);
  case OpKind::Bulk:
    return executeBulk(warp, op, active);
  case OpKind::Syscall:
    return executeSyscall(warp, op, active);
  }
}

void Sm::setReady(Warp &warp, const MicroOp &op, uint64_t cycle) {
  for (uint16_t slot : program.writes(op))
    warp.ready[slot] = cycle;
  logComplete(cycle);
}

void Sm::setWake(Warp &warp, uint64_t cycle) {
  SubCore &core = cores[warp.subCore];
  core.queue.setWake(warp.position, cycle);
  core.chosen = kNoWarp;
  coreNext[warp.subCore] = std::min(coreNext[warp.subCore], cycle);
}

void Sm::updateWake(Warp &warp) {
  const OpCost &cost = costs[warp.pc];
  uint64_t wake = wakeOf(warp, cost);
  if (cost.waitsForStores)
    wake =
        std::max(wake, warp.unresolvedStores ? kUnresolved : warp.storesDone);
  if (warp.waitedGroups > warp.firstGroup)
    wake = std::max(wake, groupsDone(warp, warp.waitedGroups));

  SubCore &core = cores[warp.subCore];
  core.queue.setPipe(warp.position, cost.pipe);
  if (wake == kUnresolved) {
    warp.state = WarpState::Memory;
    core.queue.setWake(warp.position, kNever);
    core.chosen = kNoWarp;
    return;
  }
  warp.state = WarpState::Running;
  setWake(warp, wake);
}

uint64_t Sm::occupyLsu(uint64_t cycles) {
  uint64_t start = std::max(now, lsuFree);
  lsuFree = start + cycles;
  return start;
}

Sm::Addresses Sm::addressesOf(const Warp &warp, const MicroOp &op) const {
  Addresses addresses;
  auto offset = static_cast<uint64_t>(static_cast<int64_t>(op.imm));
  if (op.has(kAddress64)) {
    const uint64_t *base = warp.context.src64(op.src[0]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      addresses.lane[lane] = base[lane] + offset;
  } else {
    const uint32_t *base = warp.context.src(op.src[0]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      addresses.lane[lane] = static_cast<uint32_t>(base[lane] + offset);
  }
  return addresses;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

void Sm::logIssue(const Warp &warp, const MicroOp &op, uint32_t pc) {
  currentLog = static_cast<uint32_t>(log.size());
  log.sm.push_back(static_cast<int32_t>(id));
  log.cta.push_back(static_cast<int32_t>(warp.cta->linear));
  log.warp.push_back(static_cast<int32_t>(warp.index));
  log.instruction.push_back(static_cast<int32_t>(program.instructionOf[pc]));
  log.opcode.push_back(static_cast<uint16_t>(op.opcode));
  log.issue.push_back(now);
  log.complete.push_back(now + launch.costs[pc].latency);
  log.value.push_back(0);
  log.units.push_back(0);
}

} // namespace kperfir::simt
