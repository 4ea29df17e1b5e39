//===- VerifyBalance.cpp - Check that regions nest on every path ----------===//

#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/RegionTree.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_VERIFYBALANCE
#include "Passes.h.inc"

namespace {
struct VerifyBalance : impl::VerifyBalanceBase<VerifyBalance> {
  void runOnOperation() override {
    FailureOr<FunctionOpInterface> kernel = findKernel(getOperation());
    if (failed(kernel) || failed(RegionTree::build(*kernel)))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace

std::unique_ptr<Pass> createVerifyBalance(OptionTexts texts) {
  OptionReader reader("kperf-verify-balance", texts);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<VerifyBalance>();
}

} // namespace mlir::kperf
