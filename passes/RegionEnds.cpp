//===- RegionEnds.cpp - What comes before a loop, and after it ------------===//

#include "passes/RegionEnds.h"

#include "passes/RegionKinds.h"

using namespace mlir;
using namespace mlir::kperf;

/// The record next to a loop that belongs to it, or the loop.
static Operation *includeRecord(Operation *loop, Operation *neighbour) {
  auto record = dyn_cast_or_null<RecordOp>(neighbour);
  return record && record.getKind() == Kind::Loop ? neighbour : loop;
}

/// False if there is none.
static bool findRecord(Stretch &stretch) {
  for (Operation *op = stretch.first;
       op && op != stretch.end && !stretch.record; op = op->getNextNode())
    op->walk([&](RecordOp record) {
      stretch.record = record;
      return WalkResult::interrupt();
    });
  return static_cast<bool>(stretch.record);
}

/// Cuts off the end of a stretch in which a region is left open.
static void leaveOutOpenRegions(Stretch &stretch) {
  SmallVector<RecordOp> open;
  for (Operation *op = stretch.first; op != stretch.end; op = op->getNextNode())
    if (auto record = dyn_cast<RecordOp>(op)) {
      if (record.getEdge() == Edge::Start)
        open.push_back(record);
      else if (!open.empty() && open.back().getRegion() == record.getRegion())
        open.pop_back();
    }
  if (!open.empty())
    stretch.end = open.front();
}

/// Cuts off the begin of a stretch up to the last end of a region that was
/// started before it.
static void leaveOutEndedRegions(Stretch &stretch) {
  unsigned open = 0;
  for (Operation *op = stretch.first; op != stretch.end; op = op->getNextNode())
    if (auto record = dyn_cast<RecordOp>(op)) {
      if (record.getEdge() == Edge::Start)
        ++open;
      else if (open > 0)
        --open;
      else
        stretch.first = op->getNextNode();
    }
}

std::optional<Stretch> kperf::findPrologue(Block &block) {
  auto loop = llvm::find_if(block, [](Operation &op) { return isLoop(&op); });
  if (!block.isEntryBlock() || loop == block.end())
    return std::nullopt;
  Stretch stretch{&block.front(), includeRecord(&*loop, loop->getPrevNode()),
                  RecordOp()};
  leaveOutOpenRegions(stretch);
  if (!findRecord(stretch))
    return std::nullopt;
  return stretch;
}

std::optional<Stretch> kperf::findEpilogue(Block &block) {
  auto loop = llvm::find_if(llvm::reverse(block),
                            [](Operation &op) { return isLoop(&op); });
  if (block.getNumSuccessors() != 0 || loop == block.rend())
    return std::nullopt;
  Operation *last = includeRecord(&*loop, loop->getNextNode());
  Stretch stretch{last->getNextNode(), block.getTerminator(), RecordOp()};
  leaveOutEndedRegions(stretch);
  if (!findRecord(stretch))
    return std::nullopt;
  return stretch;
}
