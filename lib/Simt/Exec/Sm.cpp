//===- Sm.cpp - Scheduling and issue --------------------------------------===//

#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kperfir::simt {

namespace {
/// Instructions without time in a row, before they take a cycle after all:
/// keeps a loop of free instructions from hanging the device.
constexpr unsigned kMaxFreeRun = 1u << 14;

uint64_t hashSeed(uint64_t seed, uint64_t a, uint64_t b) {
  return mixAddress(seed * 0x9E3779B97F4A7C15ull + mixAddress(a * 0x100000001B3ull + b + 1));
}
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

Sm::Sm(const Launch &launch, uint32_t id, uint32_t l1Bytes)
    : l1(l1Bytes, launch.chip->l1Ways), id(id), launch(launch), program(*launch.program),
      chip(*launch.chip), rangeHint(launch.program->ops.size(), nullptr) {}

//===----------------------------------------------------------------------===//
// Residency
//===----------------------------------------------------------------------===//

void Sm::place(uint64_t linearCta, uint64_t cycle) {
  std::unique_ptr<Cta> cta;
  if (spareCtas.empty()) {
    cta = std::make_unique<Cta>();
    for (uint32_t i = 0; i < launch.warpsPerCta; ++i)
      cta->warps.push_back(std::make_unique<Warp>());
  } else {
    cta = std::move(spareCtas.back());
    spareCtas.pop_back();
  }
  initialise(*cta, linearCta, cycle);
  ctas.push_back(std::move(cta));
}

void Sm::initialise(Cta &cta, uint64_t linear, uint64_t cycle) {
  cta.linear = static_cast<uint32_t>(linear);
  cta.shared.reset(launch.sharedBytes);
  cta.localBytes = program.localBytes;
  cta.local.assign(size_t(cta.localBytes) * launch.threadsPerCta, 0);
  cta.barriers = {};
  cta.waiters.clear();
  cta.threads = launch.threadsPerCta;
  cta.unfinishedWarps = launch.warpsPerCta;
  cta.blockedWarps = cta.pendingEvents = 0;
  cta.endCycle = 0;

  const auto &[gridX, gridY, gridZ] = launch.grid;
  uint32_t ctaid[3] = {static_cast<uint32_t>(linear % gridX),
                       static_cast<uint32_t>(linear / gridX % gridY),
                       static_cast<uint32_t>(linear / gridX / gridY)};
  for (uint32_t index = 0; index < launch.warpsPerCta; ++index) {
    Warp &warp = *cta.warps[index];
    warp.cta = &cta;
    warp.index = index;
    warp.prepare(program, launch.params.data());

    WarpSpecials &specials = warp.specials;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      uint32_t thread = index * kWarpSize + lane;
      specials.tid[0][lane] = thread % launch.block[0];
      specials.tid[1][lane] = thread / launch.block[0] % launch.block[1];
      specials.tid[2][lane] = thread / launch.block[0] / launch.block[1];
    }
    for (unsigned i = 0; i < 3; ++i) {
      specials.ntid[i] = launch.block[i];
      specials.ctaid[i] = ctaid[i];
      specials.nctaid[i] = launch.grid[i];
      specials.clusterid[i] = ctaid[i];
      specials.nclusterid[i] = launch.grid[i];
    }
    specials.warpid = index;
    specials.nwarpid = launch.warpsPerCta;
    specials.smid = id;
    specials.nsmid = chip.smCount;
    specials.gridid = launch.gridId;
    specials.dynamicSmemBytes = launch.dynamicSharedBytes;
    specials.totalSmemBytes = launch.sharedBytes;

    uint32_t threads = std::min(kWarpSize, launch.threadsPerCta - index * kWarpSize);
    warp.start(threads == kWarpSize ? kFullMask : (1u << threads) - 1);
    enlist(warp, cycle);
  }
}

