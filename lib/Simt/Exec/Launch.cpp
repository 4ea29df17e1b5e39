//===- Launch.cpp - Occupancy, and the cost of each op --------------------===//

#include "Simt/Exec/Launch.h"

#include <algorithm>

namespace kperfir::simt {

namespace {
uint32_t roundUp(uint32_t value, uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Cycles for which one mma.sync takes a sub-core's tensor core.
uint32_t mmaInterval(const MmaShape &shape, const Chip &chip) {
  uint32_t rate = chip.mmaF16PerCycle;
  switch (shape.typeA) {
  case Type::TF32:
  case Type::F32:
    rate = chip.mmaTf32PerCycle;
    break;
  case Type::S8:
  case Type::U8:
  case Type::U4:
  case Type::S4:
  case Type::B1:
    rate = chip.mmaI8PerCycle;
    break;
  case Type::E4M3:
  case Type::E5M2:
    rate = chip.mmaF8PerCycle;
    break;
  case Type::F64:
    rate = chip.mmaF64PerCycle;
    break;
  default:
    break;
  }
  uint32_t multiplyAdds = uint32_t(shape.m) * shape.n * shape.k;
  return std::max(1u, (multiplyAdds + rate - 1) / rate);
}

void describeSlots(const Program &program, const MicroOp &op, OpCost &cost) {
  cost.numReads = op.numReads;
  cost.numWrites = op.numWrites;
  cost.slotBegin = op.slotBegin;
  cost.few =
      op.numReads <= OpCost::kFewReads && op.numWrites <= OpCost::kFewWrites;
  if (!cost.few)
    return;
  auto alwaysReady = static_cast<uint16_t>(program.numScoreboardSlots);
  std::fill_n(cost.reads, OpCost::kFewReads, alwaysReady);
  std::fill_n(cost.writes, OpCost::kFewWrites, alwaysReady);
  std::ranges::copy(program.reads(op), cost.reads);
  std::ranges::copy(program.writes(op), cost.writes);
}

bool releasesToOtherSms(const MicroOp &op) {
  bool releases = op.sem() == MemSem::Release || op.sem() == MemSem::AcqRel ||
                  op.sem() == MemSem::SeqCst;
  return op.kind == OpKind::Memory && releases && op.scope() != MemScope::Cta;
}
} // namespace

Occupancy computeOccupancy(const Chip &chip, uint32_t warpsPerCta,
                           uint32_t registers, uint32_t sharedBytes) {
  Occupancy result;
  result.byWarps = chip.maxWarpsPerSm / warpsPerCta;
  result.byCtas = chip.maxCtasPerSm;

  uint32_t perThread = std::clamp(registers, 1u, chip.maxRegistersPerThread);
  uint32_t perWarp = roundUp(perThread * kWarpSize, chip.registerUnit);
  // The register file is split over the sub-cores, and so are the warps.
  uint32_t warpsPerSubCore = chip.registersPerSm / kSubCores / perWarp;
  result.byRegisters = warpsPerSubCore * kSubCores / warpsPerCta;

  uint32_t perCta =
      roundUp(sharedBytes + chip.sharedReservedPerCta, chip.sharedUnit);
  result.byShared = sharedBytes > chip.maxSharedBytesPerCta
                        ? 0
                        : chip.sharedBytesPerSm / std::max(perCta, 1u);

  result.ctasPerSm = result.byWarps;
  result.limiter = "warps";
  auto bound = [&](uint32_t ctas, const char *limiter) {
    if (ctas < result.ctasPerSm) {
      result.ctasPerSm = ctas;
      result.limiter = limiter;
    }
  };
  bound(result.byCtas, "cta slots");
  bound(result.byRegisters, "registers");
  bound(result.byShared, "shared memory");

  uint32_t used = result.ctasPerSm * (sharedBytes ? perCta : 0);
  uint32_t carveout = chip.sharedBytesPerSm;
  for (uint32_t size : chip.sharedCarveoutBytes)
    if (size >= used)
      carveout = std::min(carveout, size);
  result.l1Bytes =
      chip.unifiedL1Bytes > carveout ? chip.unifiedL1Bytes - carveout : 0;
  return result;
}

uint32_t registersThatFit(const Chip &chip, uint32_t warpsPerCta,
                          uint32_t estimate) {
  uint32_t warpsPerSubCore = (warpsPerCta + kSubCores - 1) / kSubCores;
  uint32_t perWarp = chip.registersPerSm / kSubCores / warpsPerSubCore;
  return std::min(estimate,
                  perWarp / chip.registerUnit * chip.registerUnit / kWarpSize);
}

std::vector<OpCost> computeCosts(const Program &program, const Chip &chip) {
  std::vector<OpCost> costs(program.ops.size() + 1);
  for (size_t pc = 0; pc < program.ops.size(); ++pc) {
    const MicroOp &op = program.ops[pc];
    const InstructionCost &cost = chip.cost(op.latency);
    OpCost &result = costs[pc];
    result.pipe = op.pipe;
    result.latency = std::max(cost.latency, 1u);
    result.interval = static_cast<uint16_t>(std::min(cost.interval, 0xFFFFu));
    result.free = op.has(kSynthetic);
    bool isMma = op.opcode == Opcode::Mma && op.guard == kNoPredicate;
    result.deferred =
        !op.has(kMeetsProduct) && !op.has(kUnfenced) &&
        (isMma || (op.kind == OpKind::Register && !op.has(kReadsClock)));
    result.allLanes = isMma;
    result.waitsForStores = releasesToOtherSms(op);
    describeSlots(program, op, result);
    if (op.opcode == Opcode::Mma)
      result.interval = static_cast<uint16_t>(
          std::min(mmaInterval(program.mmas[static_cast<size_t>(op.imm)], chip),
                   0xFFFFu));
  }
  return costs;
}

} // namespace kperfir::simt
