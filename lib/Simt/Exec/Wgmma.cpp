//===- Wgmma.cpp - wgmma.mma_async and its groups -------------------------===//
//
// The four warps of a warpgroup issue a wgmma each for its own 16 rows, and
// each has a tensor core of its own, so that a warp's part stands for itself.
// Values are computed at issue, and the product counts as in flight until its
// warp has waited for it. What programs must leave alone meanwhile, and fence
// before, is checked in WgmmaChecks.cpp.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/MatrixDescriptor.h"
#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>
#include <string>

namespace kperfir::simt {

namespace baseline {
WgmmaKernel findWgmma(const WgmmaShape &shape);
} // namespace baseline
namespace avx2 {
WgmmaKernel findWgmma(const WgmmaShape &shape);
} // namespace avx2
namespace avx512 {
WgmmaKernel findWgmma(const WgmmaShape &shape);
} // namespace avx512

WgmmaKernel findWgmmaKernel(const WgmmaShape &shape, HostIsa isa) {
  switch (isa) {
  case HostIsa::Avx512:
    return avx512::findWgmma(shape);
  case HostIsa::Avx2:
    return avx2::findWgmma(shape);
  case HostIsa::Baseline:
    break;
  }
  return baseline::findWgmma(shape);
}

/// Copies `count` rows of A, or columns of B, from `first` on.
ProductInFlight::Operand Sm::gatherWgmma(const Warp &warp, uint64_t descriptor,
                                         bool isTransposed, unsigned first,
                                         unsigned count, uint8_t *to) const {
  MatrixDescriptor matrix(descriptor);
  const SharedMemory &shared = warp.cta->shared;
  if (matrix.baseOffset)
    fail(warp, warp.pc - 1,
         {ErrorKind::Unsupported,
          "a matrix descriptor with a base offset is not supported"});
  ProductInFlight::Operand operand{descriptor, ~0u, 0};
  auto unit = [&](uint32_t offset) {
    if (!shared.inBounds(offset, kUnitBytes))
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds,
            "a matrix descriptor reaches shared memory address " +
                std::to_string(offset) + ", outside of the CTA's " +
                std::to_string(shared.size()) + " bytes",
            -1, uint64_t(offset)});
    if (!shared.isWritten(offset, kUnitBytes))
      failUnwritten(warp, 0, offset, kUnitBytes);
    if (shared.isHidden(offset, kUnitBytes))
      fail(warp, warp.pc - 1,
           {ErrorKind::Race,
            "what threads have stored at shared memory address " +
                std::to_string(offset) +
                " may not be visible to the product: a fence.proxy.async is "
                "missing",
            -1, uint64_t(offset)});
    operand.begin = std::min(operand.begin, offset);
    operand.end = std::max(operand.end, offset + kUnitBytes);
    return shared.data() + offset;
  };
  if (!isTransposed)
    forEachUnit(matrix, false, first, count,
                [&](uint32_t offset, unsigned i, unsigned half) {
                  std::memcpy(to + i * kWgmmaKBytes + half * kUnitBytes,
                              unit(offset), kUnitBytes);
                });
  else
    forEachUnit(matrix, true, first, count,
                [&](uint32_t offset, unsigned i, unsigned k) {
                  const uint8_t *from = unit(offset);
                  for (unsigned j = 0; j < kUnitBytes / 2; ++j)
                    std::memcpy(to + (i + j) * kWgmmaKBytes + 2 * k,
                                from + 2 * j, 2);
                });
  return operand;
}

