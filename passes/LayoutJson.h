//===- LayoutJson.h - The layout as the decoder reads it ------------------===//

#ifndef KPERFIR_PASSES_LAYOUTJSON_H
#define KPERFIR_PASSES_LAYOUTJSON_H

#include "passes/BufferPlan.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace mlir::kperf {

struct WarpRole {
  std::string name;
  int64_t firstWarp, warps;
};

/// Which warps run what. Those of partitions are known once Triton has
/// allocated warp groups.
SmallVector<WarpRole> listRoles(FunctionOpInterface kernel,
                                const BufferPlan &plan);

/// The JSON of docs/contracts.md, 3, from `kperf.regions`, `kperf.frames` and
/// the plan, whose hash is set. Compact, keys sorted.
std::string writeLayout(ModuleOp module, FunctionOpInterface kernel,
                        BufferPlan &plan);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_LAYOUTJSON_H
