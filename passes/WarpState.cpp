//===- WarpState.cpp - A warp's cursor and record count as SSA values -----===//

#include "passes/WarpState.h"

#include "passes/ForeignOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::kperf;

static constexpr unsigned kStateValues = 2;

StateThreading::StateThreading(Region &region, Type wordType, Location loc)
    : region(region) {
  for (Block &block : llvm::drop_begin(region))
    for (unsigned i = 0; i < kStateValues; ++i)
      block.addArgument(wordType, loc);
}

WarpState StateThreading::enter(Block &block) const {
  if (block.isEntryBlock())
    return {};
  unsigned first = block.getNumArguments() - kStateValues;
  return {block.getArgument(first), block.getArgument(first + 1)};
}

/// Operands of a branch before those of its successors: condition or flag.
static std::optional<unsigned> countLeadingOperands(Operation *branch) {
  return llvm::StringSwitch<std::optional<unsigned>>(
             branch->getName().getStringRef())
      .Cases({"llvm.br", "cf.br"}, 0)
      .Cases({"llvm.cond_br", "cf.cond_br", "llvm.switch", "cf.switch"}, 1)
      .Default(std::nullopt);
}

static LogicalResult extendBranch(Operation *branch, WarpState state) {
  std::optional<unsigned> leading = countLeadingOperands(branch);
  if (!leading)
    return branch->emitError("kperfir cannot follow control flow through ")
           << branch->getName();
  SmallVector<int32_t> sizes; // Operands of each successor, ours included.
  unsigned position = *leading;
  for (Block *target : branch->getSuccessors()) {
    position += target->getNumArguments() - kStateValues;
    branch->insertOperands(position, {state.cursor, state.records});
    position += kStateValues;
    sizes.push_back(target->getNumArguments());
  }
  OpBuilder builder(branch);
  auto setSizes = [&](StringRef name, ArrayRef<int32_t> values) {
    branch->setAttr(name, builder.getDenseI32ArrayAttr(values));
  };
  StringRef name = branch->getName().getStringRef();
  if (name.ends_with(".cond_br"))
    setSizes("operandSegmentSizes", {1, sizes[0], sizes[1]});
  if (name.ends_with(".switch")) {
    ArrayRef<int32_t> cases = ArrayRef(sizes).drop_front();
    int32_t total = std::accumulate(cases.begin(), cases.end(), 0);
    setSizes("operandSegmentSizes", {1, sizes[0], total});
    setSizes("case_operand_segments", cases);
  }
  return success();
}

LogicalResult StateThreading::connect() {
  for (Block &block : region) {
    Operation *terminator = block.getTerminator();
    if (terminator->getNumSuccessors() != 0 &&
        failed(extendBranch(terminator, exits.lookup(&block))))
      return failure();
  }
  return success();
}