/// The fragment of a warp in registers: register r has rows g + 8 * (r % 2) and
/// bytes 16 * (r / 2) + 4t of k.
static void gatherFragment(const ExecContext &context, const RowIndex *rows,
                           WgmmaOperands &operands) {
  for (unsigned r = 0; r < 4; ++r) {
    const uint32_t *words = context.src(rows[r]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      std::memcpy(operands.a[lane / 4 + 8 * (r % 2)] + 16 * (r / 2) +
                      4 * (lane % 4),
                  words + lane, 4);
  }
}

/// Cycles for which a sub-core's tensor core is taken.
static uint64_t wgmmaInterval(const WgmmaShape &shape, const Chip &chip) {
  uint32_t rate = typeBits(shape.typeA) == 8    ? chip.wgmmaF8PerCycle
                  : typeBits(shape.typeA) == 16 ? chip.wgmmaF16PerCycle
                                                : chip.wgmmaTf32PerCycle;
  uint64_t products = uint64_t(kWgmmaRows) * shape.n * shape.k;
  uint64_t bytes = uint64_t(shape.n) * kWgmmaKBytes;
  if (shape.numA == 0)
    bytes += uint64_t(kWarpsPerWarpgroup) * kWgmmaRows * kWgmmaKBytes;
  return std::max<uint64_t>(
      {1, products / rate, bytes / chip.wgmmaSharedBytesPerCycle});
}

void Sm::wgmma(Warp &warp, const MicroOp &op, LaneMask active) {
  if (active != kFullMask)
    fail(warp, warp.pc - 1,
         {ErrorKind::Deadlock, "wgmma is executed by " +
                                   std::to_string(std::popcount(active)) +
                                   " lanes of the warp; need all 32"});
  const WgmmaShape &shape = program.wgmmas[static_cast<size_t>(op.imm)];
  const RowIndex *rows = program.pool.data() + op.ext;
  ExecContext &context = warp.context;
  WgmmaOperands operands;
  operands.n = shape.n;
  operands.negate = shape.negateA != shape.negateB;
  operands.accumulate = shape.scaleD;
  if (op.predSrc() != kNoPredicate)
    operands.accumulate = (context.predicate(op.predSrc()) & 1) != 0;
  checkProductFences(warp, op, operands.accumulate);
  for (unsigned i = 0; i < shape.numD; ++i)
    operands.d[i] = context.dst(rows[i]);
  ProductInFlight product{&warp,
                          warp.pc - 1,
                          warp.firstWgmmaGroup + warp.wgmmaGroups.size() - 1,
                          {},
                          {}};
  if (shape.numA)
    gatherFragment(context, rows + shape.numD, operands);
  else
    product.a = gatherWgmma(warp, context.src64(op.src[0])[0], shape.transposeA,
                            firstWgmmaRow(warp), kWgmmaRows, operands.a[0]);
  product.b = gatherWgmma(warp, context.src64(op.src[1])[0], shape.transposeB,
                          0, shape.n, operands.b[0]);
  warp.cta->products.push_back(product);
  launch.wgmmaKernels[static_cast<size_t>(op.imm)](operands);

  // The scoreboard does not know of the product: wait_group does.
  uint64_t done = now;
  if (!currentIsFree()) {
    SubCore &core = cores[warp.subCore];
    uint64_t start =
        std::max(now + launch.costs[warp.pc - 1].latency, core.wgmmaFree);
    core.wgmmaFree = start + wgmmaInterval(shape, chip);
    done = core.wgmmaFree + chip.wgmmaTailCycles;
  }
  setReady(warp, op, currentIsFree() ? now : now + 1);
  logComplete(done);
  warp.wgmmaGroups.back() = std::max(warp.wgmmaGroups.back(), done);
  lastCycle = std::max(lastCycle, done);
}

void Sm::wgmmaGroup(Warp &warp, const MicroOp &op, LaneMask active) {
  if (!active)
    return;
  GroupQueue<uint64_t> &groups = warp.wgmmaGroups;
  if (op.opcode == Opcode::WgmmaCommitGroup) {
    groups.commit();
    return;
  }
  if (op.opcode == Opcode::WgmmaFence) {
    warp.hasFencedProducts = true;
    warp.unfenced.clear();
    return;
  }
  auto allowed = static_cast<size_t>(std::max(op.imm, 0));
  uint64_t done = now + launch.costs[warp.pc - 1].latency;
  // The last one is open: it is not waited for.
  while (groups.size() - 1 > allowed) {
    done = std::max(done, groups.front());
    groups.popFront();
    ++warp.firstWgmmaGroup;
  }
  std::erase_if(warp.cta->products, [&](const ProductInFlight &product) {
    return product.warp == &warp && product.group < warp.firstWgmmaGroup;
  });
  if (!currentIsFree())
    warp.nextIssue = done;
  logComplete(done);
}

} // namespace kperfir::simt
