//===- RegisterAllocation.cpp - Linear scan over live intervals -----------===//
//
// Positions: op i reads at 2i and writes at 2i + 1. An interval has no holes:
// it covers every block through which its register is alive. Liveness is that
// of a single thread; writes are masked, so registers of the two sides of a
// divergent branch may share a row.
//
//===----------------------------------------------------------------------===//

#include "Simt/Error.h"
#include "Simt/Exec/VirtualOp.h"

#include <algorithm>
#include <map>
#include <set>

namespace kperfir::simt {
namespace {

constexpr uint32_t kUnset = 0xFFFFFFFFu;

class BitSet {
public:
  explicit BitSet(size_t bits) : words((bits + 63) / 64, 0) {}
  void set(uint32_t i) { words[i / 64] |= uint64_t(1) << i % 64; }
  void clear(uint32_t i) { words[i / 64] &= ~(uint64_t(1) << i % 64); }
  bool test(uint32_t i) const { return words[i / 64] >> i % 64 & 1; }
  /// Whether that changed anything.
  bool unite(const BitSet &other) {
    bool changed = false;
    for (size_t i = 0; i < words.size(); ++i) {
      uint64_t joined = words[i] | other.words[i];
      changed |= joined != words[i];
      words[i] = joined;
    }
    return changed;
  }
  template <class F> void each(F visit) const {
    for (size_t i = 0; i < words.size(); ++i)
      for (uint64_t rest = words[i]; rest; rest &= rest - 1)
        visit(static_cast<uint32_t>(64 * i + __builtin_ctzll(rest)));
  }

private:
  std::vector<uint64_t> words;
};

struct Interval {
  uint32_t start = kUnset, end = 0;
  void cover(uint32_t position) {
    start = std::min(start, position);
    end = std::max(end, position);
  }
};

/// Rows in use; hands out the lowest free run.
class RowPool {
public:
  uint32_t take(uint32_t count) {
    uint32_t at = lowestFree;
    for (uint32_t run = 0; run < count; ++at) {
      if (at == used.size())
        used.push_back(false);
      run = used[at] ? 0 : run + 1;
    }
    at -= count;
    for (uint32_t i = 0; i < count; ++i)
      used[at + i] = true;
    while (lowestFree < used.size() && used[lowestFree])
      ++lowestFree;
    return at;
  }
  void release(uint32_t row, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      used[row + i] = false;
    lowestFree = std::min(lowestFree, row);
  }
  uint32_t size() const { return static_cast<uint32_t>(used.size()); }

private:
  std::vector<bool> used;
  uint32_t lowestFree = 0;
};

class Allocator {
public:
  Allocator(std::vector<VirtualOp> &ops,
            const std::vector<VirtualBlock> &blocks,
            const std::vector<VirtualRegister> &registers)
      : ops(ops), blocks(blocks), registers(registers),
        intervals(registers.size()), isRead(registers.size()),
        comesLate(registers.size()), rows(registers.size(), kUnset) {}

  Allocation run() {
    computeIntervals();
    scan();
    for (VirtualOp &op : ops)
      assign(op);
    result.numRows = general.size();
    result.numPredicates = predicates.size();
    if (result.numRows >= kConstantBase ||
        result.numPredicates >= kConstantBase)
      throw Error(ErrorKind::Limit,
                  "the kernel keeps " + std::to_string(result.numRows) +
                      " 32-bit registers alive; the SIMT device has " +
                      std::to_string(kConstantBase - 1));
    return result;
  }

private:
  /// A guarded write keeps the old value in some lanes, so it does not end the
  /// life of the former one, unless there is none on any path (`defined`).
  static bool isPartial(const VirtualOp &op) {
    return op.op.guard != kNoPredicate;
  }

