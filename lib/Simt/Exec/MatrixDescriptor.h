//===- MatrixDescriptor.h - Where wgmma finds a matrix in shared memory ---===//
//
// A matrix is read in units of 16 bytes, which lie as its 64-bit descriptor
// says: along k, or across it where it is transposed.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MATRIXDESCRIPTOR_H
#define KPERFIR_SIMT_EXEC_MATRIXDESCRIPTOR_H

#include "Simt/Exec/TensorMap.h"
#include "Simt/Exec/Warp.h"
#include "Simt/Exec/WgmmaKernels.h"

#include <cstdint>

namespace kperfir::simt {

inline constexpr unsigned kUnitBytes = 16;
inline constexpr unsigned kWarpsPerWarpgroup = 4;

/// Of the 64 rows of its warpgroup, the first one that a warp computes.
inline unsigned firstWgmmaRow(const Warp &warp) {
  return warp.index % kWarpsPerWarpgroup * kWgmmaRows;
}

/// A matrix in shared memory, as its descriptor says.
struct MatrixDescriptor {
  static constexpr unsigned kCoreRows = 8;

  uint32_t start;
  uint32_t leading; // byte offsets; which is which depends on the layout
  uint32_t stride;
  unsigned baseOffset;
  TensorSwizzle swizzle;

  explicit MatrixDescriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3FFF) << 4),
        leading(static_cast<uint32_t>(bits >> 16 & 0x3FFF) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3FFF) << 4),
        baseOffset(static_cast<unsigned>(bits >> 49 & 7)) {
    static constexpr TensorSwizzle kModes[] = {
        TensorSwizzle::None, TensorSwizzle::Bytes128, TensorSwizzle::Bytes64,
        TensorSwizzle::Bytes32};
    swizzle = kModes[bits >> 62];
  }

  /// Bytes of a row of the swizzling pattern; 16 without one.
  uint32_t span() const { return kUnitBytes << static_cast<unsigned>(swizzle); }

  /// 16 bytes along k, of row (or column) `index`; unit 0 or 1 of its 32 bytes.
  uint32_t alongK(uint32_t index, uint32_t unit) const {
    uint32_t offset = index / kCoreRows * stride + index % kCoreRows * span();
    offset += unit * (swizzle == TensorSwizzle::None ? leading : kUnitBytes);
    return swizzled(start + offset, swizzle);
  }

  /// 16 bytes (8 elements) along M or N from `index` on, at step k.
  uint32_t acrossK(uint32_t index, uint32_t k) const {
    uint32_t elements = span() / 2;
    uint32_t blocks = index / elements, groups = k / kCoreRows;
    uint32_t offset = k % kCoreRows * span() + index % elements * 2;
    if (swizzle == TensorSwizzle::None)
      offset += blocks * stride + groups * leading;
    else
      offset += blocks * leading + groups * stride;
    return swizzled(start + offset, swizzle);
  }
};

/// Visits the 16-byte units of `count` rows of A, or columns of B, from `first`
/// on, in the order of the operand.
template <class Visit>
void forEachUnit(const MatrixDescriptor &matrix, bool isTransposed,
                 unsigned first, unsigned count, Visit visit) {
  if (!isTransposed) {
    for (unsigned i = 0; i < count; ++i)
      for (unsigned half = 0; half < 2; ++half)
        visit(matrix.alongK(first + i, half), i, half);
    return;
  }
  constexpr unsigned kK = kWgmmaKBytes / 2, kElements = kUnitBytes / 2;
  for (unsigned k = 0; k < kK; ++k)
    for (unsigned i = 0; i < count; i += kElements)
      visit(matrix.acrossK(first + i, k), i, k);
}

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_MATRIXDESCRIPTOR_H
