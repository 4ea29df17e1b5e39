//===- ListLayouts.cpp - Tell Python the linear layouts of accesses -------===//
//
// Owns the JSON that kperfir/compile/access_shapes.py reads: Triton's own
// bindings hand out linear layouts as objects that outlive the interpreter, and
// say so when it ends.
//
//===----------------------------------------------------------------------===//

#include "passes/Options.h"
#include "passes/RegionKinds.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/JSON.h"

namespace json = llvm::json;

namespace mlir::triton::gpu {
/// Exported by libtriton (triton/Dialect/TritonGPU/IR/Dialect.h): the encoding
/// of `type` as a `#ttg.linear`.
Attribute toLinearEncoding(RankedTensorType type);
} // namespace mlir::triton::gpu

namespace mlir::kperf {
#define GEN_PASS_DEF_LISTLAYOUTS
#include "Passes.h.inc"

namespace {

bool isAccess(Operation *op) {
  std::optional<Kind> kind = classifyOp(op);
  return kind && (*kind == Kind::Load || *kind == Kind::Store ||
                  *kind == Kind::AsyncCopy || *kind == Kind::LocalLoad ||
                  *kind == Kind::LocalStore || *kind == Kind::Atomic);
}

/// Of the pointers or numbers that `op` begins with, else of those it makes.
RankedTensorType findTensor(Operation *op) {
  if (op->getNumOperands() > 0)
    if (auto type = dyn_cast<RankedTensorType>(op->getOperand(0).getType()))
      return type;
  if (op->getNumResults() == 0)
    return {};
  return dyn_cast<RankedTensorType>(op->getResult(0).getType());
}

std::string describe(Operation *op) {
  RankedTensorType type = findTensor(op);
  std::string text;
  if (type && type.getEncoding())
    llvm::raw_string_ostream(text) << triton::gpu::toLinearEncoding(type);
  return text;
}

struct ListLayouts : impl::ListLayoutsBase<ListLayouts> {
  void runOnOperation() override {
    json::Array layouts;
    getOperation()->walk([&](Operation *op) {
      if (isAccess(op))
        layouts.push_back(
            json::Array{op->getName().getStringRef(), describe(op)});
    });
    std::string text;
    llvm::raw_string_ostream(text) << json::Value(std::move(layouts));
    getOperation()->setAttr("kperf.layouts",
                            StringAttr::get(&getContext(), text));
    markAllAnalysesPreserved(); // An attribute of the module is no IR of it.
  }
};

} // namespace

std::unique_ptr<Pass> createListLayouts(OptionTexts texts) {
  OptionReader reader("kperf-list-layouts", texts);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<ListLayouts>();
}

} // namespace mlir::kperf
