//===- JoinHalves.cpp - Registers taken apart only to be joined again -----===//
//
// LLVM carries the operands of matrix instructions as halves: `mov.b32 {h, g},
// r` after a load, `mov.b32 s, {h, g}` before the use, possibly a loop
// iteration later. A GPU has no such instructions; ptxas gives the whole a
// register of its own. So does this pass, before registers are allocated:
// otherwise the moves would take issue slots, and the first of them would wait
// for the load. Halves that anything else reads are left alone.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Semantics.h"
#include "Simt/Exec/VirtualOp.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace kperfir::simt {
namespace {

/// Moves between a whole register and its halves, by the size of the whole.
struct Form {
  Handler unpack, pack;
  const Semantics *move;
  uint8_t rows;

  Form(HostIsa isa, const char *unpack, const char *pack, const char *move,
       uint8_t rows)
      : unpack(findSemantics(isa, unpack)->form.handler),
        pack(findSemantics(isa, pack)->form.handler),
        move(findSemantics(isa, move)), rows(rows) {}
};

struct Halves {
  uint32_t low, high;
  uint32_t form;
  auto operator<=>(const Halves &) const = default;
};

class Joiner {
public:
  Joiner(std::vector<VirtualOp> &ops, std::vector<VirtualBlock> &blocks,
         std::vector<VirtualRegister> &registers, HostIsa isa)
      : ops(ops), blocks(blocks), registers(registers),
        forms{Form(isa, "unpack.hh", "pack.hh", "mov.b32", 1),
              Form(isa, "unpack.ww", "pack.ww", "mov.b64", 2)},
        isRemoved(ops.size(), false), blockOf(ops.size()) {
    for (uint32_t b = 0; b < blocks.size(); ++b)
      std::fill(blockOf.begin() + blocks[b].begin,
                blockOf.begin() + blocks[b].end, b);
  }

  void run() {
    std::set<Halves> pairs;
    for (const VirtualOp &op : ops)
      if (auto halves = unpacked(op))
        pairs.insert(*halves);
    if (pairs.empty())
      return;
    collectPlaces();
    for (const Halves &halves : pairs)
      if (isOnlyJoined(halves))
        join(halves);
    if (moves.empty())
      return;
    collectPlaces();
    for (uint32_t move : moves)
      readSourceInstead(move);
    for (uint32_t move : moves)
      if (!isRemoved[move])
        writeTargetInstead(move);
    erase();
  }

private:
  // --- what there is ---------------------------------------------------------

  static const Reference *find(const VirtualOp &op, Slot slot,
                               uint8_t poolIndex = 0) {
    for (const Reference &reference : op.references)
      if (reference.slot == slot && reference.poolIndex == poolIndex &&
          !reference.isImplicit)
        return &reference;
    return nullptr;
  }

  /// The two registers that an unguarded op takes a register apart into.
  std::optional<Halves> unpacked(const VirtualOp &op) const {
    if (op.op.opcode != Opcode::Unpack || op.op.guard != kNoPredicate)
      return std::nullopt;
    return halves(op, &Form::unpack, find(op, Slot::Pool, 0),
                  find(op, Slot::Pool, 1));
  }

  /// The two registers that an unguarded op joins.
  std::optional<Halves> packed(const VirtualOp &op) const {
    if (op.op.opcode != Opcode::Pack || op.op.guard != kNoPredicate ||
        !find(op, Slot::Dst0))
      return std::nullopt;
    return halves(op, &Form::pack, find(op, Slot::Src0), find(op, Slot::Src1));
  }

  std::optional<Halves> halves(const VirtualOp &op, Handler Form::*handler,
                               const Reference *low,
                               const Reference *high) const {
    if (!low || !high || low->reg == high->reg)
      return std::nullopt;
    for (uint32_t i = 0; i < std::size(forms); ++i)
      if (op.op.handler == forms[i].*handler)
        return Halves{low->reg, high->reg, i};
    return std::nullopt;
  }

  void collectPlaces() {
    definitions.assign(registers.size(), {});
    uses.assign(registers.size(), {});
    for (uint32_t i = 0; i < ops.size(); ++i)
      for (const Reference &reference : ops[i].references) {
        auto &places =
            (reference.isDefinition ? definitions : uses)[reference.reg];
        if (places.empty() || places.back() != i)
          places.push_back(i);
      }
  }

  bool isOnlyJoined(const Halves &halves) const {
    for (uint32_t reg : {halves.low, halves.high}) {
      for (uint32_t i : definitions[reg])
        if (unpacked(ops[i]) != halves)
          return false;
      for (uint32_t i : uses[reg])
        if (packed(ops[i]) != halves)
          return false;
    }
    return !uses[halves.low].empty();
  }

