//===- BufferPlan.h - What kperf-plan-buffer decided ----------------------===//
//
// The parameters of RecordLayout for one kernel, as the attribute `kperf.plan`
// of the module on the way from the pass that chooses to the one that lowers.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_BUFFERPLAN_H
#define KPERFIR_PASSES_BUFFERPLAN_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::kperf {

struct BufferPlan {
  bool ring = false;       // Keep the last records, not the first.
  bool aggregate = false;  // Keep no records: sum up executions.
  bool flush = false;      // Keep all: halves are emptied while others fill.
  bool global = false;     // Segments are in the CTA's share of global memory.
  bool handsOver = false;  // Warp-specialised: state passes through headers.
  uint32_t warps = 0;      // Warps that run the kernel's own body.
  uint32_t totalWarps = 0; // Those of partitions included.
  uint32_t wordsPerWarp = 0;
  uint32_t maxFrameWords = 0;
  uint32_t batch = 1;       // Words of a frame that are stored at once.
  uint32_t frameAlign = 1;  // Words of which the size of frames is a multiple.
  uint32_t offset = 0;      // Of our bytes in the CTA's shared memory.
  uint32_t sharedBytes = 0; // If global: bytes used at `offset` all the same.
  uint32_t sampleCtas = 1;  // Every n-th CTA is recorded,
  uint32_t firstCta = 0;    // from this one on,
  uint32_t lastCta = 0;     // up to but without this one; 0: no end.
  uint32_t firstSm = 0;     // The same for SMs.
  uint32_t lastSm = 0;
  uint32_t warpsLow = ~0u;  // A bit for each warp that records: 0 to 31,
  uint32_t warpsHigh = ~0u; // and 32 to 63.
  uint32_t hash = 0;        // Of the layout.

  uint32_t segmentBytes() const;
  uint32_t ctaBytes() const; // A multiple of 16.
  /// In shared memory, from `offset` on, lie the segments, behind each of which
  /// there is room for the zeros that fill its last 16 bytes up, and the CTA's
  /// start anchor.
  uint32_t sharedSegmentBytes() const;
  uint32_t anchorOffset() const { return totalWarps * sharedSegmentBytes(); }
  static uint32_t sharedFixedBytes(uint32_t totalWarps);
  /// A segment's header is kept up to date in memory while the kernel runs.
  bool keepsHeaders() const { return ring || global || handsOver; }
  /// Bytes from the first data word that the cursor may have at frame entry. A
  /// ring begins anew beyond; else the cursor stops there, and the first frame
  /// that passes it is the last one that is written.
  uint32_t limitBytes() const;
  /// So that reading can begin at the first frame.
  bool tagFirst() const { return !ring && !flush && !aggregate; }
  /// What a CTA that is left out keeps in shared memory is not copied. Sums
  /// have to be cleared, and what partitions keep is handed over.
  bool needsSampling() const { return global || handsOver || aggregate; }
  bool selectsCtas() const { return sampleCtas != 1 || firstCta || lastCta; }
  bool selectsSms() const { return firstSm || lastSm; }
  bool selectsWarps() const { return (warpsLow & warpsHigh) != ~0u; }
  /// Shared memory of the CTA, the kernel's and ours.
  uint32_t sharedEnd() const;

  Attribute toAttribute(OpBuilder &builder) const;
  /// Emits a diagnostic if the module has no plan.
  static FailureOr<BufferPlan> fromModule(ModuleOp module);
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_BUFFERPLAN_H
