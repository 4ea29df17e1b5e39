//===- CtaRecording.h - Segments, headers and anchors of a CTA ------------===//
//
// What happens once per CTA or once per region, as opposed to once per frame:
// finding the warp's segment, handing its state over, and the beginning and end
// of a recording. What the warps wait for is what this costs a launch: at the
// beginning only what the first record needs; all that can be known late comes
// at the end, where one warp's latencies overlap.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_CTARECORDING_H
#define KPERFIR_PASSES_CTARECORDING_H

#include "Record/RecordLayout.h"
#include "passes/BufferPlan.h"
#include "passes/TargetLowering.h"
#include "passes/WarpState.h"

#include <array>

namespace mlir::kperf {

constexpr uint32_t bytesOf(uint32_t word) {
  return word * kperfir::record::kWordBytes;
}
constexpr uint32_t kHeaderBytes = bytesOf(kperfir::record::kSegmentHeaderWords);
constexpr uint32_t kSegmentsOffset = bytesOf(kperfir::record::kCtaHeaderWords);

using CtaId = std::array<Value, 3>; // x, y, z.

/// A warp's segment. Cursors are addresses in shared memory, or, if the buffer
/// is global, byte offsets from `base`.
struct Segment {
  Value warp, lane, thread;
  Value sampled; // The CTA takes records. Where they are in shared memory, one
                 // that is left out may do so in vain: that costs the others
                 // less than to find out at the beginning.
  Value leader;  // The CTA's first thread; if global, of one that is recorded.
  Value first;   // Lane 0,
  Value owner;   // of a CTA that is recorded,
  Value active;  // and of a warp that is.
  Value scratch; // i64, the CTA's share of the profile buffer; null where
                 // records do not go there at once.
  Value header;  // Address of the segment header.
  Value data;    // Cursor of the first data word.
  Value base;    // Global only: i64 address of the first data word.
  Value limit;   // In lane 0, the last cursor at which a frame may begin.
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
  /// In shared memory, up to 12 bytes of zeros follow what was written.
  void storeState(LLVMBuilder &b, const Segment &segment,
                  WarpState state) const;

  /// Lower init and finalize; both may add blocks.
  void begin(Operation *init, const Segment &segment) const;
  void end(Operation *finalize, const Segment &segment, WarpState state) const;

  const BufferPlan &plan;
  const TargetLowering &target;

private:
  uint32_t segmentStride() const {
    return plan.global ? plan.segmentBytes() : plan.sharedSegmentBytes();
  }
  /// How many CTAs have room: the low bits of the share's address. Shares are
  /// multiples of them apart, so they are those of the kernel's argument, which
  /// is there before the share is found.
  Value readCode(LLVMBuilder &b, Value pointer) const;
  CtaId readCtaId(LLVMBuilder &b) const;
  /// The CTA's number in the grid.
  Value findCtaIndex(LLVMBuilder &b, const CtaId &id) const;
  /// CTAs from the first on that have room: 2^(code - 1), none with code 0.
  Value findRoom(LLVMBuilder &b, Value code) const;
  /// It is one of these, and of those that are selected.
  Value isSampled(LLVMBuilder &b, Value room, Value ctaIndex) const;
  /// Null if every warp is recorded.
  Value isSelected(LLVMBuilder &b, Value warp) const;
  /// Of what is ours: the first segment, or where a global buffer's address is.
  Value sharedAddress(LLVMBuilder &b) const;
  /// Of the thread's segment, all that follows from where the thread is.
  void locate(LLVMBuilder &b, Segment &segment) const;
  void clearHeaders(LLVMBuilder &b, const Segment &segment) const;
  /// Appends blocks in front of `after`, where `b` is left, that make the data
  /// words of the same warps 0.
  void clearSums(LLVMBuilder &b, Block *after, const Segment &segment) const;

  // The end, in CopyOut.cpp.

  /// Where what the executing lane has written ends: a cursor.
  Value findEnd(LLVMBuilder &b, const Segment &segment, WarpState state) const;
  void storeState(LLVMBuilder &b, const Segment &segment, WarpState state,
                  Value end) const;
  void endInGlobal(LLVMBuilder &b, const Segment &segment,
                   WarpState state) const;
  void endInShared(Operation *finalize, Value thread, WarpState state) const;
  struct Copy;
  /// Appends blocks in front of `after`. Begins at `b`, which is left
  /// elsewhere; continues at `after`.
  void copySegment(LLVMBuilder &b, Copy copy, Block *after) const;
  void loadFirst(LLVMBuilder &b, Copy &copy) const;
  /// The same for the segments of all warps, which the kernel's own share.
  void copySegments(LLVMBuilder &b, const Segment &segment, Copy copy,
                    Block *after) const;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_CTARECORDING_H