void Sm::enlist(Warp &warp, uint64_t cycle) {
  // The warps of a CTA are pinned to the sub-cores in turn.
  warp.subCore = warp.index % kSubCores;
  uint64_t key = 0;
  if (launch.seed) {
    uint64_t hash = hashSeed(launch.seed, warp.cta->linear, warp.index);
    key = hash >> 32;
    cycle += hash % 64; // Another interleaving, not only another order.
  }
  warp.priority = static_cast<uint32_t>(key);
  SubCore &core = cores[warp.subCore];
  size_t position = core.warps.size();
  if (launch.seed)
    while (position > 0 && core.warps[position - 1]->priority > warp.priority)
      --position;
  auto at = static_cast<std::ptrdiff_t>(position);
  core.warps.insert(core.warps.begin() + at, &warp);
  core.wake.insert(core.wake.begin() + at, kNever);
  core.pipe.insert(core.pipe.begin() + at, Pipe::None);
  for (size_t i = position; i < core.warps.size(); ++i)
    core.warps[i]->position = static_cast<uint32_t>(i);
  warp.state = WarpState::Running;
  warp.nextIssue = cycle;
  updateWake(warp);
}

void Sm::delist(Cta &cta) {
  for (SubCore &core : cores) {
    size_t kept = 0;
    for (size_t i = 0; i < core.warps.size(); ++i) {
      if (core.warps[i]->cta == &cta)
        continue;
      core.warps[kept] = core.warps[i];
      core.wake[kept] = core.wake[i];
      core.pipe[kept] = core.pipe[i];
      core.warps[kept]->position = static_cast<uint32_t>(kept);
      ++kept;
    }
    core.warps.resize(kept);
    core.wake.resize(kept);
    core.pipe.resize(kept);
    if (core.last && core.last->cta == &cta)
      core.last = nullptr;
  }
}

std::vector<std::unique_ptr<Cta>> Sm::takeFinished() {
  for (std::unique_ptr<Cta> &cta : ctas) {
    if (cta->unfinishedWarps || cta->pendingEvents)
      continue;
    delist(*cta);
    finished.push_back(std::move(cta));
  }
  std::erase(ctas, nullptr);
  return std::exchange(finished, {});
}

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

uint64_t Sm::pipeReady(const SubCore &core, Pipe pipe) const {
  uint64_t ready = core.pipeFree[static_cast<unsigned>(pipe)];
  // The load/store unit is shared; issue stalls when it is too far behind.
  if (pipe == Pipe::Lsu || pipe == Pipe::Async)
    if (lsuFree > ready + chip.lsuQueueCycles)
      ready = lsuFree - chip.lsuQueueCycles;
  return ready;
}

