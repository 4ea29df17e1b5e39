//===- FloatModes.h - .ftz, .sat, rounding and NaN of float instructions --===//
//
// Of Lanes.h, whose rules hold here: compiled once per host instruction set,
// and nothing that the linker would merge between them.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_FLOATMODES_H
#define KPERFIR_SIMT_EXEC_FLOATMODES_H

#include "Simt/Exec/LaneTypes.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

enum Mode : unsigned {
  kPlain = 0,
  kFtz = 1,     // subnormal inputs and results become zeros of their sign
  kSat = 2,     // clamp the result to [0, 1]; NaN becomes 0
  kArith = 4,   // a NaN result is the canonical one, as the hardware makes it
  kRelu = 8,    // clamp the result below at 0; NaN stays
  kToZero = 16, // rounding; none of the three: to nearest even
  kDown = 32,
  kUp = 64,
  kFtzSingle = 128, // kFtz, but for f32 operands only (cvt)
  kOneLoop = 256,   // no loop of its own for full warps: half the code, for
                    // costly lambdas
};
constexpr unsigned kRounding = kToZero | kDown | kUp;
template <unsigned M, class T>
constexpr bool kFlushes =
    (M & kFtz) != 0 || ((M & kFtzSingle) != 0 && sizeof(T) == 4);

template <class T> struct FloatTraits {
  static constexpr bool isFloat = false;
};
#define KPERFIR_FLOAT(T, BITS, EXPONENT, NAN_BITS)                             \
  template <> struct FloatTraits<T> {                                          \
    static constexpr bool isFloat = true;                                      \
    using Bits = BITS;                                                         \
    static constexpr BITS exponent = EXPONENT;                                 \
    static constexpr BITS sign =                                               \
        static_cast<BITS>(BITS(1) << (sizeof(BITS) * 8 - 1));                  \
    static constexpr BITS nan = NAN_BITS;                                      \
  };
KPERFIR_FLOAT(f32, u32, 0x7F80'0000u, 0x7FFF'FFFFu)
KPERFIR_FLOAT(f64, u64, 0x7FF0'0000'0000'0000u, 0x7FF8'0000'0000'0000u)
KPERFIR_FLOAT(f16, u16, 0x7C00, 0x7FFF)
KPERFIR_FLOAT(bf16, u16, 0x7F80, 0x7FFF)

template <class T> LANE typename FloatTraits<T>::Bits rawBits(T value) {
  return bitCast<typename FloatTraits<T>::Bits>(value);
}
template <class T> LANE bool isNan(T value) {
  using Traits = FloatTraits<T>;
  if constexpr (sizeof(T) == 2)
    return static_cast<u16>(value.bits & ~Traits::sign) > Traits::exponent;
  else
    return value != value;
}
template <class T> LANE T canonicalNan() {
  return bitCast<T>(FloatTraits<T>::nan);
}

template <class T> LANE T flush(T value) {
  using Traits = FloatTraits<T>;
  auto bits = rawBits(value);
  using Bits = typename Traits::Bits;
  Bits zero = static_cast<Bits>(bits & Traits::sign);
  return bitCast<T>(
      static_cast<Bits>((bits & Traits::exponent) == 0 ? zero : bits));
}

template <unsigned M, class T> LANE T prepare(T value) {
  if constexpr (FloatTraits<T>::isFloat && kFlushes<M, T>)
    return flush(value);
  else
    return value;
}

template <unsigned M, class T> LANE T finish(T value) {
  if constexpr (FloatTraits<T>::isFloat) {
    if constexpr ((M & kArith) != 0 &&
                  sizeof(T) > 2) // 2-byte ones are canonical by conversion
      value = isNan(value) ? canonicalNan<T>() : value;
    if constexpr (kFlushes<M, T>)
      value = flush(value);
    if constexpr ((M & kSat) != 0) {
      if constexpr (sizeof(T) == 2) {
        f32 wide = value;
        wide = wide > 0.0f ? wide : 0.0f; // NaN and -0 too
        value = T(wide < 1.0f ? wide : 1.0f);
      } else {
        value = value > T(0) ? value : T(0);
        value = value < T(1) ? value : T(1);
      }
    }
    if constexpr ((M & kRelu) != 0) {
      if constexpr (sizeof(T) == 2)
        value.bits =
            (value.bits & 0x8000) != 0 && !isNan(value) ? u16(0) : value.bits;
      else
        value = value < T(0) ? T(0) : value;
    }
  }
  return value;
}

} // namespace
} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_FLOATMODES_H
