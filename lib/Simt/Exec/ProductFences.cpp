//===- ProductFences.cpp - Registers that a product gets without a fence --===//
//
// Between an access to a register and a wgmma.mma_async that has it as an
// accumulator or as part of A there must be a wgmma.fence; only products of the
// same shape may pass accumulators on. Marks the ops from which such a register
// gets to a product without a fence on some path (kUnfenced); the machine notes
// what they touch when they execute, and the product looks (Wgmma.cpp). A
// program with all its fences has none, and pays nothing.
//
// Works on virtual registers, as ProductHazards.cpp does. Moves are let pass,
// and hand on what is known of their source: LLVM puts some between the fence
// and the product, which ptxas resolves.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/VirtualOp.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

/// What a register is for in the next product that no fence comes before.
/// Other numbers: an accumulator of a product of shape number n - kFirstShape.
using Use = uint16_t;
constexpr Use kNone = 0, kAny = 1, kFirstShape = 2;

Use unite(Use a, Use b) {
  if (a == b || b == kNone)
    return a;
  return a == kNone ? b : kAny;
}

class Marker {
public:
  Marker(std::vector<VirtualOp> &ops, const std::vector<VirtualBlock> &blocks,
         const std::vector<WgmmaShape> &shapes, size_t registers)
      : ops(ops), blocks(blocks), shapes(shapes),
        in(blocks.size(), Uses(registers, kNone)) {}

  void run() {
    while (passBackward())
      ;
    // Moves matter only if there is something to hand on.
    if (!found)
      return;
    marksMoves = true;
    passBackward();
  }

private:
  using Uses = std::vector<Use>; // by virtual register

  bool passBackward() {
    bool changed = false;
    for (size_t b = blocks.size(); b-- > 0;) {
      Uses uses(in[b].size(), kNone);
      for (uint32_t successor : blocks[b].successors)
        std::ranges::transform(uses, in[successor], uses.begin(), unite);
      for (uint32_t i = blocks[b].end; i-- > blocks[b].begin;)
        execute(ops[i], uses);
      changed |= in[b] != uses;
      in[b] = std::move(uses);
    }
    return changed;
  }

  void execute(VirtualOp &op, Uses &uses) {
    if (op.op.opcode == Opcode::WgmmaFence) {
      uses.assign(uses.size(), kNone);
      return;
    }
    if (op.op.opcode == Opcode::Wgmma)
      return multiply(op, uses);
    if (isRegisterMove(op.op))
      return move(op, uses);
    for (const Reference &reference : op.references)
      if (reference.isDefinition) {
        note(op, uses[reference.reg] != kNone);
        if (op.op.guard == kNoPredicate)
          uses[reference.reg] = kNone;
      }
    for (const Reference &reference : op.references)
      if (!reference.isDefinition)
        note(op, uses[reference.reg] != kNone);
  }

  void move(VirtualOp &op, Uses &uses) const {
    Use wanted = kNone;
    for (const Reference &reference : op.references)
      if (reference.isDefinition) {
        wanted = unite(wanted, uses[reference.reg]);
        if (op.op.guard == kNoPredicate)
          uses[reference.reg] = kNone;
      }
    if (wanted == kNone)
      return;
    if (marksMoves)
      op.op.flags |= kUnfenced;
    for (const Reference &reference : op.references)
      if (!reference.isDefinition && reference.slot != Slot::Guard)
        uses[reference.reg] = unite(uses[reference.reg], wanted);
  }

  void multiply(VirtualOp &op, Uses &uses) {
    Use same = shapeOf(op);
    bool keeps = shapes[static_cast<size_t>(op.op.imm)].scaleD;
    for (const Reference &reference : op.references)
      if (reference.isDefinition) {
        Use &use = uses[reference.reg];
        note(op, use != kNone && use != same);
        use = keeps ? same : kNone;
      }
    for (const Reference &reference : op.references)
      if (!reference.isDefinition && reference.slot == Slot::Pool)
        uses[reference.reg] = kAny;
  }

  /// The first product of its shape stands for all of them.
  Use shapeOf(const VirtualOp &op) const {
    const WgmmaShape &shape = shapes[static_cast<size_t>(op.op.imm)];
    auto first = std::ranges::find_if(shapes, [&](const WgmmaShape &other) {
      return haveSameAccumulators(other, shape);
    });
    return static_cast<Use>(kFirstShape + (first - shapes.begin()));
  }

  void note(VirtualOp &op, bool isUnfenced) {
    if (!isUnfenced)
      return;
    op.op.flags |= kUnfenced;
    found = true;
  }

  std::vector<VirtualOp> &ops;
  const std::vector<VirtualBlock> &blocks;
  const std::vector<WgmmaShape> &shapes;
  std::vector<Uses> in; // of each block
  bool found = false, marksMoves = false;
};

} // namespace

void markProductFences(std::vector<VirtualOp> &ops,
                       const std::vector<VirtualBlock> &blocks,
                       const std::vector<WgmmaShape> &shapes,
                       size_t registers) {
  if (!shapes.empty())
    Marker(ops, blocks, shapes, registers).run();
}

} // namespace kperfir::simt