  void computeIntervals() {
    size_t n = registers.size();
    std::vector<BitSet> maybeDefined = forwardDefinitions();
    for (size_t b = 0; b < blocks.size(); ++b)
      firstWrites.push_back(firstGuardedWrites(blocks[b], maybeDefined[b]));
    std::vector<BitSet> liveIn(blocks.size(), BitSet(n));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks.size(); b-- > 0;) {
        BitSet live = liveOut(b, liveIn);
        scanBackwards(b, live, /*record=*/false);
        changed |= liveIn[b].unite(live);
      }
    }
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].begin == blocks[b].end)
        continue;
      BitSet live = liveOut(b, liveIn);
      live.each(
          [&](uint32_t reg) { intervals[reg].cover(2 * blocks[b].end - 1); });
      scanBackwards(b, live, /*record=*/true);
      live.each(
          [&](uint32_t reg) { intervals[reg].cover(2 * blocks[b].begin); });
    }
  }

  BitSet liveOut(size_t b, const std::vector<BitSet> &liveIn) const {
    BitSet live(registers.size());
    for (uint32_t s : blocks[b].successors)
      live.unite(liveIn[s]);
    return live;
  }

  /// Per block: registers that some path to its begin has written.
  std::vector<BitSet> forwardDefinitions() const {
    std::vector<BitSet> in(blocks.size(), BitSet(registers.size()));
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = 0; b < blocks.size(); ++b) {
        BitSet out = in[b];
        for (uint32_t i = blocks[b].begin; i < blocks[b].end; ++i)
          for (const Reference &reference : ops[i].references)
            if (reference.isDefinition)
              out.set(reference.reg);
        for (uint32_t s : blocks[b].successors)
          changed |= in[s].unite(out);
      }
    }
    return in;
  }

  void scanBackwards(size_t b, BitSet &live, bool record) {
    const VirtualBlock &block = blocks[b];
    for (uint32_t i = block.end; i-- > block.begin;) {
      const VirtualOp &op = ops[i];
      for (const Reference &reference : op.references) {
        if (!reference.isDefinition)
          continue;
        if (record) {
          intervals[reference.reg].cover(2 * i + 1);
          if (op.op.kind != OpKind::Register)
            comesLate[reference.reg] = true;
        }
        const auto &first = firstWrites[b][i - block.begin];
        if (!isPartial(op) ||
            std::find(first.begin(), first.end(), reference.reg) != first.end())
          live.clear(reference.reg);
        else
          live.set(reference.reg);
      }
      for (const Reference &reference : op.references) {
        if (reference.isDefinition)
          continue;
        if (record) {
          intervals[reference.reg].cover(2 * i);
          isRead[reference.reg] = true;
        }
        live.set(reference.reg);
      }
    }
  }

  /// Per op: the registers that nothing on any path to it has written and that
  /// it writes under a guard.
  std::vector<std::vector<uint32_t>>
  firstGuardedWrites(const VirtualBlock &block,
                     const BitSet &definedBefore) const {
    std::vector<std::vector<uint32_t>> result(block.end - block.begin);
    std::set<uint32_t> written;
    for (uint32_t i = block.begin; i < block.end; ++i)
      for (const Reference &reference : ops[i].references) {
        if (!reference.isDefinition)
          continue;
        bool isFirst = !definedBefore.test(reference.reg) &&
                       written.insert(reference.reg).second;
        if (isFirst && isPartial(ops[i]))
          result[i - block.begin].push_back(reference.reg);
      }
    return result;
  }

  void scan() {
    std::vector<uint32_t> order;
    for (uint32_t reg = 0; reg < registers.size(); ++reg)
      if (intervals[reg].start != kUnset)
        order.push_back(reg);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(intervals[a].start, a) <
             std::pair(intervals[b].start, b);
    });
    std::multimap<uint32_t, uint32_t> active; // end -> register
    uint32_t alive = 0;
    for (uint32_t reg : order) {
      uint32_t start = intervals[reg].start;
      // A register that is read by the op that writes this one still counts.
      while (!active.empty() && active.begin()->first + 1 < start) {
        release(active.begin()->second);
        alive -= registers[active.begin()->second].rows;
        active.erase(active.begin());
      }
      uint32_t source = dyingSource(reg);
      if (source != kUnset) {
        rows[reg] = rows[source];
        auto range = active.equal_range(intervals[source].end);
        for (auto entry = range.first; entry != range.second; ++entry)
          if (entry->second == source) {
            active.erase(entry);
            break;
          }
      } else {
        bool isPredicate = registers[reg].rows == 0;
        rows[reg] = (isPredicate ? predicates : general)
                        .take(isPredicate ? 1 : registers[reg].rows);
        alive += registers[reg].rows;
        result.pressure = std::max(result.pressure, alive);
      }
      active.emplace(intervals[reg].end, reg);
    }
  }

  /// A source of the op that begins `reg`'s life, ending there, of equal size.
  uint32_t dyingSource(uint32_t reg) const {
    uint32_t start = intervals[reg].start;
    if (start % 2 == 0)
      return kUnset;
    const VirtualOp &op = ops[start / 2];
    if (op.op.kind != OpKind::Register || registers[reg].rows == 0)
      return kUnset;
    unsigned definitions = 0;
    uint32_t candidate = kUnset;
    for (const Reference &reference : op.references) {
      if (reference.isDefinition) {
        definitions += registers[reference.reg].rows != 0;
        if (reference.slot == Slot::Pool)
          return kUnset;
        continue;
      }
      const Interval &interval = intervals[reference.reg];
      if (interval.end == start - 1 &&
          registers[reference.reg].rows == registers[reg].rows)
        candidate = reference.reg;
    }
    return definitions == 1 ? candidate : kUnset;
  }

  void release(uint32_t reg) {
    // A result that nobody wants may come long after its instruction, and would
    // hold up the next one to get the row. ptxas makes instructions of it that
    // have no result (RED of ATOM), or lets it go to RZ.
    if (comesLate[reg] && !isRead[reg])
      return;
    if (registers[reg].rows == 0)
      predicates.release(rows[reg], 1);
    else
      general.release(rows[reg], registers[reg].rows);
  }

  void assign(VirtualOp &op) const {
    for (const Reference &reference : op.references) {
      if (reference.isImplicit)
        continue;
      auto row = static_cast<RowIndex>(rows[reference.reg]);
      switch (reference.slot) {
      case Slot::Dst0:
      case Slot::Dst1:
        op.op.dst[static_cast<unsigned>(reference.slot)] = row;
        break;
      case Slot::Guard:
        op.op.guard = row;
        break;
      case Slot::Pool:
        op.pool[reference.poolIndex] = row;
        break;
      default:
        op.op.src[static_cast<unsigned>(reference.slot) -
                  static_cast<unsigned>(Slot::Src0)] = row;
      }
    }
  }

  std::vector<VirtualOp> &ops;
  const std::vector<VirtualBlock> &blocks;
  const std::vector<VirtualRegister> &registers;
  std::vector<Interval> intervals;
  std::vector<bool> isRead, comesLate; // by register
  std::vector<uint32_t> rows;
  std::vector<std::vector<std::vector<uint32_t>>>
      firstWrites; // by block and op
  RowPool general, predicates;
  Allocation result;
};

} // namespace

Allocation allocateRegisters(std::vector<VirtualOp> &ops,
                             const std::vector<VirtualBlock> &blocks,
                             const std::vector<VirtualRegister> &registers) {
  return Allocator(ops, blocks, registers).run();
}

} // namespace kperfir::simt
