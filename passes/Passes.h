//===- Passes.h - The passes of kperfir and how to make them --------------===//
//
// Each pass is made from option texts ("buffer-bytes=1024"), the form in which
// Triton's plugin interface hands options over. Options.h owns the parsing.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_PASSES_H
#define KPERFIR_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <string>

namespace mlir::kperf {

#define GEN_PASS_DECL
#include "Passes.h.inc"

using OptionTexts = ArrayRef<std::string>;

std::unique_ptr<Pass> createKeepModule(OptionTexts texts);
std::unique_ptr<Pass> createListLayouts(OptionTexts texts);
std::unique_ptr<Pass> createListOperations(OptionTexts texts);
std::unique_ptr<Pass> createInsertAt(OptionTexts texts);
std::unique_ptr<Pass> createInsertFrames(OptionTexts texts);
std::unique_ptr<Pass> createRunPolicy(OptionTexts texts);
std::unique_ptr<Pass> createDropScopes(OptionTexts texts);
std::unique_ptr<Pass> createInsertScopes(OptionTexts texts);
std::unique_ptr<Pass> createInsertRegions(OptionTexts texts);
std::unique_ptr<Pass> createFillGaps(OptionTexts texts);
std::unique_ptr<Pass> createVerifyBalance(OptionTexts texts);
std::unique_ptr<Pass> createAssignFrames(OptionTexts texts);
std::unique_ptr<Pass> createPlanBuffer(OptionTexts texts);
std::unique_ptr<Pass> createConvertKPerfGPUToLLVM(OptionTexts texts);

/// A pass by the flag it has on the command line.
struct PassEntry {
  StringRef flag;
  std::unique_ptr<Pass> (*create)(OptionTexts);
};

constexpr size_t kPassCount = 14;

/// All passes, in the order in which a kernel goes through them.
ArrayRef<PassEntry> listPasses();

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_PASSES_H
