//===- RegionTree.cpp - The regions of a kernel and how they nest ---------===//
//
// Simulates the stack of open regions. Each region of a structured operation
// must leave the stack as it found it, but for iterations, which end with the
// region they were started in.
//
//===----------------------------------------------------------------------===//

#include "passes/RegionTree.h"

#include "passes/ForeignOps.h"
#include "passes/RegionKinds.h"

using namespace mlir;
using namespace mlir::kperf;

void RegionTree::number(FunctionOpInterface kernel) {
  auto add = [&](StringRef name, Kind kind, StringRef origin, Location loc) {
    if (ids.try_emplace(name, regions.size()).second)
      regions.push_back({name, kind, origin, loc, -1});
  };
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto mark = dyn_cast<MarkOp>(op))
      add(mark.getEvent(), Kind::Mark, op->getName().getStringRef(),
          op->getLoc());
    auto record = dyn_cast<RecordOp>(op);
    if (record && record.getEdge() == Edge::Start)
      add(record.getRegion(), record.getKind(),
          record.getOrigin().value_or(StringRef()), op->getLoc());
  });
}

namespace mlir::kperf {
class NestingWalk {
public:
  explicit NestingWalk(RegionTree &tree)
      : tree(tree), seen(tree.regions.size(), false) {}

  struct Open {
    StringRef name;
    Operation *start;
  };
  using Stack = SmallVector<Open>;

  LogicalResult visit(Region &region, const Stack &entry);

private:
  LogicalResult visit(Operation *op, Stack &stack);
  LogicalResult start(RecordOp record, Stack &stack);
  LogicalResult end(RecordOp record, Stack &stack);
  LogicalResult leave(Operation *terminator, Stack stack, const Stack &entry);
  LogicalResult flow(Operation *terminator, Block *target, const Stack &stack);
  void noteParent(StringRef name, const Stack &stack);

  RegionTree &tree;
  SmallVector<bool> seen;
  DenseMap<Block *, Stack> entries;
};
} // namespace mlir::kperf

static bool isIteration(const NestingWalk::Open &open) {
  return cast<RecordOp>(open.start).getKind() == Kind::Iteration;
}

static std::string describe(const NestingWalk::Stack &stack) {
  std::string text;
  for (const NestingWalk::Open &open : stack)
    text += (text.empty() ? "\"" : ", \"") + open.name.str() + "\"";
  return text.empty() ? "none" : text;
}

LogicalResult NestingWalk::visit(Region &region, const Stack &entry) {
  if (region.empty())
    return success();
  entries[&region.front()] = entry;
  SmallVector<Block *> worklist{&region.front()};
  llvm::SmallPtrSet<Block *, 8> visited{&region.front()};
  while (!worklist.empty()) {
    Block *block = worklist.pop_back_val();
    Stack stack = entries[block];
    for (Operation &op : *block)
      if (failed(visit(&op, stack)))
        return failure();
    Operation *terminator = block->getTerminator();
    if (terminator->getNumSuccessors() == 0 &&
        failed(leave(terminator, stack, entry)))
      return failure();
    for (Block *target : terminator->getSuccessors()) {
      if (failed(flow(terminator, target, stack)))
        return failure();
      if (visited.insert(target).second)
        worklist.push_back(target);
    }
  }
  return success();
}

LogicalResult NestingWalk::visit(Operation *op, Stack &stack) {
  if (auto record = dyn_cast<RecordOp>(op))
    return record.getEdge() == Edge::Start ? start(record, stack)
                                           : end(record, stack);
  if (auto mark = dyn_cast<MarkOp>(op)) {
    noteParent(mark.getEvent(), stack);
    return success();
  }
  if (isNamed(op, "ttg.warp_specialize")) {
    for (auto [index, region] : llvm::enumerate(listWarpRegions(op)))
      if (failed(visit(*region, index == 0 ? stack : Stack())))
        return failure(); // Partitions are warps of their own.
    return success();
  }
  if (!isControlFlow(op))
    return success();
  for (Region &region : op->getRegions())
    if (failed(visit(region, stack)))
      return failure();
  return success();
}

void NestingWalk::noteParent(StringRef name, const Stack &stack) {
  uint32_t id = tree.getId(name);
  if (!seen[id] && !stack.empty())
    tree.regions[id].parent = tree.getId(stack.back().name);
  seen[id] = true;
}

LogicalResult NestingWalk::start(RecordOp record, Stack &stack) {
  StringRef name = record.getRegion();
  // The next iteration closes the one before it.
  if (record.getKind() == Kind::Iteration && !stack.empty() &&
      stack.back().name == name)
    stack.pop_back();
  for (const Open &open : stack)
    if (open.name == name) {
      InFlightDiagnostic diagnostic = record.emitOpError("starts region \"")
                                      << name << "\" while it is open";
      diagnostic.attachNote(open.start->getLoc()) << "started here";
      return diagnostic;
    }
  noteParent(name, stack);
  stack.push_back({name, record});
  return success();
}

LogicalResult NestingWalk::end(RecordOp record, Stack &stack) {
  StringRef name = record.getRegion();
  if (llvm::none_of(stack, [&](const Open &o) { return o.name == name; }))
    return record.emitOpError("ends region \"")
           << name << "\", which is not open here; open: " << describe(stack);
  while (isIteration(stack.back()))
    stack.pop_back();
  if (stack.back().name != name) {
    InFlightDiagnostic diagnostic =
        record.emitOpError("ends region \"")
        << name << "\" while region \"" << stack.back().name
        << "\", started inside it, is open; regions must nest";
    diagnostic.attachNote(stack.back().start->getLoc()) << "started here";
    return diagnostic;
  }
  stack.pop_back();
  return success();
}

LogicalResult NestingWalk::leave(Operation *terminator, Stack stack,
                                 const Stack &entry) {
  while (stack.size() > entry.size() && isIteration(stack.back()))
    stack.pop_back();
  if (stack.size() > entry.size()) {
    InFlightDiagnostic diagnostic = terminator->emitError("region \"")
                                    << stack.back().name
                                    << "\" is not ended on a path to here";
    diagnostic.attachNote(stack.back().start->getLoc()) << "started here";
    return diagnostic;
  }
  for (auto [index, open] : llvm::enumerate(entry))
    if (index >= stack.size() || stack[index].name != open.name)
      return terminator->emitError("region \"")
             << open.name
             << "\" is ended on some paths only; end it where it was started";
  return success();
}

LogicalResult NestingWalk::flow(Operation *terminator, Block *target,
                                const Stack &stack) {
  auto [known, isNew] = entries.try_emplace(target, stack);
  if (isNew || llvm::equal(known->second, stack,
                           [](auto &a, auto &b) { return a.name == b.name; }))
    return success();
  return terminator->emitError("paths that meet after this have different "
                               "regions open: ")
         << describe(stack) << " here, " << describe(known->second)
         << " on another path";
}

FailureOr<RegionTree> RegionTree::build(FunctionOpInterface kernel) {
  RegionTree tree;
  tree.number(kernel);
  if (failed(NestingWalk(tree).visit(kernel.getFunctionBody(), {})))
    return failure();
  return tree;
}
