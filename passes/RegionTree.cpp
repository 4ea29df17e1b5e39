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
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::kperf;

namespace mlir::kperf {
class NestingWalk {
public:
  explicit NestingWalk(RegionTree &tree) : tree(tree) {}

  struct Open {
    StringRef name;
    Operation *start;
    uint32_t region;

    bool operator==(const Open &other) const { return region == other.region; }
  };
  using Stack = SmallVector<Open>;

  LogicalResult visit(Region &region, const Stack &entry);

private:
  LogicalResult visit(Operation *op, Stack &stack);
  LogicalResult start(RecordOp record, Stack &stack);
  LogicalResult end(RecordOp record, Stack &stack);
  LogicalResult leave(Operation *terminator, Stack stack, const Stack &entry);
  LogicalResult flow(Operation *terminator, Block *target, const Stack &stack);
  uint32_t note(Operation *op, RecordedRegion region, const Stack &stack);

  RegionTree &tree;
  llvm::StringMap<uint32_t> regionOfKey;
  DenseMap<Block *, Stack> entries;
};
} // namespace mlir::kperf

static RecordedRegion describeRecord(RecordOp record) {
  return {record.getRegion(),
          record.getKind(),
          record.getOrigin().value_or(StringRef()),
          record.getLoc(),
          Type(),
          /*isUnsigned=*/false,
          /*parent=*/-1};
}

static RecordedRegion describeMark(MarkOp mark) {
  Type value = mark.getValue() ? mark.getValue().getType() : Type();
  return {mark.getEvent(), Kind::Mark, mark->getName().getStringRef(),
          mark.getLoc(),   value,      mark.getIsUnsigned(),
          /*parent=*/-1};
}

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
  if (auto record = dyn_cast<RecordOp>(op)) {
    if (record.getEdge() == Edge::Gap) { // Closed by whatever comes next.
      note(op, describeRecord(record), stack);
      return success();
    }
    return record.getEdge() == Edge::Start ? start(record, stack)
                                           : end(record, stack);
  }
  if (auto mark = dyn_cast<MarkOp>(op)) {
    note(op, describeMark(mark), stack);
    return success();
  }
  if (isAsync(op)) {
    tree.asyncOps.push_back(op);
    if (!stack.empty())
      tree.ids[op] = stack.back().region;
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

/// The region of `op`, which is one already if something of the same kind and
/// name was seen inside the same region.
uint32_t NestingWalk::note(Operation *op, RecordedRegion region,
                           const Stack &stack) {
  region.parent =
      stack.empty() ? -1 : static_cast<int32_t>(stack.back().region);
  std::string key;
  llvm::raw_string_ostream(key)
      << region.parent << ' ' << stringifyKind(region.kind) << ' '
      << region.value << ' ' << region.isUnsigned << ' ' << region.name;
  auto [known, isNew] =
      regionOfKey.try_emplace(key, static_cast<uint32_t>(tree.regions.size()));
  if (isNew)
    tree.regions.push_back(region);
  tree.ids[op] = known->second;
  return known->second;
}

LogicalResult NestingWalk::start(RecordOp record, Stack &stack) {
  StringRef name = record.getRegion();
  // The next iteration closes the one before it.
  if (record.getKind() == Kind::Iteration && !stack.empty() &&
      stack.back().name == name)
    stack.pop_back();
  // A user's scope may hold another one of its name, say in a function it
  // calls.
  for (const Open &open : stack)
    if (open.name == name && record.getKind() != Kind::User) {
      InFlightDiagnostic diagnostic = record.emitOpError("starts region \"")
                                      << name << "\" while it is open";
      diagnostic.attachNote(open.start->getLoc()) << "started here";
      return diagnostic;
    }
  stack.push_back({name, record, note(record, describeRecord(record), stack)});
  return success();
}

LogicalResult NestingWalk::end(RecordOp record, Stack &stack) {
  StringRef name = record.getRegion();
  if (llvm::none_of(stack, [&](const Open &o) { return o.name == name; }))
    return record.emitOpError("ends region \"")
           << name << "\", which is not open here; open: " << describe(stack);
  while (isIteration(stack.back()) && stack.back().name != name)
    stack.pop_back();
  if (stack.back().name != name) {
    InFlightDiagnostic diagnostic =
        record.emitOpError("ends region \"")
        << name << "\" while region \"" << stack.back().name
        << "\", started inside it, is open; regions must nest";
    diagnostic.attachNote(stack.back().start->getLoc()) << "started here";
    return diagnostic;
  }
  tree.ids[record] = stack.back().region;
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
    if (index >= stack.size() || !(stack[index] == open))
      return terminator->emitError("region \"")
             << open.name
             << "\" is ended on some paths only; end it where it was started";
  return success();
}

LogicalResult NestingWalk::flow(Operation *terminator, Block *target,
                                const Stack &stack) {
  auto [known, isNew] = entries.try_emplace(target, stack);
  if (isNew || llvm::equal(known->second, stack))
    return success();
  return terminator->emitError("paths that meet after this have different "
                               "regions open: ")
         << describe(stack) << " here, " << describe(known->second)
         << " on another path";
}

/// Ids as they are documented: the walk above meets the blocks of a
/// control-flow graph in an order of its own.
void RegionTree::numberInProgramOrder(FunctionOpInterface kernel) {
  SmallVector<std::optional<uint32_t>> newIds(regions.size());
  SmallVector<RecordedRegion> ordered;
  auto place = [&](auto &self, uint32_t id) -> void {
    if (newIds[id])
      return;
    RecordedRegion region = regions[id];
    if (region.parent >= 0) {
      self(self, static_cast<uint32_t>(region.parent));
      region.parent =
          static_cast<int32_t>(*newIds[static_cast<uint32_t>(region.parent)]);
    }
    newIds[id] = static_cast<uint32_t>(ordered.size());
    ordered.push_back(region);
  };
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (std::optional<uint32_t> id = getId(op))
      place(place, *id);
  });
  regions = std::move(ordered);
  for (auto &entry : ids)
    entry.second = *newIds[entry.second];
}

FailureOr<RegionTree> RegionTree::build(FunctionOpInterface kernel) {
  RegionTree tree;
  if (failed(NestingWalk(tree).visit(kernel.getFunctionBody(), {})))
    return failure();
  tree.numberInProgramOrder(kernel);
  return tree;
}
