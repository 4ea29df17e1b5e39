//===- KeepModule.cpp - Keep a kernel as it is without records ------------===//
//
// Owns the way back: a compile that fails because of us starts over from here.
// The copy lives in the dialect, and so as long as the context at most. Triton
// prints a module twice for its cache; a third time would take longer than all
// that is inserted into it.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerf/KPerf.h"
#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/Unverified.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_KEEPMODULE
#include "Passes.h.inc"

namespace {

constexpr StringRef kRecordsAttribute = "kperf.records";

struct KeepModule : Unverified<impl::KeepModuleBase<KeepModule>> {
  explicit KeepModule(std::string action) : action(std::move(action)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto &kept = getContext().getLoadedDialect<KPerfDialect>()->keptModule;
    if (action == "keep") {
      module->removeAttr(kRecordsAttribute);
      kept = OpBuilder(&getContext()).clone(*module);
      if (StringRef dialect = findRecords(module); !dialect.empty())
        module->setAttr(kRecordsAttribute,
                        StringAttr::get(&getContext(), dialect));
    } else if (action == "restore") {
      if (!kept) {
        module.emitError("kperf-keep-module: there is nothing to restore");
        return signalPassFailure();
      }
      restore(module, *kept);
    }
    if (action != "keep")
      kept = nullptr;
    leaveToNextVerifier();
  }

  /// The dialect of the first records in `module`, ours or Proton's.
  static StringRef findRecords(ModuleOp module) {
    StringRef found;
    module->walk([&](Operation *op) {
      for (StringRef name : {"kperf_gpu.init", "proton.record"})
        if (isNamed(op, name))
          found = name.split('.').first;
      return found.empty() ? WalkResult::advance() : WalkResult::interrupt();
    });
    return found;
  }

  static void restore(ModuleOp module, Operation *kept) {
    module->setDiscardableAttrs(kept->getDiscardableAttrDictionary());
    module->setLoc(kept->getLoc());
    module.getBodyRegion().takeBody(kept->getRegion(0));
  }

  std::string action;
};

} // namespace

std::unique_ptr<Pass> createKeepModule(OptionTexts texts) {
  OptionReader reader("kperf-keep-module", texts);
  std::string action = "keep";
  reader.readChoice("action", action, {"keep", "restore", "forget"});
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<KeepModule>(std::move(action));
}

} // namespace mlir::kperf
