//===- HalfBits.h - f16 as bits, for the kernels of matrix instructions ---===//
//
// One value at a time; for whole rows: Lanes.h. Included by units that are
// compiled per instruction set, so everything is inlined by force or unnamed.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_HALF_BITS_H
#define KPERFIR_SIMT_EXEC_HALF_BITS_H

#include "Simt/Exec/MicroOp.h"

#include <cstdint>

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

KPERFIR_SIMT_INLINE float bitsToFloat(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

KPERFIR_SIMT_INLINE float halfToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000) << 16;
  uint32_t magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00)
    return bitsToFloat(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  // The multiplication normalises denormals.
  return bitsToFloat(sign | magnitude << 13) * bitsToFloat(0x77800000);
}

KPERFIR_SIMT_INLINE uint16_t floatToHalf(float value) {
  return __builtin_bit_cast(uint16_t, static_cast<_Float16>(value));
}

} // namespace
} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_HALF_BITS_H
