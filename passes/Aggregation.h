//===- Aggregation.h - Sum up executions instead of recording them --------===//
//
// What strategy aggregate does at a stamp: the executions that its events begin
// and end change the sums of their regions (RecordLayout.h), which are in
// memory all the time. Nothing of it is threaded through the control flow.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_AGGREGATION_H
#define KPERFIR_PASSES_AGGREGATION_H

#include "passes/LLVMBuilder.h"
#include "passes/TargetLowering.h"

#include "Dialect/KPerfGPU/KPerfGPU.h"

namespace mlir::kperf {

class Aggregation {
public:
  /// Reads `kperf.regions`, which `kperf-plan-buffer` leaves on the module.
  explicit Aggregation(ModuleOp module);

  /// `sums`: first word of the warp's sums, and whether this thread keeps them.
  void lower(LLVMBuilder &b, kperf_gpu::StampOp stamp, StorePlace sums) const;

private:
  struct Region {
    int32_t parent;
    bool isUnending; // An iteration that others end.
  };

  void apply(LLVMBuilder &b, kperf_gpu::EventAttr event, StorePlace sums,
             Value now) const;
  void endIterations(LLVMBuilder &b, uint32_t loop, StorePlace sums,
                     Value now) const;
  bool ends(kperf_gpu::EventAttr event) const;

  SmallVector<Region> regions;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_AGGREGATION_H
