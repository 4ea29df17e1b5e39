//===- LapEnd.h - What a warp does when half its segment is full ----------===//
//
// Strategy flush: the end of a frame at which a lap may end. NVIDIA GPUs only.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_LAPEND_H
#define KPERFIR_PASSES_LAPEND_H

#include "passes/BufferPlan.h"
#include "passes/LLVMBuilder.h"

namespace mlir::kperf {

/// Bytes of a half that the cursor may have gone through when the largest frame
/// still fits.
uint32_t halfLimit(const BufferPlan &plan);
/// The cursor of a warp that records nothing any more: behind the segment.
uint32_t stoppedCursor(const BufferPlan &plan);

/// \p cursor is where a frame has ended, \p base the address of the segment's
/// data words. Returns where the next frame begins: there, or at the beginning
/// of the other half, or, if nobody empties that, `stoppedCursor`.
Value goOnAfterFrame(LLVMBuilder &b, const BufferPlan &plan, Value cursor,
                     Value base);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_LAPEND_H
