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
  return mixAddress(seed * 0x9E3779B97F4A7C15ull +
                    mixAddress(a * 0x100000001B3ull + b + 1));
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
    : l1(l1Bytes, launch.chip->l1Ways), id(id), launch(launch),
      program(*launch.program), chip(*launch.chip),
      rangeHint(launch.program->ops.size(), nullptr) {}

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

    uint32_t threads =
        std::min(kWarpSize, launch.threadsPerCta - index * kWarpSize);
    warp.start(threads == kWarpSize ? kFullMask : (1u << threads) - 1);
    enlist(warp, cycle);
  }
}

uint32_t Sm::pickSubCore(const Warp &warp) const {
  // The warps of a CTA go to the sub-cores in turn, the first one to the
  // emptiest.
  if (warp.index > 0) {
    uint32_t next = (warp.cta->warps[warp.index - 1]->subCore + 1) % kSubCores;
    if (cores[next].count < kMaxWarpsPerSubCore)
      return next;
  }
  auto emptiest = std::min_element(
      cores.begin(), cores.end(),
      [](const SubCore &a, const SubCore &b) { return a.count < b.count; });
  return static_cast<uint32_t>(emptiest - cores.begin());
}

void Sm::enlist(Warp &warp, uint64_t cycle) {
  warp.subCore = pickSubCore(warp);
  uint64_t key = 0;
  if (launch.seed) {
    uint64_t hash = hashSeed(launch.seed, warp.cta->linear, warp.index);
    key = hash >> 32;
    cycle += hash % 64; // Another interleaving, not only another order.
  }
  warp.priority = static_cast<uint32_t>(key);
  SubCore &core = cores[warp.subCore];
  uint32_t position = core.count++;
  for (; launch.seed && position > 0 &&
         core.warps[position - 1]->priority > warp.priority;
       --position)
    moveWarp(core, position - 1, position);
  core.warps[position] = &warp;
  core.wake[position] = kNever;
  core.pipe[position] = Pipe::None;
  warp.position = position;
  warp.state = WarpState::Running;
  warp.nextIssue = cycle;
  updateWake(warp);
}

void Sm::moveWarp(SubCore &core, uint32_t from, uint32_t to) {
  core.warps[to] = core.warps[from];
  core.wake[to] = core.wake[from];
  core.pipe[to] = core.pipe[from];
  core.warps[to]->position = to;
}

void Sm::delist(Cta &cta) {
  for (SubCore &core : cores) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < core.count; ++i)
      if (core.warps[i]->cta != &cta)
        moveWarp(core, i, kept++);
    core.count = kept;
    if (core.last && core.last->cta == &cta)
      core.last = nullptr;
  }
}

std::vector<std::unique_ptr<Cta>> Sm::takeFinished() {
  std::vector<std::unique_ptr<Cta>> finished;
  if (finishedCtas == 0)
    return finished;
  for (std::unique_ptr<Cta> &cta : ctas) {
    if (cta->unfinishedWarps || cta->pendingEvents)
      continue;
    delist(*cta);
    finished.push_back(std::move(cta));
  }
  std::erase(ctas, nullptr);
  finishedCtas -= static_cast<uint32_t>(finished.size());
  return finished;
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
  if (error || nextCycle() >= end)
    return;
  prefetchWarps(end);
  prefetchOperands(end);
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

void Sm::issueFrom(SubCore &core) {
  for (unsigned freeRun = 0;;) {
    uint32_t picked = core.last ? core.last->position : core.count;
    uint64_t soonest = kNever;
    if (picked == core.count || core.wake[picked] > now ||
        pipeReady(core, core.pipe[picked]) > now) {
      for (picked = 0; picked < core.count; ++picked) {
        uint64_t ready = core.wake[picked];
        if (ready <= now)
          ready = pipeReady(core, core.pipe[picked]);
        if (ready <= now)
          break;
        soonest = std::min(soonest, ready);
      }
    }
    if (picked == core.count) {
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
              "brx.idx takes entry " + std::to_string(index[lane]) +
                  " of a table of " + std::to_string(op.width),
              static_cast<int>(lane)});
      LaneMask same = 0;
      for (unsigned other = lane; other < kWarpSize; ++other)
        if ((active >> other & 1) && index[other] == index[lane])
          same |= 1u << other;
      active &= ~same;
      if (active)
        fail(warp, warp.pc - 1,
             {ErrorKind::Unsupported,
              "brx.idx with different targets within one warp",
              static_cast<int>(lane)});
      warp.branch(
          same,
          program.branchTargets[static_cast<size_t>(op.imm) + index[lane]],
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
           {ErrorKind::Trap,
            op.opcode == Opcode::Trap ? "trap executed" : "brkpt executed",
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
  if (--cta.unfinishedWarps == 0)
    ++finishedCtas;
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
  throw Error(fault.kind, fault.message + " (`" + instruction.text + "`)",
              site);
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
      text += " warp " + std::to_string(warp->index) + " waits at `" + at.text +
              "`";
      if (at.line)
        text += " line " + std::to_string(at.line);
      text += ";";
    }
    text.pop_back();
    fail(*first, first->blockedAt, {ErrorKind::Deadlock, text});
  }
}

} // namespace kperfir::simt
