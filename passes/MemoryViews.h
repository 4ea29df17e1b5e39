//===- MemoryViews.h - Which allocation a view of memory is of ------------===//

#ifndef KPERFIR_PASSES_MEMORYVIEWS_H
#define KPERFIR_PASSES_MEMORYVIEWS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

namespace mlir::kperf {

/// Shared or tensor memory.
bool isAllocation(Operation *op);

/// The type of a view of memory: no tensor, but a type with a shape. Null if
/// `value` is none.
ShapedType getMemory(Value value);

/// True for one mbarrier and for an array of them.
bool isBarrier(Value value);

/// The one allocation that `value` is a view of, through loops, branches and
/// captures; null if it may be another.
Operation *findAllocation(Value value);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_MEMORYVIEWS_H
