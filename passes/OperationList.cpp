//===- OperationList.cpp - Numbers for the operations of a kernel ---------===//

#include "passes/OperationList.h"

#include "passes/ForeignOps.h"

#include "mlir/IR/Block.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::kperf;

OperationList::OperationList(FunctionOpInterface function) : kernel(function) {
  kernel->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == kernel)
      return;
    indices[op] = static_cast<int64_t>(operations.size());
    operations.push_back(op);
  });
}

FailureOr<OperationList> OperationList::take(ModuleOp module) {
  module->removeAttr(kAttribute);
  FailureOr<FunctionOpInterface> kernel = findKernel(module);
  if (failed(kernel))
    return failure();
  return OperationList(*kernel);
}

int64_t OperationList::getIndex(Operation *op) const {
  auto found = indices.find(op);
  return found == indices.end() ? -1 : found->second;
}

std::string OperationList::name(Value value) const {
  if (auto result = dyn_cast<OpResult>(value))
    return ("result:" + Twine(getIndex(result.getOwner())) + ":" +
            Twine(result.getResultNumber()))
        .str();
  auto argument = cast<BlockArgument>(value);
  Block *block = argument.getOwner();
  if (!block->isEntryBlock())
    return {};
  Operation *parent = block->getParentOp();
  if (parent == kernel)
    return ("parameter:" + Twine(argument.getArgNumber())).str();
  if (block->getParent() != &parent->getRegions().back())
    return {};
  return ("argument:" + Twine(getIndex(parent)) + ":" +
          Twine(argument.getArgNumber()))
      .str();
}

Operation *OperationList::findOperation(StringRef digits) const {
  size_t index;
  if (digits.getAsInteger(10, index) || index >= operations.size())
    return nullptr;
  return operations[index];
}

bool OperationList::isCarried(Type type) {
  return type.isInteger(32) || type.isInteger(64) || type.isF32() ||
         type.isF64();
}

LogicalResult OperationList::forEachRequest(
    StringRef text, llvm::function_ref<LogicalResult(StringRef)> insert) {
  for (StringRef request : llvm::split(text, '|'))
    if (!request.empty() && failed(insert(request)))
      return failure();
  return success();
}

Value OperationList::findValue(StringRef name) const {
  auto [kind, rest] = name.split(':');
  auto takeNumber = [&](size_t limit) -> std::optional<size_t> {
    auto [digits, behind] = rest.split(':');
    rest = behind;
    size_t number;
    if (digits.getAsInteger(10, number) || number >= limit)
      return std::nullopt;
    return number;
  };
  auto pick = [&](auto values) -> Value {
    std::optional<size_t> number = takeNumber(values.size());
    return number ? Value(values[*number]) : Value();
  };
  if (kind == "parameter")
    return pick(kernel->getRegion(0).front().getArguments());
  auto [digits, behind] = rest.split(':');
  rest = behind;
  Operation *op = findOperation(digits);
  if (!op)
    return {};
  if (kind == "result")
    return pick(op->getResults());
  if (kind != "argument" || op->getNumRegions() == 0 ||
      op->getRegions().back().empty())
    return {};
  return pick(op->getRegions().back().front().getArguments());
}
