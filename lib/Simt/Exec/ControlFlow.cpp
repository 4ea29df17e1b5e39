//===- ControlFlow.cpp - Basic blocks and where branches meet again -------===//

#include "Simt/Exec/ControlFlow.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

enum class Flow { Next, Branch, Table, Return, Stop };

Flow flowOf(const ptx::Statement &statement) {
  const std::string &mnemonic = statement.mnemonic;
  if (mnemonic == "bra" || mnemonic == "bra.uni")
    return Flow::Branch;
  if (mnemonic.starts_with("brx.idx"))
    return Flow::Table;
  if (mnemonic == "ret" || mnemonic == "ret.uni")
    return Flow::Return;
  if (mnemonic == "exit" || mnemonic == "trap")
    return Flow::Stop;
  return Flow::Next;
}

class Builder {
public:
  explicit Builder(const FlatKernel &kernel) : kernel(kernel) {}

  ControlFlow run() {
    split();
    connect();
    markReachable();
    postDominators();
    return std::move(result);
  }

private:
  /// Flat labels that the statement may jump to.
  std::vector<uint32_t> targets(uint32_t index) const {
    const FlatStatement &flat = kernel.statements[index];
    const Frame &frame = kernel.frames[flat.frame];
    std::vector<uint32_t> labels;
    switch (flowOf(*flat.statement)) {
    case Flow::Branch:
      if (!flat.statement->operands.empty() &&
          flat.statement->operands[0].kind == ptx::OperandKind::Label)
        labels.push_back(frame.labelBase + flat.statement->operands[0].id);
      break;
    case Flow::Table:
      if (flat.statement->operands.size() > 1 &&
          flat.statement->operands[1].kind == ptx::OperandKind::Label)
        for (uint32_t id :
             frame.function->labels[flat.statement->operands[1].id]
                 .branchTargets)
          labels.push_back(frame.labelBase + id);
      break;
    case Flow::Return:
      if (flat.frame != 0)
        labels.push_back(frame.endLabel);
      break;
    default:
      break;
    }
    return labels;
  }

  void split() {
    std::vector<bool> leader(kernel.statements.size() + 1, false);
    leader[0] = true;
    for (uint32_t i = 0; i < kernel.statements.size(); ++i) {
      if (flowOf(*kernel.statements[i].statement) == Flow::Next)
        continue;
      leader[i + 1] = true;
      for (uint32_t label : targets(i))
        leader[kernel.labels[label]] = true;
    }
    std::vector<uint32_t> blockOf(kernel.statements.size());
    for (uint32_t i = 0; i < kernel.statements.size(); ++i) {
      if (leader[i])
        result.blocks.push_back({i, i, {}, false, kNoBlock});
      result.blocks.back().end = i + 1;
      blockOf[i] = static_cast<uint32_t>(result.blocks.size() - 1);
    }
    for (uint32_t statement : kernel.labels)
      result.blockOfLabel.push_back(blockOf[statement]);
  }

  void connect() {
    for (uint32_t b = 0; b < result.blocks.size(); ++b) {
      FlowBlock &block = result.blocks[b];
      const ptx::Statement &last = *kernel.statements[block.end - 1].statement;
      for (uint32_t label : targets(block.end - 1))
        block.successors.push_back(result.blockOfLabel[label]);
      bool falls = flowOf(last) == Flow::Next || last.guard != ptx::kNoRegister;
      if (falls && b + 1 < result.blocks.size())
        block.successors.push_back(b + 1);
      std::sort(block.successors.begin(), block.successors.end());
      block.successors.erase(
          std::unique(block.successors.begin(), block.successors.end()),
          block.successors.end());
    }
  }

  void markReachable() {
    std::vector<uint32_t> work = {0};
    result.blocks[0].isReachable = true;
    while (!work.empty()) {
      uint32_t b = work.back();
      work.pop_back();
      for (uint32_t s : result.blocks[b].successors)
        if (!result.blocks[s].isReachable) {
          result.blocks[s].isReachable = true;
          work.push_back(s);
        }
    }
  }

  /// Cooper, Harvey, Kennedy on the reversed graph. Threads that end early need
  /// not meet the others again, so only the last return counts as the exit: a
  /// path that cannot reach it (early return, trap) does not hold a branch
  /// open.
  void postDominators() {
    auto exit = static_cast<uint32_t>(result.blocks.size());
    uint32_t last = lastReturn();
    std::vector<std::vector<uint32_t>> predecessors(exit + 1);
    for (uint32_t b = 0; b < exit; ++b) {
      const FlowBlock &block = result.blocks[b];
      if (!block.isReachable)
        continue;
      for (uint32_t s : block.successors)
        predecessors[s].push_back(b);
      if (b == last)
        predecessors[exit].push_back(b);
    }
    std::vector<uint32_t> number(exit + 1, kNoBlock),
        order; // post-order from exit
    visit(predecessors, exit, number, order);
    std::vector<uint32_t> dominator(exit + 1, kNoBlock);
    dominator[exit] = exit;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto node = order.rbegin(); node != order.rend(); ++node) {
        if (*node == exit)
          continue;
        uint32_t meet = *node == last ? exit : kNoBlock;
        for (uint32_t s : result.blocks[*node].successors)
          if (dominator[s] != kNoBlock)
            meet = meet == kNoBlock ? s : intersect(meet, s, dominator, number);
        if (meet != kNoBlock && dominator[*node] != meet) {
          dominator[*node] = meet;
          changed = true;
        }
      }
    }
    for (uint32_t b = 0; b < exit; ++b)
      result.blocks[b].postDominator =
          dominator[b] == exit ? kNoBlock : dominator[b];
  }

  uint32_t lastReturn() const {
    for (auto b = static_cast<uint32_t>(result.blocks.size()); b-- > 0;) {
      const FlatStatement &last = kernel.statements[result.blocks[b].end - 1];
      bool isReturn =
          flowOf(*last.statement) == Flow::Return && last.frame == 0;
      bool ends = isReturn || last.statement->mnemonic == "exit";
      if (ends && result.blocks[b].isReachable &&
          last.statement->guard == ptx::kNoRegister)
        return b;
    }
    return kNoBlock;
  }

  static void visit(const std::vector<std::vector<uint32_t>> &edges,
                    uint32_t root, std::vector<uint32_t> &number,
                    std::vector<uint32_t> &order) {
    std::vector<std::pair<uint32_t, size_t>> stack = {{root, 0}};
    std::vector<bool> seen(edges.size(), false);
    seen[root] = true;
    while (!stack.empty()) {
      auto &[node, next] = stack.back();
      if (next < edges[node].size()) {
        uint32_t child = edges[node][next++];
        if (!seen[child]) {
          seen[child] = true;
          stack.emplace_back(child, 0);
        }
        continue;
      }
      number[node] = static_cast<uint32_t>(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  }

  static uint32_t intersect(uint32_t a, uint32_t b,
                            const std::vector<uint32_t> &dominator,
                            const std::vector<uint32_t> &number) {
    while (a != b) {
      while (number[a] < number[b])
        a = dominator[a];
      while (number[b] < number[a])
        b = dominator[b];
    }
    return a;
  }

  const FlatKernel &kernel;
  ControlFlow result;
};

} // namespace

ControlFlow buildControlFlow(const FlatKernel &kernel) {
  return Builder(kernel).run();
}

} // namespace kperfir::simt
