//===- LaneTypes.h - How values lie in register rows ----------------------===//
//
// Of Lanes.h, whose rules hold here: compiled once per host instruction set,
// and nothing that the linker would merge between them.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_LANETYPES_H
#define KPERFIR_SIMT_EXEC_LANETYPES_H

#include "Simt/Exec/Semantics.h"

#include <immintrin.h>

#ifndef KPERFIR_SIMT_ISA
#error "compile with KPERFIR_SIMT_ISA=baseline, avx2 or avx512"
#endif

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using i8 = int8_t;
using i16 = int16_t;
using i32 = int32_t;
using i64 = int64_t;
using f32 = float;
using f64 = double;

#define LANE KPERFIR_SIMT_INLINE

template <class To, class From> LANE To bitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// --- 16-bit floats -----------------------------------------------------------

/// Exact.
LANE f32 halfToFloat(u32 h) {
  u32 magnitude = (h & 0x7FFF) << 13;
  u32 bits = bitCast<u32>(bitCast<f32>(magnitude) *
                          0x1p112f); // rebias, subnormals too
  bits |= (h & 0x7C00) == 0x7C00 ? 0x7F80'0000u : 0u;
  return bitCast<f32>(bits | (h & 0x8000) << 16);
}

/// To nearest even; NaN becomes 0x7FFF.
LANE u32 floatToHalf(f32 value) {
  u32 bits = bitCast<u32>(value);
  u32 sign = bits >> 16 & 0x8000;
  u32 magnitude = bits & 0x7FFF'FFFF;
  u32 normal = (magnitude - (112u << 23) + 0xFFF + (magnitude >> 13 & 1)) >> 13;
  u32 subnormal = bitCast<u32>(bitCast<f32>(magnitude) + 0.5f) - 0x3F00'0000u;
  u32 result = magnitude < 0x3880'0000u ? subnormal : normal;
  result = magnitude >= 0x4780'0000u ? 0x7C00u : result;
  return magnitude > 0x7F80'0000u ? 0x7FFFu : result | sign;
}

LANE f32 bfloatToFloat(u32 b) { return bitCast<f32>(b << 16); }

/// To nearest even; NaN becomes 0x7FFF.
LANE u32 floatToBfloat(f32 value) {
  u32 bits = bitCast<u32>(value);
  u32 rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7FFF'FFFF) > 0x7F80'0000u ? 0x7FFFu : rounded;
}

struct f16 {
  u16 bits;
  f16() = default;
  LANE explicit f16(f32 value) : bits(static_cast<u16>(floatToHalf(value))) {}
  LANE operator f32() const { return halfToFloat(bits); }
};

struct bf16 {
  u16 bits;
  bf16() = default;
  LANE explicit bf16(f32 value)
      : bits(static_cast<u16>(floatToBfloat(value))) {}
  LANE operator f32() const { return bfloatToFloat(bits); }
};

// --- types in registers ------------------------------------------------------

/// How a value of T lies in a register row: `Word` per lane, E of them for
/// packed types (two f16 in a .b32, two f32 in a .b64).
template <class T, unsigned E> struct Layout;

#define KPERFIR_LAYOUT(T, E, WORD, LETTER, LOAD, STORE)                        \
  template <> struct Layout<T, E> {                                            \
    using Word = WORD;                                                         \
    static constexpr char letter = LETTER;                                     \
    LANE static T load(Word word) { return LOAD; }                             \
    LANE static Word store(T value) { return STORE; }                          \
  };
KPERFIR_LAYOUT(u8, 1, u32, 'b', static_cast<u8>(word), value)
KPERFIR_LAYOUT(i8, 1, u32, 'b', static_cast<i8>(word), static_cast<u8>(value))
KPERFIR_LAYOUT(u16, 1, u32, 'h', static_cast<u16>(word), value)
KPERFIR_LAYOUT(i16, 1, u32, 'h', static_cast<i16>(word),
               static_cast<u16>(value))
