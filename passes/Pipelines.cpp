//===- Pipelines.cpp - The list of passes ---------------------------------===//
//
// The order of the table is the order in which a kernel meets the passes; where
// in Triton's compilation each one runs is decided in
// kperfir/compile/pipeline.py.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

using namespace mlir;
using namespace mlir::kperf;

ArrayRef<PassEntry> kperf::listPasses() {
  static constexpr PassEntry entries[] = {
      {"kperf-drop-scopes", createDropScopes},
      {"kperf-keep-module", createKeepModule},
      {"kperf-insert-scopes", createInsertScopes},
      {"kperf-list-operations", createListOperations},
      {"kperf-insert-at", createInsertAt},
      {"kperf-insert-frames", createInsertFrames},
      {"kperf-run-policy", createRunPolicy},
      {"kperf-insert-regions", createInsertRegions},
      {"kperf-verify-balance", createVerifyBalance},
      {"kperf-fill-gaps", createFillGaps},
      {"kperf-assign-frames", createAssignFrames},
      {"kperf-list-layouts", createListLayouts},
      {"kperf-plan-buffer", createPlanBuffer},
      {"convert-kperf-gpu-to-llvm", createConvertKPerfGPUToLLVM},
  };
  static_assert(std::size(entries) == kPassCount);
  return entries;
}
