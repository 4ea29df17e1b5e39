//===- AsyncFlows.h - Which wait completes which asynchronous work --------===//
//
// A *flow* ties the regions that issue asynchronous work to those that wait for
// it. The hardware completes work in order of issue, so a decoder that counts
// executions finds the partner of each, whatever the control flow:
//
// * `commit_group` (cp.async, wgmma, stores by TMA): an issue closes so many
//   groups of its warp; a wait ends when all but the last so many are complete.
// * `mbarrier` (loads by TMA, tcgen05): the n-th issue into a buffer completes
//   with the n-th wait on the barrier, in whichever warp. A wait on a barrier
//   that starts as if complete is `slots` waits ahead.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_ASYNCFLOWS_H
#define KPERFIR_PASSES_ASYNCFLOWS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir::kperf {

/// An operation and the innermost region that it is in, if it is in any.
struct PlacedOp {
  Operation *op;
  std::optional<uint32_t> region;
};

/// True for operations that take part in a flow.
bool isAsync(Operation *op);

/// The flows of a kernel, each a dictionary of `via`, `slots`, `scope` (region
/// whose executions count separately, or -1), and `issue` and `wait`: pairs of
/// a region and a count, flat. `operations` are all of the kernel for which
/// `isAsync` holds. Left out are flows that counting cannot follow: with an
/// operation that has no region of its own, or is in a function that is called;
/// of barriers where it is not known which one an operation uses; with an
/// operation that is predicated in an inner loop.
ArrayAttr findFlows(ArrayRef<PlacedOp> operations,
                    function_ref<bool(uint32_t region)> isOwnRegion,
                    Builder &builder);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_ASYNCFLOWS_H