KPERFIR_LAYOUT(u32, 1, u32, 'w', word, value)
KPERFIR_LAYOUT(i32, 1, u32, 'w', static_cast<i32>(word),
               static_cast<u32>(value))
KPERFIR_LAYOUT(u64, 1, u64, 'd', word, value)
KPERFIR_LAYOUT(i64, 1, u64, 'd', static_cast<i64>(word),
               static_cast<u64>(value))
KPERFIR_LAYOUT(f32, 1, f32, 'w', word, value)
KPERFIR_LAYOUT(f64, 1, f64, 'd', word, value)
KPERFIR_LAYOUT(u16, 2, u16, 'w', word, value)
KPERFIR_LAYOUT(i16, 2, i16, 'w', word, value)
KPERFIR_LAYOUT(f32, 2, f32, 'd', word, value)

#define KPERFIR_LAYOUT16(T)                                                    \
  template <> struct Layout<T, 1> {                                            \
    using Word = u32;                                                          \
    static constexpr char letter = 'h';                                        \
    LANE static T load(Word word) {                                            \
      return bitCast<T>(static_cast<u16>(word));                               \
    }                                                                          \
    LANE static Word store(T value) { return value.bits; }                     \
  };                                                                           \
  template <> struct Layout<T, 2> {                                            \
    using Word = u16;                                                          \
    static constexpr char letter = 'w';                                        \
    LANE static T load(Word word) { return bitCast<T>(word); }                 \
    LANE static Word store(T value) { return value.bits; }                     \
  };
KPERFIR_LAYOUT16(f16)
KPERFIR_LAYOUT16(bf16)

template <> struct Layout<bool, 1> {
  static constexpr char letter = 'p';
};

/// A source operand, read by element.
template <class T, unsigned E> struct Source {
  const typename Layout<T, E>::Word *words;
  LANE Source(const ExecContext &context, RowIndex row)
      : words(reinterpret_cast<const typename Layout<T, E>::Word *>(
            context.src(row))) {}
  LANE T at(unsigned i) const { return Layout<T, E>::load(words[i]); }
};
template <> struct Source<bool, 1> {
  LaneMask mask;
  LANE Source(const ExecContext &context, RowIndex index)
      : mask(context.predicate(index)) {}
  LANE bool at(unsigned i) const { return mask >> i & 1; }
};

/// Write a predicate in the active lanes only.
LANE void writePredicate(ExecContext &context, PredicateIndex index,
                         LaneMask value, LaneMask active) {
  if (index != kNoPredicate)
    context.predicates[index] =
        (context.predicates[index] & ~active) | (value & active);
}

/// Copy `count` words per lane from `from` to `to` in the active lanes.
template <unsigned E, class Word>
LANE void blend(Word *to, const Word *from, LaneMask active) {
  for (unsigned i = 0; i < kWarpSize * E; ++i)
    to[i] = active >> (i / E) & 1 ? from[i] : to[i];
}

/// The lanes whose word in `flags` is not zero (words are 0 or all ones).
LANE LaneMask collect(const u32 *flags) {
#if defined(__AVX512F__)
  __m512i low = _mm512_load_si512(flags), high = _mm512_load_si512(flags + 16);
  return _mm512_test_epi32_mask(low, low) |
         static_cast<u32>(_mm512_test_epi32_mask(high, high)) << 16;
#elif defined(__AVX2__)
  LaneMask result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    __m256 part = _mm256_load_ps(reinterpret_cast<const f32 *>(flags + 8 * i));
    result |= static_cast<u32>(_mm256_movemask_ps(part)) << 8 * i;
  }
  return result;
#else
  LaneMask result = 0;
  for (unsigned i = 0; i < 8; ++i) {
    __m128 part = _mm_load_ps(reinterpret_cast<const f32 *>(flags + 4 * i));
    result |= static_cast<u32>(_mm_movemask_ps(part)) << 4 * i;
  }
  return result;
#endif
}

} // namespace
} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_LANETYPES_H
