//===- CtaRecording.h - Segments, headers and anchors of a CTA ------------===//
//
// What happens once per CTA or once per region, as opposed to once per frame:
// finding the warp's segment, handing its state over, and the beginning and end
// of a recording.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_CTARECORDING_H
#define KPERFIR_PASSES_CTARECORDING_H

#include "passes/BufferPlan.h"
#include "passes/TargetLowering.h"
#include "passes/WarpState.h"

namespace mlir::kperf {

/// A warp's segment. Cursors are addresses in shared memory, or, if the buffer
/// is global, byte offsets from `base`.
struct Segment {
  Value warp, lane, thread;
  Value sampled; // The CTA is recorded.
  Value first;   // Lane 0,
  Value owner;   // of a CTA that is recorded,
  Value active;  // and of a warp that is.
  Value scratch; // i64, the CTA's share of the profile buffer; null in regions
                 // that have no use for it.
  Value header;  // Address of the segment header.
  Value data;    // Cursor of the first data word.
  Value base;    // Global only: i64 address of the first data word.
  Value limit;   // Last cursor at which a frame fits; -1 if not active.
};

class CtaRecording {
public:
  CtaRecording(const BufferPlan &plan, const TargetLowering &target)
      : plan(plan), target(target) {}

  /// The LLVM pointer behind the scratch operand of init or finalize, with a
  /// code in its low bits.
  Value getScratch(Operation *op) const;

  /// `pointer` is what `getScratch` returned. It may be null in a region that
  /// it does not reach: there all comes from shared memory.
  Segment findSegment(LLVMBuilder &b, Value pointer) const;

  /// Of a warp that begins; with sums, of any warp at any time.
  WarpState firstState(LLVMBuilder &b, const Segment &segment) const;
  WarpState loadState(LLVMBuilder &b, const Segment &segment) const;
  void storeState(LLVMBuilder &b, const Segment &segment,
                  WarpState state) const;

  /// Lower init and finalize; both add blocks.
  void begin(Operation *init, const Segment &segment) const;
  void end(Operation *finalize, const Segment &segment, WarpState state) const;

  const BufferPlan &plan;
  const TargetLowering &target;

private:
  /// Of the CTAs that have room, by the code in the low bits of the address.
  Value isSampled(LLVMBuilder &b, Value code) const;
  /// Null if every warp is recorded.
  Value isSelected(LLVMBuilder &b, Value warp) const;
  Value sharedAddress(LLVMBuilder &b) const;
  Value headerOfWarp(LLVMBuilder &b, Value shared, Value scratch,
                     Value warp) const;
  /// Opens a block that only the CTA's first thread runs; `b` is left in it,
  /// and the block after it is returned.
  Block *openFirstThread(LLVMBuilder &b, Operation *at,
                         const Segment &segment) const;
  void clearHeaders(LLVMBuilder &b, const Segment &segment) const;
  /// Appends blocks in front of `after`, where `b` is left, that make the data
  /// words of the same warps 0.
  void clearSums(LLVMBuilder &b, Block *after, const Segment &segment) const;
  /// Append blocks in front of `after` that copy the used words of a warp's
  /// segment, or of all that the warp is to copy, to global memory. Begin at
  /// `b`, which is left elsewhere; continue at `after`.
  void copySegment(LLVMBuilder &b, Value warp, Block *after,
                   const Segment &segment) const;
  void copySegments(LLVMBuilder &b, Block *after, const Segment &segment) const;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_CTARECORDING_H
