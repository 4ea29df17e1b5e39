//===- Control.cpp - Branches, exits, traps, and what errors say ----------===//

#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

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
  cores[warp.subCore].queue.setWake(warp.position, kNever);
  Cta &cta = *warp.cta;
  if (--cta.unfinishedWarps == 0)
    finishedCtas.push_back(&cta);
  if (cta.cluster)
    cta.cluster->mayBeComplete.store(true, std::memory_order_relaxed);
  cta.endCycle = std::max(cta.endCycle, now + 1);
  lastCycle = std::max(lastCycle, now + 1);
  releaseForExit(cta);
}

ErrorSite Sm::siteOf(uint32_t pc) const {
  const Instruction &instruction = program.instructionAt(pc);
  ErrorSite site;
  site.kernel = program.kernel;
  site.opcode = instruction.mnemonic;
  site.ptxLine = instruction.ptxLine;
  if (instruction.file < program.files.size())
    site.file = program.files[instruction.file];
  site.line = instruction.line;
  return site;
}

void Sm::fail(const Warp &warp, uint32_t pc, const Fault &fault) const {
  const Instruction &instruction = program.instructionAt(pc);
  ErrorSite site = siteOf(pc);
  site.cta = warp.cta->linear;
  site.warp = static_cast<int32_t>(warp.index);
  site.lane = fault.lane;
  if (fault.address) {
    site.address = *fault.address;
    site.hasAddress = true;
    site.isGlobal = fault.isGlobal;
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
    for (const WarpHandle &warp : cta->warps) {
      if (warp->state == WarpState::Finished)
        continue;
      if (!first)
        first = warp.get();
      const Instruction &at = program.instructionAt(warp->blockedAt);
      text += " warp " + std::to_string(warp->index) + " waits at `" + at.text +
              "`";
      if (at.line)
        text += " line " + std::to_string(at.line);
      text += ';';
    }
    if (!first)
      continue;
    text.pop_back();
    fail(*first, first->blockedAt, {ErrorKind::Deadlock, text});
  }
}

} // namespace kperfir::simt
