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
  warpInstructions += other.warpInstructions;
  threadInstructions += other.threadInstructions;
  l1SectorHits += other.l1SectorHits;
  l1SectorMisses += other.l1SectorMisses;
  sharedAccesses += other.sharedAccesses;
  sharedWavefronts += other.sharedWavefronts;
  sharedConflictWavefronts += other.sharedConflictWavefronts;
  for (unsigned i = 0; i < kNumPipes; ++i)
    issued[i] += other.issued[i];
}

Sm::Sm(const Launch &launch, uint32_t id, uint32_t l1Bytes,
       const WarpStorage &storage, size_t firstFiles)
    : l1(l1Bytes, launch.chip->l1Ways), id(id), launch(launch),
      program(*launch.program), chip(*launch.chip), storage(storage),
      nextFiles(firstFiles), rangeHint(launch.program->ops.size(), nullptr) {}

//===----------------------------------------------------------------------===//
// Scheduling
//===----------------------------------------------------------------------===//

uint64_t Sm::nextCycle() const {
  uint64_t next = events.empty() ? kNever : events.top().cycle;
  for (const SubCore &core : cores)
    next = std::min(next, core.next);
  return next;
}

void Sm::run(uint64_t end) {
  if (error)
    return;
  try {
    for (;;) {
      uint64_t next = nextCycle();
      if (next >= end)
        return;
      now = next;
      if (!events.empty())
        runEvents(now);
      for (SubCore &core : cores)
        if (core.next <= now)
          issueFrom(core);
    }
  } catch (const Error &caught) {
    error.emplace(caught);
    errorCycle = now;
  }
}

void Sm::prefetchWarps(uint64_t end) const {
  for (const SubCore &core : cores)
    for (uint32_t i = 0; i < core.count; ++i)
      if (core.wake[i] < end)
        core.warps[i]->prefetch();
}

void Sm::prefetchOperands(uint64_t end) const {
  for (const SubCore &core : cores)
    for (uint32_t i = 0; i < core.count; ++i)
      if (core.wake[i] < end)
        core.warps[i]->prefetchOperands(program);
}

uint32_t Sm::pick(const SubCore &core, uint64_t &soonest) const {
  if (core.last) {
    uint32_t last = core.last->position;
    if (core.wake[last] <= now && pipeReady(core, core.pipe[last]) <= now)
      return last;
  }
  for (uint32_t i = 0; i < core.count; ++i) {
    uint64_t ready = core.wake[i];
    if (ready <= now)
      ready = pipeReady(core, core.pipe[i]);
    if (ready <= now)
      return i;
    soonest = std::min(soonest, ready);
  }
  return kMaxWarpsPerSubCore;
}

void Sm::issueFrom(SubCore &core) {
  for (unsigned freeRun = 0;;) {
    uint64_t soonest = kNever;
    uint32_t picked = pick(core, soonest);
    if (picked == kMaxWarpsPerSubCore) {
      core.next = soonest;
      return;
    }
    Warp &warp = *core.warps[picked];
    core.last = &warp;
    bool free = launch.costs[warp.pc].free && ++freeRun < kMaxFreeRun;
    issue(warp);
    if (free)
      continue; // It took no issue slot.
    core.next = now + 1;
    return;
  }
}

void Sm::issue(Warp &warp) {
  uint32_t pc = warp.pc;
  const MicroOp &op = program.ops[pc];
  const OpCost &cost = launch.costs[pc];
  LaneMask active = warp.context.guardedMask(op, warp.mask);

  currentLog = kNoLog;
  issuingFree = cost.free;
  if (warp.waitedGroups > warp.firstGroup)
    retireGroups(warp, warp.waitedGroups);
  if (!cost.free) {
    ++statistics.warpInstructions;
    statistics.threadInstructions +=
        static_cast<unsigned>(std::popcount(active));
    ++statistics.issued[static_cast<unsigned>(cost.pipe)];
    SubCore &core = cores[warp.subCore];
    core.pipeFree[static_cast<unsigned>(cost.pipe)] = now + cost.interval;
  }
  if (launch.log && !op.has(kSynthetic))
    logIssue(warp, op, pc);

  warp.pc = pc + 1;
  warp.nextIssue = cost.free ? now : now + 1;
  switch (op.kind) {
  case OpKind::Register:
    if (op.has(kReadsClock)) {
      warp.context.clock = now;
      warp.context.globaltimer = chip.cyclesToNs(now);
    }
    if (active)
      op.handler(warp.context, op, active);
    setReady(warp, op, cost.free ? now : now + cost.latency);
    if (currentLog != kNoLog && op.has(kReadsClock) && op.dst[0] != kNoRow)
      log.value[currentLog] = warp.context.dst(op.dst[0])[0];
    break;
  case OpKind::Control:
    executeControl(warp, op, active);
    break;
  case OpKind::Memory:
    executeMemory(warp, op, active);
    break;
  case OpKind::Barrier:
    executeBarrier(warp, op, active);
    break;
  case OpKind::Async:
    executeAsync(warp, op, active);
    break;
  case OpKind::Matrix:
    executeMatrix(warp, op, active);
    break;
  case OpKind::Bulk:
    executeBulk(warp, op, active);
    break;
  case OpKind::Syscall:
    executeSyscall(warp, op, active);
    break;
  }
  if (warp.state != WarpState::Running)
    return; // Finished, or goes on when it is released.
  warp.meet();
  updateWake(warp);
}

