//===- MemoryViews.cpp - Which allocation a view of memory is of ----------===//

#include "passes/MemoryViews.h"

#include "passes/ForeignOps.h"

using namespace mlir;
using namespace mlir::kperf;

bool kperf::isAllocation(Operation *op) {
  return isNamed(op, "ttg.local_alloc") || isNamed(op, "ttng.tmem_alloc");
}

ShapedType kperf::getMemory(Value value) {
  if (isa<RankedTensorType>(value.getType()))
    return {};
  return dyn_cast<ShapedType>(value.getType());
}

bool kperf::isBarrier(Value value) {
  ShapedType type = getMemory(value);
  return type && type.getElementType().isInteger(64);
}

/// What a loop hands to its next iteration, or behind itself.
static Value getYielded(Region &region, unsigned index) {
  return region.front().getTerminator()->getOperand(index);
}

/// Adds what `argument` may be. False if that is not known.
static bool addSources(BlockArgument argument, SmallVectorImpl<Value> &to) {
  Region *region = argument.getParentRegion();
  Operation *parent = region->getParentOp();
  unsigned index = argument.getArgNumber();
  if (!argument.getOwner()->isEntryBlock())
    return false;
  if (isNamed(parent, "scf.for") && index > 0) {
    to.push_back(parent->getOperand(index + 2)); // Bounds and step come first.
    to.push_back(getYielded(*region, index - 1));
    return true;
  }
  if (isNamed(parent, "scf.while")) {
    Region &before = parent->getRegion(0), &after = parent->getRegion(1);
    if (region == &before) {
      to.push_back(parent->getOperand(index));
      to.push_back(getYielded(after, index));
    } else {
      to.push_back(getYielded(before, index + 1)); // The condition is first.
    }
    return true;
  }
  if (isNamed(parent, "ttg.warp_specialize.partitions")) {
    Operation *around = parent->getParentOp();
    Operation *holder = parent->getNumOperands() ? parent : around;
    if (index >= holder->getNumOperands())
      return false;
    to.push_back(holder->getOperand(index));
    return true;
  }
  return false;
}

/// The same for the result of a view or of control flow.
static bool addSources(OpResult result, SmallVectorImpl<Value> &to) {
  Operation *op = result.getOwner();
  unsigned index = result.getResultNumber();
  StringRef name = op->getName().getStringRef();
  if (name.contains(".memdesc_") && op->getNumOperands() > 0) {
    to.push_back(op->getOperand(0));
  } else if (name == "scf.for") {
    to.push_back(op->getOperand(index + 3));
    to.push_back(getYielded(op->getRegion(0), index));
  } else if (name == "scf.while") {
    to.push_back(getYielded(op->getRegion(0), index + 1));
  } else if (name == "scf.if") {
    to.push_back(getYielded(op->getRegion(0), index));
    to.push_back(getYielded(op->getRegion(1), index));
  } else {
    return false;
  }
  return true;
}

Operation *kperf::findAllocation(Value value) {
  Operation *allocation = nullptr;
  SmallVector<Value> worklist{value};
  llvm::SmallPtrSet<void *, 8> visited;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!visited.insert(next.getAsOpaquePointer()).second)
      continue;
    Operation *op = next.getDefiningOp();
    if (op && isAllocation(op)) {
      if (allocation && allocation != op)
        return nullptr;
      allocation = op;
      continue;
    }
    bool isKnown = op ? addSources(cast<OpResult>(next), worklist)
                      : addSources(cast<BlockArgument>(next), worklist);
    if (!isKnown)
      return nullptr;
  }
  return allocation;
}