  // --- the whole in a register of its own ------------------------------------

  void join(const Halves &halves) {
    const Form &form = forms[halves.form];
    auto whole = static_cast<uint32_t>(registers.size());
    registers.push_back({form.rows});
    for (uint32_t i : definitions[halves.low]) {
      std::erase_if(ops[i].references,
                    [](const Reference &r) { return r.isDefinition; });
      ops[i].references.push_back({whole, Slot::Dst0, true, 0});
      becomeMove(i, *form.move);
    }
    for (uint32_t i : uses[halves.low]) {
      std::erase_if(ops[i].references,
                    [](const Reference &r) { return !r.isDefinition; });
      ops[i].references.push_back({whole, Slot::Src0, false, 0});
      becomeMove(i, *form.move);
    }
  }

  void becomeMove(uint32_t i, const Semantics &move) {
    VirtualOp &op = ops[i];
    op.pool.clear();
    op.op.opcode = move.opcode;
    op.op.handler = move.form.handler;
    op.op.pipe = move.timing.pipe;
    op.op.latency = move.timing.latency;
    op.op.width = 1;
    moves.push_back(i);
  }

  // --- moves that nobody needs -----------------------------------------------

  bool hasPlaceIn(const std::vector<uint32_t> &places, uint32_t begin,
                  uint32_t end) const {
    return std::ranges::any_of(places, [&](uint32_t i) {
      return i >= begin && i < end && !isRemoved[i];
    });
  }

  bool isRenamable(uint32_t i, uint32_t reg) const {
    return std::ranges::none_of(ops[i].references, [&](const Reference &r) {
      return r.reg == reg && r.isImplicit;
    });
  }

  void rename(uint32_t i, uint32_t from, uint32_t to) {
    for (Reference &reference : ops[i].references)
      if (reference.reg == from)
        reference.reg = to;
  }

  /// `mov to, from`: those that read `to` read `from`, if it still is the same.
  void readSourceInstead(uint32_t move) {
    const Reference *source = find(ops[move], Slot::Src0);
    if (!source)
      return;
    uint32_t from = source->reg, to = find(ops[move], Slot::Dst0)->reg;
    if (definitions[to].size() != 1 || uses[to].empty())
      return;
    for (uint32_t i : uses[to])
      if (i <= move || blockOf[i] != blockOf[move] || !isRenamable(i, to))
        return;
    uint32_t last = *std::ranges::max_element(uses[to]);
    if (hasPlaceIn(definitions[from], move, last + 1))
      return;
    for (uint32_t i : uses[to]) {
      rename(i, to, from);
      uses[from].push_back(i);
    }
    isRemoved[move] = true;
  }

  /// `mov to, from`: the op that computes `from` only for this move writes
  /// `to`.
  void writeTargetInstead(uint32_t move) {
    const Reference *source = find(ops[move], Slot::Src0);
    if (!source)
      return;
    uint32_t from = source->reg, to = find(ops[move], Slot::Dst0)->reg;
    if (definitions[from].size() != 1 || uses[from].size() != 1)
      return;
    uint32_t maker = definitions[from][0];
    if (maker >= move || blockOf[maker] != blockOf[move] ||
        ops[maker].op.guard != kNoPredicate || !isRenamable(maker, from) ||
        hasPlaceIn(uses[to], maker, move) ||
        hasPlaceIn(definitions[to], maker, move))
      return;
    rename(maker, from, to);
    definitions[to].push_back(maker);
    isRemoved[move] = true;
  }

  void erase() {
    uint32_t kept = 0;
    for (VirtualBlock &block : blocks) {
      uint32_t begin = kept;
      for (uint32_t i = block.begin; i < block.end; ++i)
        if (!isRemoved[i]) {
          if (kept != i)
            ops[kept] = std::move(ops[i]);
          ++kept;
        }
      block.begin = begin;
      block.end = kept;
    }
    ops.resize(kept);
  }

  std::vector<VirtualOp> &ops;
  std::vector<VirtualBlock> &blocks;
  std::vector<VirtualRegister> &registers;
  const Form forms[2];
  std::vector<bool> isRemoved;
  std::vector<uint32_t> blockOf;
  std::vector<std::vector<uint32_t>> definitions, uses; // by register: ops
  std::vector<uint32_t> moves;
};

} // namespace

void joinHalves(std::vector<VirtualOp> &ops, std::vector<VirtualBlock> &blocks,
                std::vector<VirtualRegister> &registers, HostIsa isa) {
  Joiner(ops, blocks, registers, isa).run();
}

} // namespace kperfir::simt
