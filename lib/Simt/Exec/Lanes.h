//===- Lanes.h - From a function on one lane to a warp instruction --------===//
//
// `lane<[](u32 a, u32 b) { return a + b; }>` is the Form of an instruction that
// applies the lambda to every active lane; the types of its parameters say
// which registers it takes. Included by the units that are compiled once per
// host instruction set (KPERFIR_SIMT_ISA). Everything here is in an unnamed
// namespace or always inlined, and the standard library's functions stay out:
// code that the linker merges between units must not depend on the instruction
// set.
//
// Destination rows equal a source row or are disjoint from all (the register
// allocator sees to it), so lane loops carry no dependence.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_LANES_H
#define KPERFIR_SIMT_EXEC_LANES_H

#include "Simt/Exec/Semantics.h"

#include <immintrin.h>
#include <utility>

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

// --- float modes -------------------------------------------------------------

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

// --- warp instructions -------------------------------------------------------

template <unsigned... I> using Sequence = std::integer_sequence<unsigned, I...>;
template <unsigned N> using Iota = std::make_integer_sequence<unsigned, N>;

template <auto F, unsigned M, unsigned E, class Signature> struct LaneWise;

template <auto F, unsigned M, unsigned E, class D, class... S>
struct LaneWise<F, M, E, D (*)(S...)> {
  static constexpr char signature[] = {Layout<D, E>::letter, '=',
                                       Layout<S, E>::letter..., '\0'};

  template <unsigned... I>
  LANE static void apply(ExecContext &context, const MicroOp &op,
                         LaneMask active, Sequence<I...>) {
    loop(context, op, active, Source<S, E>(context, op.src[I])...);
  }

  LANE static void loop(ExecContext &context, const MicroOp &op,
                        LaneMask active, Source<S, E>... sources) {
    constexpr unsigned n = kWarpSize * E;
    if constexpr (sizeof(D) == 1 && Layout<D, E>::letter == 'p') {
      alignas(64) u32 flags[kWarpSize];
      for (unsigned i = 0; i < n; ++i)
        flags[i] = F(prepare<M>(sources.at(i))...) ? ~0u : 0u;
      writePredicate(context, op.dst[0], collect(flags), active);
    } else {
      using Word = typename Layout<D, E>::Word;
      Word *to = reinterpret_cast<Word *>(context.dst(op.dst[0]));
      if constexpr ((M & (kOneLoop | kRounding)) == 0) {
        if (active == kFullMask) [[likely]] {
#pragma GCC ivdep
          for (unsigned i = 0; i < n; ++i)
            to[i] =
                Layout<D, E>::store(finish<M>(F(prepare<M>(sources.at(i))...)));
          return;
        }
      }
      alignas(64) Word result[n];
      for (unsigned i = 0; i < n; ++i)
        result[i] =
            Layout<D, E>::store(finish<M>(F(prepare<M>(sources.at(i))...)));
      if ((M & (kOneLoop | kRounding)) != 0 && active == kFullMask)
        __builtin_memcpy(to, result, sizeof result);
      else
        blend<E>(to, result, active);
    }
  }

  [[gnu::noinline]] static void run(ExecContext &context, const MicroOp &op,
                                    LaneMask active) {
    apply(context, op, active, Iota<sizeof...(S)>{});
  }

  /// The same in another rounding mode. `run` is not inlined, so none of its
  /// arithmetic moves across the switches.
  static void runRounded(ExecContext &context, const MicroOp &op,
                         LaneMask active) {
    constexpr unsigned mode = (M & kToZero) ? _MM_ROUND_TOWARD_ZERO
                              : (M & kDown) ? _MM_ROUND_DOWN
                                            : _MM_ROUND_UP;
    unsigned saved = _mm_getcsr();
    _mm_setcsr((saved & ~unsigned(_MM_ROUND_MASK)) | mode);
    run(context, op, active);
    _mm_setcsr(saved);
  }

  static constexpr Handler handler = (M & kRounding) != 0 ? &runRounded : &run;
};

/// Form of an instruction that applies F to each lane.
template <auto F, unsigned M = kPlain>
inline constexpr Form lane = {LaneWise<F, M, 1, decltype(+F)>::signature,
                              LaneWise<F, M, 1, decltype(+F)>::handler};
/// The same to both halves of each lane's packed registers.
template <auto F, unsigned M = kPlain>
inline constexpr Form lane2 = {LaneWise<F, M, 2, decltype(+F)>::signature,
                               LaneWise<F, M, 2, decltype(+F)>::handler};

// A lambda over `a`, `a, b` or `a, b, c` of one type that returns it.
#define UNARY(T, ...) [](T a) -> T { return static_cast<T>(__VA_ARGS__); }
#define BINARY(T, ...) [](T a, T b) -> T { return static_cast<T>(__VA_ARGS__); }
#define TERNARY(T, ...)                                                        \
  [](T a, T b, T c) -> T { return static_cast<T>(__VA_ARGS__); }

// --- fused multiply-add ------------------------------------------------------

/// s + error, rounded to odd: the neighbour of the exact sum whose last bit is
/// set. Rounding that once more to at most precision - 2 bits is correct
/// rounding.
LANE f64 toOdd(f64 sum, f64 error) {
  u64 bits = bitCast<u64>(sum);
  bool inexact = error < 0.0 || error > 0.0;
  bool away = (error < 0.0) != (sum < 0.0); // the exact value is nearer to zero
  u64 odd = away ? bits - 1 : bits + 1;
  return bitCast<f64>(inexact && (bits & 1) == 0 ? odd : bits);
}
LANE f32 toOdd(f32 sum, f32 error) {
  u32 bits = bitCast<u32>(sum);
  bool inexact = error < 0.0f || error > 0.0f;
  bool away = (error < 0.0f) != (sum < 0.0f);
  u32 odd = away ? bits - 1 : bits + 1;
  return bitCast<f32>(inexact && (bits & 1) == 0 ? odd : bits);
}
/// a + b rounded to odd; the operands may be of any magnitude.
template <class T> LANE T addToOdd(T a, T b) {
  T sum = a + b;
  T part = sum - a;
  return toOdd(sum, (a - (sum - part)) + (b - part));
}

LANE f32 fma(f32 a, f32 b, f32 c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<f32>(
      addToOdd(static_cast<f64>(a) * static_cast<f64>(b), static_cast<f64>(c)));
#endif
}
LANE f64 fma(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
/// The product of two halves is exact in f32.
LANE f16 fma(f16 a, f16 b, f16 c) {
  return f16(addToOdd(f32(a) * f32(b), f32(c)));
}
LANE bf16 fma(bf16 a, bf16 b, bf16 c) {
  f64 sum = addToOdd(static_cast<f64>(f32(a)) * static_cast<f64>(f32(b)),
                     static_cast<f64>(f32(c)));
  f32 narrow = static_cast<f32>(sum);
  u32 bits = bitCast<u32>(narrow);
  f64 back = narrow;
  bits = __builtin_fabs(back) > __builtin_fabs(sum) ? bits - 1 : bits;
  return bf16(bitCast<f32>(back < sum || back > sum ? bits | 1 : bits));
}

} // namespace
} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_LANES_H