void Sm::issueFrom(SubCore &core) {
  for (unsigned freeRun = 0;;) {
    Warp *picked = nullptr;
    uint64_t soonest = kNever;
    if (core.last) {
      uint32_t i = core.last->position;
      if (core.wake[i] <= now && pipeReady(core, core.pipe[i]) <= now)
        picked = core.last;
    }
    for (size_t i = 0; !picked && i < core.warps.size(); ++i) {
      if (core.wake[i] > now) {
        soonest = std::min(soonest, core.wake[i]);
        continue;
      }
      uint64_t pipe = pipeReady(core, core.pipe[i]);
      if (pipe <= now)
        picked = core.warps[i];
      else
        soonest = std::min(soonest, pipe);
    }
    if (!picked) {
      core.next = soonest;
      return;
    }
    core.last = picked;
    bool free = launch.costs[picked->pc].free && ++freeRun < kMaxFreeRun;
    issue(*picked);
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
    statistics.threadInstructions += static_cast<unsigned>(std::popcount(active));
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
    wake = std::max(wake, warp.unresolvedStores ? kUnresolved : warp.storesDone);
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
// Control
//===----------------------------------------------------------------------===//

void Sm::executeControl(Warp &warp, const MicroOp &op, LaneMask active) {
  const OpCost &cost = launch.costs[warp.pc - 1];
  logComplete(now + cost.latency);
  switch (op.opcode) {
  case Opcode::Bra:
    if (active) {
      warp.branch(active, static_cast<uint32_t>(op.imm), op.reconvergence());
      if (!cost.free)
        warp.nextIssue = now + chip.branchTakenCycles;
    }
    return;
  case Opcode::BrxIdx: {
    const uint32_t *index = warp.context.src(op.src[0]);
    while (active) {
      unsigned lane = static_cast<unsigned>(std::countr_zero(active));
      if (index[lane] >= op.width)
        fail(warp, warp.pc - 1,
             {ErrorKind::OutOfBounds,
              "brx.idx takes entry " + std::to_string(index[lane]) + " of a table of " +
                  std::to_string(op.width),
              static_cast<int>(lane)});
      LaneMask same = 0;
      for (unsigned other = lane; other < kWarpSize; ++other)
        if ((active >> other & 1) && index[other] == index[lane])
          same |= 1u << other;
      active &= ~same;
      if (active)
        fail(warp, warp.pc - 1,
             {ErrorKind::Unsupported, "brx.idx with different targets within one warp",
              static_cast<int>(lane)});
      warp.branch(same, program.branchTargets[static_cast<size_t>(op.imm) + index[lane]],
                  op.reconvergence());
    }
    warp.nextIssue = now + chip.branchTakenCycles;
    return;
  }
  case Opcode::Ret:
    exitLanes(warp, active);
    return;
  case Opcode::Trap:
  case Opcode::Brkpt:
    if (active)
      fail(warp, warp.pc - 1,
           {ErrorKind::Trap, op.opcode == Opcode::Trap ? "trap executed" : "brkpt executed",
            std::countr_zero(active)});
    return;
  case Opcode::NanoSleep:
    if (active) {
      uint32_t longest = 0;
      const uint32_t *time = warp.context.src(op.src[0]);
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        if (active >> lane & 1)
          longest = std::max(longest, time[lane]);
      warp.nextIssue = now + 1 + uint64_t(longest) * chip.clockMhz / 1000;
      logComplete(warp.nextIssue);
    }
    return;
  default:
    return; // Nop
  }
}

void Sm::exitLanes(Warp &warp, LaneMask lanes) {
  if (lanes && !warp.exitLanes(lanes))
    finish(warp);
}

void Sm::finish(Warp &warp) {
  warp.state = WarpState::Finished;
  cores[warp.subCore].wake[warp.position] = kNever;
  Cta &cta = *warp.cta;
  --cta.unfinishedWarps;
  cta.endCycle = std::max(cta.endCycle, now + 1);
  lastCycle = std::max(lastCycle, now + 1);
  releaseForExit(cta);
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
    for (uint16_t slot : program.writes(program.ops[request.pc]))
      warp.ready[slot] = done;
    if (request.kind == GlobalRequest::Kind::Load)
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

void Sm::fail(const Warp &warp, uint32_t pc, const Fault &fault) const {
  const Instruction &instruction = program.instructionAt(pc);
  ErrorSite site;
  site.kernel = program.kernel;
  site.opcode = instruction.mnemonic;
  site.ptxLine = instruction.ptxLine;
  if (instruction.file < program.files.size())
    site.file = program.files[instruction.file];
  site.line = instruction.line;
  site.cta = warp.cta->linear;
  site.warp = static_cast<int32_t>(warp.index);
  site.lane = fault.lane;
  if (fault.address) {
    site.address = *fault.address;
    site.hasAddress = true;
  }
  throw Error(fault.kind, fault.message + " (`" + instruction.text + "`)", site);
}

void Sm::checkDeadlock() const {
  for (const std::unique_ptr<Cta> &cta : ctas) {
    if (!cta->unfinishedWarps || cta->blockedWarps < cta->unfinishedWarps ||
        cta->pendingEvents)
      continue;
    std::string text = "CTA can never go on:";
    const Warp *first = nullptr;
    for (const std::unique_ptr<Warp> &warp : cta->warps) {
      if (warp->state == WarpState::Finished)
        continue;
      if (!first)
        first = warp.get();
      const Instruction &at = program.instructionAt(warp->blockedAt);
      text += " warp " + std::to_string(warp->index) + " waits at `" + at.text + "`";
      if (at.line)
        text += " line " + std::to_string(at.line);
      text += ";";
    }
    text.pop_back();
    fail(*first, first->blockedAt, {ErrorKind::Deadlock, text});
  }
}

} // namespace kperfir::simt