void Sm::setReady(Warp &warp, const MicroOp &op, uint64_t cycle) {
  for (uint16_t slot : program.writes(op))
    warp.ready[slot] = cycle;
  logComplete(cycle);
}

void Sm::setWake(Warp &warp, uint64_t cycle) {
  SubCore &core = cores[warp.subCore];
  core.wake[warp.position] = cycle;
  core.next = std::min(core.next, cycle);
}

void Sm::updateWake(Warp &warp) {
  const MicroOp &op = program.ops[warp.pc];
  const OpCost &cost = launch.costs[warp.pc];
  uint64_t wake = warp.nextIssue;
  for (uint16_t slot : program.reads(op))
    wake = std::max(wake, warp.ready[slot]);
  // A result may not arrive before that of an older write to the same register.
  for (uint16_t slot : program.writes(op)) {
    uint64_t older = warp.ready[slot];
    if (older == kUnresolved)
      wake = kUnresolved;
    else if (wake != kUnresolved && older > wake + cost.latency)
      wake = older - cost.latency;
  }
  bool releases = op.sem() == MemSem::Release || op.sem() == MemSem::AcqRel ||
                  op.sem() == MemSem::SeqCst;
  if (op.kind == OpKind::Memory && releases && op.scope() != MemScope::Cta)
    wake =
        std::max(wake, warp.unresolvedStores ? kUnresolved : warp.storesDone);
  if (warp.waitedGroups > warp.firstGroup)
    wake = std::max(wake, groupsDone(warp, warp.waitedGroups));

  SubCore &core = cores[warp.subCore];
  core.pipe[warp.position] = cost.pipe;
  if (wake == kUnresolved) {
    warp.state = WarpState::Memory;
    core.wake[warp.position] = kNever;
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
// Exchange
//===----------------------------------------------------------------------===//

void Sm::answer(GlobalRequest &request, uint64_t done) {
  Warp &warp = *request.warp;
  if (request.log != kNoLog)
    log.complete[request.log] = done;
  switch (request.kind) {
  case GlobalRequest::Kind::Load:
  case GlobalRequest::Kind::Atomic:
  case GlobalRequest::Kind::Remote:
    for (uint16_t slot : program.writes(program.ops[request.pc]))
      warp.ready[slot] = done;
    if (program.ops[request.pc].opcode == Opcode::Ld)
      break;
    [[fallthrough]];
  case GlobalRequest::Kind::Store:
    --warp.unresolvedStores;
    warp.storesDone = std::max(warp.storesDone, done);
    break;
  case GlobalRequest::Kind::AsyncCopy: {
    AsyncGroup &group = warp.groups[request.group - warp.firstGroup];
    --group.unresolved;
    group.done = std::max(group.done, done);
    break;
  }
  case GlobalRequest::Kind::AsyncArrive:
  case GlobalRequest::Kind::BulkCopy: // answerBulk
    break;
  }
  lastCycle = std::max(lastCycle, done);
  if (warp.state == WarpState::Memory)
    answered.push_back(&warp);
}

void Sm::endExchange() {
  for (Warp *warp : answered)
    if (warp->state == WarpState::Memory)
      updateWake(*warp);
  answered.clear();
  requests.clear();
  unresolvedEvents.clear();
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
}

} // namespace kperfir::simt
