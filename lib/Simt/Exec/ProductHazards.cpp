//===- ProductHazards.cpp - Registers that a product may still use --------===//
//
// wgmma.mma_async writes its accumulators, and reads A from registers, until a
// wgmma.wait_group. Marks the ops that may meet such a register before the
// wait on some path (kMeetsProduct); the machine checks them when they execute.
// A program that waits where it must has none, and pays nothing.
//
// Works on virtual registers: rows are reused as soon as a value is not needed,
// which says nothing of the program. Moves out of accumulators are let pass:
// LLVM puts some between the product and the wait, which ptxas resolves.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/VirtualOp.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

/// How many groups have been committed since the product was issued; the least
/// of all paths.
using Age = uint8_t;
constexpr Age kIdle = 0xFF; // no product uses the register
constexpr Age kOldest = 0x7F;

/// By virtual register.
struct State {
  std::vector<Age> written, read;

  explicit State(size_t registers)
      : written(registers, kIdle), read(registers, kIdle) {}

  bool unite(const State &other) {
    bool changed = false;
    auto lower = [&](std::vector<Age> &mine, const std::vector<Age> &theirs) {
      for (size_t i = 0; i < mine.size(); ++i)
        if (theirs[i] < mine[i]) {
          mine[i] = theirs[i];
          changed = true;
        }
    };
    lower(written, other.written);
    lower(read, other.read);
    return changed;
  }
  template <class F> void each(F change) {
    std::for_each(written.begin(), written.end(), change);
    std::for_each(read.begin(), read.end(), change);
  }
};

bool isRead(const Reference &reference) {
  return !reference.isDefinition && !reference.isImplicit;
}

class Marker {
public:
  Marker(std::vector<VirtualOp> &ops, const std::vector<VirtualBlock> &blocks,
         size_t registers)
      : ops(ops), blocks(blocks), in(blocks.size(), State(registers)) {}

  void run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < blocks.size(); ++b) {
        State state = in[b];
        for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i)
          execute(ops[i], state);
        for (uint32_t successor : blocks[b].successors)
          changed |= in[successor].unite(state);
      }
    }
  }

private:
  static void execute(VirtualOp &op, State &state) {
    switch (op.op.opcode) {
    case Opcode::WgmmaCommitGroup:
      return state.each([](Age &age) {
        if (age < kOldest)
          ++age;
      });
    case Opcode::WgmmaWaitGroup:
      return state.each([&](Age &age) {
        if (age != kIdle && int(age) > op.op.imm)
          age = kIdle;
      });
    case Opcode::Wgmma:
      return multiply(op, state);
    default:
      break;
    }
    bool isMove = isRegisterMove(op.op);
    for (const Reference &reference : op.references) {
      Age &written = state.written[reference.reg];
      if (reference.isDefinition) {
        if (written != kIdle || state.read[reference.reg] != kIdle)
          op.op.flags |= kMeetsProduct;
        if (op.op.guard == kNoPredicate)
          written = state.read[reference.reg] = kIdle;
      } else if (isRead(reference) && written != kIdle && !isMove) {
        op.op.flags |= kMeetsProduct;
      }
    }
  }

  /// Products may follow each other into the same accumulators.
  static void multiply(VirtualOp &op, State &state) {
    for (const Reference &reference : op.references) {
      if (isRead(reference) && state.written[reference.reg] != kIdle)
        op.op.flags |= kMeetsProduct;
      if (reference.isDefinition)
        state.written[reference.reg] = 0;
      else if (reference.slot == Slot::Pool)
        state.read[reference.reg] = 0;
    }
  }

  std::vector<VirtualOp> &ops;
  const std::vector<VirtualBlock> &blocks;
  std::vector<State> in; // of each block
};

} // namespace

void markProductHazards(std::vector<VirtualOp> &ops,
                        const std::vector<VirtualBlock> &blocks,
                        size_t registers) {
  bool multiplies = std::ranges::any_of(
      ops, [](const VirtualOp &op) { return op.op.opcode == Opcode::Wgmma; });
  if (multiplies)
    Marker(ops, blocks, registers).run();
}

} // namespace kperfir::simt
