//===- DropScopes.cpp - Forget the user's scopes and marks ----------------===//

#include "passes/Options.h"
#include "passes/ScopeTags.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_DROPSCOPES
#include "Passes.h.inc"

namespace {
struct DropScopes : impl::DropScopesBase<DropScopes> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<Operation *> marks;
    module->walk([&](Operation *op) {
      if (getMark(op))
        marks.push_back(op);
    });
    for (Operation *mark : marks)
      mark->erase();
    ScopeTags().strip(module);
  }
};
} // namespace

std::unique_ptr<Pass> createDropScopes(OptionTexts texts) {
  OptionReader reader("kperf-drop-scopes", texts);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<DropScopes>();
}

} // namespace mlir::kperf
