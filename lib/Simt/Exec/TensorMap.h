//===- TensorMap.h - The tensor map of the SIMT device --------------------===//
//
// A tensor map says where a tensor lies and how a box of it is laid out in
// shared memory. Real ones are 128 opaque bytes; so are these, in a format of
// our own, which the driver (kperfir/runtime/arguments.py) and
// tensormap.replace write. Owns that format and the arithmetic of boxes; moves
// no data.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_TENSORMAP_H
#define KPERFIR_SIMT_EXEC_TENSORMAP_H

#include "Simt/Exec/Program.h"

#include <string>

namespace kperfir::simt {

inline constexpr unsigned kTensorMapBytes = 128;
inline constexpr unsigned kMaxTensorRank = 5;

/// Element types, as tensormap.replace numbers them.
enum class TensorElement : uint8_t {
  U8,
  U16,
  U32,
  S32,
  U64,
  S64,
  F16,
  F32,
  F32Ftz,
  F64,
  BF16,
  TF32,
  TF32Ftz,
};

enum class TensorSwizzle : uint8_t { None, Bytes32, Bytes64, Bytes128 };

/// All lists are innermost dimension first. Little-endian, no padding. A map of
/// zeros is one without a tag, in which tensormap.replace may write.
struct TensorMap {
  static constexpr uint32_t kTag = 0x4D54504B; // "KPTM"

  uint32_t tag = 0;
  uint8_t lastDimension = 0; // rank - 1
  uint8_t element = 0;       // TensorElement
  uint8_t swizzle = 0;       // TensorSwizzle
  uint8_t interleave = 0;    // 0
  uint8_t fill = 0;          // 1: NaN outside of the tensor
  uint8_t unused[7] = {};
  uint64_t address = 0;
  uint32_t extent[kMaxTensorRank] = {};
  uint32_t box[kMaxTensorRank] = {};
  uint32_t elementStride[kMaxTensorRank] = {};
  uint32_t unused2 = 0;
  uint64_t stride[kMaxTensorRank - 1] = {}; // bytes, from dimension 1 on
  uint8_t unused3[8] = {};

  unsigned rank() const { return lastDimension + 1u; }
  unsigned elementBytes() const;
  /// Type for reductions.
  Type elementType() const;
  unsigned boxBytes() const;
  /// Why nothing can be done with it, or "".
  std::string problem() const;
  /// What tensormap.replace does. False if the value is not possible.
  bool replace(TensormapField field, unsigned dimension, uint64_t value);
};
static_assert(sizeof(TensorMap) == kTensorMapBytes);

/// Address in shared memory of the byte that would be at `address` without
/// swizzling: the 16-byte units of a row trade places, by the row.
inline uint32_t swizzled(uint32_t address, TensorSwizzle swizzle) {
  uint32_t rows = (1u << static_cast<unsigned>(swizzle)) - 1;
  return address ^ ((address >> 7 & rows) << 4);
}

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_TENSORMAP_H
