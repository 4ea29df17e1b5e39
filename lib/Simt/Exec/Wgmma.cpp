//===- Wgmma.cpp - wgmma.mma_async and its groups -------------------------===//
//
// The four warps of a warpgroup issue a wgmma each for its own 16 rows, and
// each has a tensor core of its own, so that a warp's part stands for itself.
// Values are computed at issue, and the product counts as in flight until its
// warp has waited for it: until then it is an error to use D, to change A in
// registers, or to write what it reads from shared memory. That stores are
// fenced before a product reads them is checked as well; wgmma.fence is not.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/TensorMap.h"
#include "Simt/Exec/WgmmaKernels.h"

#include <algorithm>
#include <bit>
#include <span>
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

namespace {
constexpr unsigned kUnitBytes = 16;
constexpr unsigned kCoreRows = 8;
constexpr unsigned kWarpsPerGroup = 4;

/// A matrix in shared memory, as its descriptor says.
struct MatrixDescriptor {
  uint32_t start;
  uint32_t leading; // byte offsets; which is which depends on the layout
  uint32_t stride;
  unsigned baseOffset;
  TensorSwizzle swizzle;

  explicit MatrixDescriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3FFF) << 4),
        leading(static_cast<uint32_t>(bits >> 16 & 0x3FFF) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3FFF) << 4),
        baseOffset(static_cast<unsigned>(bits >> 49 & 7)) {
    static constexpr TensorSwizzle kModes[] = {
        TensorSwizzle::None, TensorSwizzle::Bytes128, TensorSwizzle::Bytes64,
        TensorSwizzle::Bytes32};
    swizzle = kModes[bits >> 62];
  }

  /// Bytes of a row of the swizzling pattern; 16 without one.
  uint32_t span() const { return kUnitBytes << static_cast<unsigned>(swizzle); }

  /// 16 bytes along k, of row (or column) `index`; unit 0 or 1 of its 32 bytes.
  uint32_t alongK(uint32_t index, uint32_t unit) const {
    uint32_t offset = index / kCoreRows * stride + index % kCoreRows * span();
    offset += unit * (swizzle == TensorSwizzle::None ? leading : kUnitBytes);
    return swizzled(start + offset, swizzle);
  }

  /// 16 bytes (8 elements) along M or N from `index` on, at step k.
  uint32_t acrossK(uint32_t index, uint32_t k) const {
    uint32_t elements = span() / 2;
    uint32_t blocks = index / elements, groups = k / kCoreRows;
    uint32_t offset = k % kCoreRows * span() + index % elements * 2;
    if (swizzle == TensorSwizzle::None)
      offset += blocks * stride + groups * leading;
    else
      offset += blocks * leading + groups * stride;
    return swizzled(start + offset, swizzle);
  }
};
} // namespace

/// Visits the 16-byte units of `count` rows of A, or columns of B, from `first`
/// on, in the order of the operand.
template <class Visit>
static void forEachUnit(const MatrixDescriptor &matrix, bool isTransposed,
                        unsigned first, unsigned count, Visit visit) {
  if (!isTransposed) {
    for (unsigned i = 0; i < count; ++i)
      for (unsigned half = 0; half < 2; ++half)
        visit(matrix.alongK(first + i, half), i, half);
    return;
  }
  constexpr unsigned kK = kWgmmaKBytes / 2, kElements = kUnitBytes / 2;
  for (unsigned k = 0; k < kK; ++k)
    for (unsigned i = 0; i < count; i += kElements)
      visit(matrix.acrossK(first + i, k), i, k);
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
    bytes += uint64_t(kWarpsPerGroup) * kWgmmaRows * kWgmmaKBytes;
  return std::max<uint64_t>(
      {1, products / rate, bytes / chip.wgmmaSharedBytesPerCycle});
}

/// Of the 64 rows of its warpgroup, the first one that a warp computes.
static unsigned firstRow(const Warp &warp) {
  return warp.index % kWarpsPerGroup * kWgmmaRows;
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
                            firstRow(warp), kWgmmaRows, operands.a[0]);
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
  if (op.opcode == Opcode::WgmmaFence)
    return;
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

//===----------------------------------------------------------------------===//
// What a product in flight uses
//===----------------------------------------------------------------------===//

static bool meet(std::span<const uint16_t> some,
                 std::span<const uint16_t> others) {
  return std::ranges::any_of(some, [&](uint16_t slot) {
    return std::ranges::find(others, slot) != others.end();
  });
}

std::string Sm::describe(const ProductInFlight &product) const {
  const Instruction &instruction = program.instructionAt(product.pc);
  return "the " + instruction.mnemonic + " of line " +
         std::to_string(instruction.ptxLine) + " of the PTX, warp " +
         std::to_string(product.warp->index) + ",";
}

void Sm::checkProductRegisters(const Warp &warp, const MicroOp &op) const {
  for (const ProductInFlight &product : warp.cta->products) {
    const MicroOp &other = program.ops[product.pc];
    if (product.warp != &warp)
      continue;
    const WgmmaShape &shape = program.wgmmas[static_cast<size_t>(other.imm)];
    std::span<const uint16_t> sums = program.writes(other);
    std::span<const uint16_t> a{program.pool.data() + other.ext + shape.numD,
                                shape.numA};
    // A product may follow another one into the same sums.
    bool writes = op.opcode != Opcode::Wgmma;
    const char *use = nullptr;
    if (meet(program.reads(op), sums) ||
        (writes && meet(program.writes(op), sums)))
      use = " has still to write";
    else if (writes && meet(program.writes(op), a))
      use = " still reads";
    if (use)
      fail(warp, warp.pc - 1,
           {ErrorKind::Race, "a register is used that " + describe(product) +
                                 use + ": a wgmma.wait_group is missing"});
  }
}

void Sm::checkProductOperands(const Cta &cta, const Warp &warp, uint32_t pc,
                              const SharedWrite &write) const {
  uint32_t end = write.offset + write.bytes;
  auto isRead = [&](const ProductInFlight::Operand &operand, bool isTransposed,
                    unsigned first, unsigned count) {
    if (write.offset >= operand.end || end <= operand.begin)
      return false;
    bool found = false;
    forEachUnit(MatrixDescriptor(operand.descriptor), isTransposed, first,
                count, [&](uint32_t unit, unsigned, unsigned) {
                  found |= write.offset < unit + kUnitBytes && unit < end;
                });
    return found;
  };
  for (const ProductInFlight &product : cta.products) {
    const MicroOp &op = program.ops[product.pc];
    const WgmmaShape &shape = program.wgmmas[static_cast<size_t>(op.imm)];
    if (isRead(product.a, shape.transposeA, firstRow(*product.warp),
               kWgmmaRows) ||
        isRead(product.b, shape.transposeB, 0, shape.n))
      fail(warp, pc,
           {ErrorKind::Race,
            std::to_string(write.bytes) + " bytes of shared memory at " +
                std::to_string(write.offset) + " are written while " +
                describe(product) +
                " still reads them: a wgmma.wait_group is missing",
            static_cast<int>(write.lane), uint64_t(write.offset)});
  }
}

void Sm::noteGenericWrite(const Warp &warp, LaneMask active,
                          const uint32_t *offsets, unsigned bytes) const {
  Cta &cta = *warp.cta;
  for (; active; active &= active - 1) {
    unsigned lane = firstLane(active);
    if (!cta.products.empty())
      checkProductOperands(cta, warp, warp.pc - 1,
                           {offsets[lane], bytes, lane});
    cta.shared.setHidden(offsets[lane], bytes);
  }
}

} // namespace kperfir::simt
