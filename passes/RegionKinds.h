//===- RegionKinds.h - What an operation of a kernel does -----------------===//
//
// Which operations are worth a region, which of them are one region together,
// and what may stand between two records that share a stamp.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_REGIONKINDS_H
#define KPERFIR_PASSES_REGIONKINDS_H

#include "Dialect/KPerf/KPerf.h"

namespace mlir::kperf {

/// The kind of region to put around `op`; none for operations that only
/// compute, and for those that lower to no instruction.
std::optional<Kind> classifyOp(Operation *op);

/// True if `next` belongs into a region of `kind` that is open before it: what
/// a kind is incomplete without, and neighbours that are tiny.
bool continuesRegion(Kind kind, Operation *next);

/// True if `op` costs no or hardly an instruction: constants, arithmetic on
/// scalars, and changes of view. Such operations do not separate records.
bool isTransparent(Operation *op);

/// True if `op` costs no instruction at all, and so can take no time.
bool costsNothing(Operation *op);

/// True if all that `op` does is compute values: it reaches no memory and no
/// other warp. Control flow is what is inside it.
bool isArithmetic(Operation *op);

bool isLoop(Operation *op);

/// True if control flows through regions of `op`.
bool isControlFlow(Operation *op);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_REGIONKINDS_H
