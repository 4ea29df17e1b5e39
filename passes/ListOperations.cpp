//===- ListOperations.cpp - Tell Python what operations a kernel has ------===//
//
// Owns the JSON that kperfir/passes/view.py reads. Triton's own bindings show
// an operation's name and some attributes, not its location, parent or loops.
//
//===----------------------------------------------------------------------===//

#include "passes/ForeignOps.h"
#include "passes/OperationList.h"
#include "passes/Options.h"
#include "passes/RegionKinds.h"
#include "passes/SourceNames.h"

#include "llvm/Support/JSON.h"

namespace json = llvm::json;

namespace mlir::kperf {
#define GEN_PASS_DEF_LISTOPERATIONS
#include "Passes.h.inc"

namespace {

template <typename T> std::string print(T printable) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printable.print(stream);
  return json::fixUTF8(text);
}

class Lister {
public:
  explicit Lister(const OperationList &list) : list(list) {}

  json::Array run() {
    json::Array operations;
    for (Operation *op : list.getOperations())
      operations.push_back(describe(op));
    return operations;
  }

private:
  json::Object describe(Operation *op) const {
    SourcePlace place = findSource(op->getLoc());
    std::optional<Kind> kind = classifyOp(op);
    json::Array results, operands;
    for (Type type : op->getResultTypes())
      results.push_back(print(type));
    for (Value operand : op->getOperands())
      operands.push_back(list.name(operand));
    json::Object attributes;
    for (NamedAttribute attribute : op->getAttrDictionary())
      attributes[attribute.getName().strref()] = print(attribute.getValue());
    return json::Object{{"name", op->getName().getStringRef()},
                        {"kind", kind ? stringifyKind(*kind) : StringRef()},
                        {"file", json::fixUTF8(place.file)},
                        {"line", static_cast<int64_t>(place.line)},
                        {"column", static_cast<int64_t>(place.column)},
                        {"parent", list.getIndex(op->getParentOp())},
                        {"loop_depth", countLoops(op)},
                        {"partition", findPartition(op)},
                        {"results", std::move(results)},
                        {"operands", std::move(operands)},
                        {"attributes", std::move(attributes)}};
  }

  static int64_t countLoops(Operation *op) {
    int64_t loops = 0;
    for (Operation *up = op->getParentOp(); up; up = up->getParentOp())
      loops += isNamed(up, "scf.for") || isNamed(up, "scf.while");
    return loops;
  }

  static std::string findPartition(Operation *op) {
    for (Region *region = op->getParentRegion(); region;
         region = region->getParentRegion())
      if (isNamed(region->getParentOp(), "ttg.warp_specialize.partitions"))
        return "partition" + std::to_string(region->getRegionNumber());
    return "default";
  }

  const OperationList &list;
};

struct ListOperations : impl::ListOperationsBase<ListOperations> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<FunctionOpInterface> kernel = findKernel(module);
    if (failed(kernel))
      return signalPassFailure();
    std::string text;
    llvm::raw_string_ostream(text)
        << json::Value(Lister(OperationList(*kernel)).run());
    module->setAttr(OperationList::kAttribute,
                    StringAttr::get(&getContext(), text));
  }
};

} // namespace

std::unique_ptr<Pass> createListOperations(OptionTexts texts) {
  OptionReader reader("kperf-list-operations", texts);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<ListOperations>();
}

} // namespace mlir::kperf
