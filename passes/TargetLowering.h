//===- TargetLowering.h - What differs between GPU targets ----------------===//
//
// Addresses are i32 in shared memory and i64 in global memory; the type of the
// value says which.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_TARGETLOWERING_H
#define KPERFIR_PASSES_TARGETLOWERING_H

#include "passes/LLVMBuilder.h"

#include <memory>

namespace mlir::kperf {

/// Where a warp may store: `address`, in threads where `enabled` holds.
struct StorePlace {
  Value address;
  Value enabled;
};

/// A place in the layout: word `slot` of frames of type `frame`.
struct StampPlace {
  uint32_t frame;
  uint32_t slot;
};

class TargetLowering {
public:
  virtual ~TargetLowering() = default;

  virtual unsigned getWarpSize() const = 0;
  /// Number of bits by which a thread id is shifted to get its warp.
  unsigned getWarpShift() const { return llvm::Log2_32(getWarpSize()); }

  /// What is the same in all lanes is kept apart, and moved whenever it is the
  /// limit of a sum.
  virtual bool movesUniforms() const { return false; }

  virtual Value readThreadId(LLVMBuilder &b) const = 0;
  /// An i32 that LLVM does not know to be `value`: what follows from it is
  /// computed again and takes no register before.
  virtual Value renew(LLVMBuilder &b, Value value) const = 0;
  /// Anew where it stands: LLVM does not keep it from elsewhere.
  virtual Value readCtaId(LLVMBuilder &b, unsigned dimension) const = 0;
  virtual Value readCtaCount(LLVMBuilder &b, unsigned dimension) const = 0;
  virtual Value readClock(LLVMBuilder &b) const = 0;       // i64, cycles
  virtual Value readGlobalTimer(LLVMBuilder &b) const = 0; // i64, ns
  virtual Value readSm(LLVMBuilder &b) const = 0;

  /// Called once per frame, so that what enabling costs is paid once.
  virtual StorePlace prepare(LLVMBuilder &b, StorePlace place) const = 0;
  /// The clock's low word, i32; or, where to wait for it would wait for more,
  /// an i64 whose low word the caller stores when the frame is closed.
  virtual Value readStamp(LLVMBuilder &b, StampPlace stamp) const = 0;
  /// An i32 or i64. `place` is prepared.
  virtual void store(LLVMBuilder &b, StorePlace place, uint32_t offset,
                     Value value) const = 0;
  /// One, two or four words, to an address that is a multiple of their size.
  virtual void storeWords(LLVMBuilder &b, StorePlace place, uint32_t offset,
                          ArrayRef<Value> words) const = 0;
  /// Reads the clock, then the global timer, and stores both, 64 bits each, at
  /// multiples of 8 bytes. `place` is not prepared.
  virtual void storeAnchor(LLVMBuilder &b, StorePlace place,
                           uint32_t clockOffset,
                           uint32_t timerOffset) const = 0;
  /// Notes in the segment header `place` that a lap ended at `lapEnd`.
  virtual void noteLap(LLVMBuilder &b, StorePlace place,
                       Value lapEnd) const = 0;

  virtual Value load(LLVMBuilder &b, Value address, uint32_t offset) const = 0;
  /// The same, or 0 where `place` is not enabled, which may then be anywhere.
  virtual Value loadIf(LLVMBuilder &b, StorePlace place,
                       uint32_t offset) const = 0;
  /// An i32 of the warp's first lane, in all lanes.
  virtual Value broadcastFirst(LLVMBuilder &b, Value word) const = 0;
  /// Four words from a multiple of 16 bytes in shared memory; any where `place`
  /// is not enabled.
  virtual SmallVector<Value, 4> loadWords(LLVMBuilder &b, StorePlace place,
                                          uint32_t offset) const = 0;
  /// Makes stores of the warp's lanes visible to each other.
  virtual void syncWarp(LLVMBuilder &b) const = 0;
};

/// `target` as in `ttg.target`: the generations differ. Default: sm_80, CDNA 3.
std::unique_ptr<TargetLowering> createNvidiaLowering(StringRef target);
std::unique_ptr<TargetLowering> createAmdLowering(StringRef target);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_TARGETLOWERING_H
