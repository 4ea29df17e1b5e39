//===- WgmmaChecks.cpp - What programs must leave to a product, and fence -===//
//
// Between the issue of a wgmma.mma_async and the wgmma.wait_group for it, and
// between an access to registers and the wgmma.fence before the product that
// gets them. Which ops have to be looked at is known from the loader
// (ProductHazards.cpp, ProductFences.cpp).
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/MatrixDescriptor.h"
#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <span>
#include <string>

namespace kperfir::simt {

//===----------------------------------------------------------------------===//
// Registers of a product in flight
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

//===----------------------------------------------------------------------===//
// Fences of registers
//===----------------------------------------------------------------------===//

using Unfenced = std::vector<UnfencedRegister>;

static const UnfencedRegister *find(const Unfenced &list,
                                    std::span<const uint16_t> slots) {
  auto found = std::ranges::find_if(list, [&](const UnfencedRegister &entry) {
    return std::ranges::find(slots, entry.slot) != slots.end();
  });
  return found == list.end() ? nullptr : &*found;
}

static void forget(Unfenced &list, std::span<const uint16_t> slots) {
  std::erase_if(list, [&](const UnfencedRegister &entry) {
    return std::ranges::find(slots, entry.slot) != slots.end();
  });
}

static void note(Unfenced &list, std::span<const uint16_t> slots, uint32_t pc) {
  forget(list, slots);
  for (uint16_t slot : slots)
    list.push_back({slot, pc});
}

void Sm::noteUnfenced(Warp &warp, const MicroOp &op) const {
  uint32_t pc = warp.pc - 1;
  if (isRegisterMove(op)) {
    const UnfencedRegister *source = find(warp.unfenced, program.reads(op));
    if (!source)
      return forget(warp.unfenced, program.writes(op));
    pc = source->pc;
  } else {
    note(warp.unfenced, program.reads(op), pc);
  }
  note(warp.unfenced, program.writes(op), pc);
}

void Sm::checkProductFences(Warp &warp, const MicroOp &op,
                            bool accumulates) const {
  if (!warp.hasFencedProducts)
    fail(warp, warp.pc - 1,
         {ErrorKind::Race, "no wgmma.fence comes before the first product of "
                           "the warp"});
  const WgmmaShape &shape = program.wgmmas[static_cast<size_t>(op.imm)];
  std::span<const uint16_t> sums = program.writes(op);
  std::span<const uint16_t> a{program.pool.data() + op.ext + shape.numD,
                              shape.numA};
  auto check = [&](std::span<const uint16_t> slots, bool isSum) {
    const UnfencedRegister *found = find(warp.unfenced, slots);
    if (!found)
      return;
    const MicroOp &other = program.ops[found->pc];
    if (isSum && other.opcode == Opcode::Wgmma &&
        haveSameAccumulators(shape,
                             program.wgmmas[static_cast<size_t>(other.imm)]))
      return;
    const Instruction &instruction = program.instructionAt(found->pc);
    fail(
        warp, warp.pc - 1,
        {ErrorKind::Race,
         std::string("the product uses a register as ") +
             (isSum ? "an accumulator" : "a part of A") + " that the " +
             instruction.mnemonic + " of line " +
             std::to_string(instruction.ptxLine) +
             " of the PTX has touched: a wgmma.fence is missing between them"});
  };
  if (warp.unfenced.empty() && !op.has(kUnfenced))
    return;
  check(a, false);
  if (accumulates)
    check(sums, true);
  forget(warp.unfenced, sums);
  if (op.has(kUnfenced))
    note(warp.unfenced, sums, warp.pc - 1);
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

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
    if (isRead(product.a, shape.transposeA, firstWgmmaRow(*product.warp),
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
