//===- WgmmaKernels.cpp - Compiled once per instruction set ---------------===//
//
// Works in the layout of the accumulators: lane 4g + t of the registers for
// eight columns 8j .. holds row g (or g + 8) and column 8j + 2t (or + 1). So a
// step of k multiplies a value of A per lane with four values of B that repeat
// over the lanes. Sums are taken in the order of k, in f32 (see
// MatrixKernels.cpp). Nothing here but this unit's own functions: the linker
// might take the copy of another instruction set.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/WgmmaKernels.h"

#include "Simt/Exec/HalfBits.h"

#include <immintrin.h>

namespace kperfir::simt::KPERFIR_SIMT_ISA {

namespace {
float e4m3ToFloat(uint8_t byte) {
  uint32_t sign = uint32_t(byte & 0x80) << 24;
  if ((byte & 0x7F) == 0x7F)
    return bitsToFloat(sign | 0x7FC00000);
  return bitsToFloat(sign | uint32_t(byte & 0x7F) << 20) *
         bitsToFloat(0x7B800000); // 2^120
}

// --- elements: how many in 32 bytes, and their values ------------------------

struct Half {
  static constexpr unsigned kK = 16;
  using Value = float;
  static void expand(const uint8_t *from, float *to) {
#ifdef __F16C__
    for (unsigned i = 0; i < kK; i += 8)
      _mm256_storeu_ps(to + i,
                       _mm256_cvtph_ps(_mm_loadu_si128(
                           reinterpret_cast<const __m128i *>(from + 2 * i))));
#else
    for (unsigned i = 0; i < kK; ++i) {
      uint16_t bits;
      __builtin_memcpy(&bits, from + 2 * i, sizeof bits);
      to[i] = halfToFloat(bits);
    }
#endif
  }
};

struct BFloat {
  static constexpr unsigned kK = 16;
  using Value = float;
  static void expand(const uint8_t *from, float *to) {
    for (unsigned i = 0; i < kK; ++i) {
      uint16_t bits;
      __builtin_memcpy(&bits, from + 2 * i, sizeof bits);
      to[i] = bitsToFloat(uint32_t(bits) << 16);
    }
  }
};

/// Raw f32 bits, of which the unit uses the upper 19.
struct Tf32 {
  static constexpr unsigned kK = 8;
  using Value = float;
  static void expand(const uint8_t *from, float *to) {
    for (unsigned i = 0; i < kK; ++i) {
      uint32_t bits;
      __builtin_memcpy(&bits, from + 4 * i, sizeof bits);
      to[i] = bitsToFloat(bits & 0xFFFFE000);
    }
  }
};

struct E4M3 {
  static constexpr unsigned kK = 32;
  using Value = float;
  static void expand(const uint8_t *from, float *to) {
    for (unsigned i = 0; i < kK; ++i)
      to[i] = e4m3ToFloat(from[i]);
  }
};

struct E5M2 {
  static constexpr unsigned kK = 32;
  using Value = float;
  static void expand(const uint8_t *from, float *to) {
    for (unsigned i = 0; i < kK; ++i)
      to[i] = halfToFloat(static_cast<uint16_t>(from[i] << 8));
  }
};

template <typename T> struct Integer {
  static constexpr unsigned kK = 32;
  using Value = int32_t;
  static void expand(const uint8_t *from, int32_t *to) {
    for (unsigned i = 0; i < kK; ++i)
      to[i] = static_cast<T>(from[i]);
  }
};

// --- vectors -----------------------------------------------------------------

#if defined(__AVX512F__)
constexpr unsigned kWidth = 16;
#elif defined(__AVX2__)
constexpr unsigned kWidth = 8;
#else
constexpr unsigned kWidth = 4;
#endif
constexpr unsigned kParts = kWarpSize / kWidth;

template <typename T> struct VectorOf;
template <> struct VectorOf<float> {
  typedef float Type __attribute__((vector_size(4 * kWidth)));
};
template <> struct VectorOf<int32_t> {
  typedef uint32_t Type __attribute__((vector_size(4 * kWidth))); // wraps
};
template <typename T> using Vector = typename VectorOf<T>::Type;

template <typename T> Vector<T> load(const void *from) {
  Vector<T> value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

/// Four values, repeated.
template <typename T> Vector<T> repeat(const T *from) {
#if defined(__AVX512F__)
  __m512 wide = _mm512_broadcast_f32x4(
      _mm_loadu_ps(reinterpret_cast<const float *>(from)));
  return __builtin_bit_cast(Vector<T>, wide);
#elif defined(__AVX2__)
  __m256 wide = _mm256_broadcast_ps(reinterpret_cast<const __m128 *>(from));
  return __builtin_bit_cast(Vector<T>, wide);
#else
  return load<T>(from);
#endif
}

// --- the product -------------------------------------------------------------

constexpr unsigned kGroups = 8, kThreads = 4;

/// a[k][half][lane]: the value of A that a lane needs for its row.
template <typename T, unsigned K> struct Left {
  alignas(64) T values[K][2][kWarpSize];
};
/// b[column pair][k][odd][t]: the columns 8j + 2t + odd.
template <typename T, unsigned K> struct Right {
  alignas(64) T values[K][2][kThreads];
};

template <typename Element, typename T>
void spreadA(const WgmmaOperands &operands, Left<T, Element::kK> &left) {
  for (unsigned row = 0; row < kWgmmaRows; ++row) {
    T values[Element::kK];
    Element::expand(operands.a[row], values);
    for (unsigned k = 0; k < Element::kK; ++k) {
      T value = operands.negate ? -values[k] : values[k];
      T *to = left.values[k][row / kGroups] + row % kGroups * kThreads;
      for (unsigned t = 0; t < kThreads; ++t)
        to[t] = value;
    }
  }
}

/// Eight columns from 8 * j on.
template <typename Element, typename T>
void spreadB(const WgmmaOperands &operands, unsigned j,
             Right<T, Element::kK> &right) {
  for (unsigned column = 0; column < 8; ++column) {
    T values[Element::kK];
    Element::expand(operands.b[8 * j + column], values);
    for (unsigned k = 0; k < Element::kK; ++k)
      right.values[k][column % 2][column / 2] = values[k];
  }
}

/// sums[half][odd]: 16 rows, eight columns.
template <typename T, unsigned K>
void accumulate(const Left<T, K> &left, const Right<T, K> &right,
                Vector<T> (&sums)[2][2][kParts]) {
  for (unsigned k = 0; k < K; ++k) {
    Vector<T> even = repeat<T>(right.values[k][0]);
    Vector<T> odd = repeat<T>(right.values[k][1]);
    for (unsigned half = 0; half < 2; ++half)
      for (unsigned part = 0; part < kParts; ++part) {
        Vector<T> a = load<T>(left.values[k][half] + part * kWidth);
        sums[half][0][part] += a * even;
        sums[half][1][part] += a * odd;
      }
  }
}

/// D in registers of 32 bits, four for eight columns.
template <typename T> struct Wide {
  static constexpr unsigned kRegisters = 4;
  static void load(uint32_t *const *d, Vector<T> (&sums)[2][2][kParts]) {
    for (unsigned i = 0; i < 4; ++i)
      __builtin_memcpy(sums[i / 2][i % 2], d[i], kWarpSize * sizeof(T));
  }
  static void store(uint32_t *const *d, const Vector<T> (&sums)[2][2][kParts]) {
    for (unsigned i = 0; i < 4; ++i)
      __builtin_memcpy(d[i], sums[i / 2][i % 2], kWarpSize * sizeof(T));
  }
};

/// Two f16 in a register.
struct Packed {
  static constexpr unsigned kRegisters = 2;
  static void load(uint32_t *const *d, Vector<float> (&sums)[2][2][kParts]) {
    for (unsigned half = 0; half < 2; ++half) {
      float even[kWarpSize], odd[kWarpSize];
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        even[lane] = halfToFloat(static_cast<uint16_t>(d[half][lane]));
        odd[lane] = halfToFloat(static_cast<uint16_t>(d[half][lane] >> 16));
      }
      __builtin_memcpy(sums[half][0], even, sizeof even);
      __builtin_memcpy(sums[half][1], odd, sizeof odd);
    }
  }
  static void store(uint32_t *const *d,
                    const Vector<float> (&sums)[2][2][kParts]) {
    for (unsigned half = 0; half < 2; ++half) {
      float even[kWarpSize], odd[kWarpSize];
      __builtin_memcpy(even, sums[half][0], sizeof even);
      __builtin_memcpy(odd, sums[half][1], sizeof odd);
      for (unsigned lane = 0; lane < kWarpSize; ++lane)
        d[half][lane] =
            floatToHalf(even[lane]) | uint32_t(floatToHalf(odd[lane])) << 16;
    }
  }
};

/// Adds the products of a step to D and keeps within 32 bits.
void addSaturated(const Vector<int32_t> (&products)[2][2][kParts],
                  Vector<int32_t> (&sums)[2][2][kParts]) {
  int32_t add[4 * kWarpSize], to[4 * kWarpSize];
  __builtin_memcpy(add, products, sizeof add);
  __builtin_memcpy(to, sums, sizeof to);
  for (unsigned i = 0; i < 4 * kWarpSize; ++i) {
    int64_t sum = int64_t(to[i]) + add[i];
    to[i] = static_cast<int32_t>(sum > INT32_MAX   ? INT32_MAX
                                 : sum < INT32_MIN ? INT32_MIN
                                                   : sum);
  }
  __builtin_memcpy(sums, to, sizeof to);
}

template <typename ElementA, typename ElementB, typename Sums,
          bool Saturate = false>
void multiply(const WgmmaOperands &operands) {
  using T = typename ElementA::Value;
  constexpr unsigned kK = ElementA::kK;
  static_assert(kK == ElementB::kK);
  Left<T, kK> left;
  spreadA<ElementA>(operands, left);
  for (unsigned j = 0; j < operands.n / 8; ++j) {
    Right<T, kK> right;
    spreadB<ElementB>(operands, j, right);
    uint32_t *const *d = operands.d + j * Sums::kRegisters;
    Vector<T> sums[2][2][kParts] = {};
    if (operands.accumulate)
      Sums::load(d, sums);
    if constexpr (Saturate) {
      Vector<T> products[2][2][kParts] = {};
      accumulate(left, right, products);
      addSaturated(products, sums);
    } else {
      accumulate(left, right, sums);
    }
    Sums::store(d, sums);
  }
}

template <typename A, typename B>
WgmmaKernel floating(const WgmmaShape &shape) {
  return shape.typeD == Type::F16 ? multiply<A, B, Packed>
                                  : multiply<A, B, Wide<float>>;
}

template <typename A, typename B> WgmmaKernel integer(const WgmmaShape &shape) {
  return shape.satfinite ? multiply<A, B, Wide<int32_t>, true>
                         : multiply<A, B, Wide<int32_t>>;
}
} // namespace

WgmmaKernel findWgmma(const WgmmaShape &shape) {
  using S8 = Integer<int8_t>;
  using U8 = Integer<uint8_t>;
  switch (shape.typeA) {
  case Type::F16:
    return floating<Half, Half>(shape);
  case Type::BF16:
    return floating<BFloat, BFloat>(shape);
  case Type::TF32:
    return floating<Tf32, Tf32>(shape);
  case Type::E4M3:
    return shape.typeB == Type::E4M3 ? floating<E4M3, E4M3>(shape)
                                     : floating<E4M3, E5M2>(shape);
  case Type::E5M2:
    return shape.typeB == Type::E4M3 ? floating<E5M2, E4M3>(shape)
                                     : floating<E5M2, E5M2>(shape);
  case Type::S8:
    return shape.typeB == Type::S8 ? integer<S8, S8>(shape)
                                   : integer<S8, U8>(shape);
  case Type::U8:
    return shape.typeB == Type::S8 ? integer<U8, S8>(shape)
                                   : integer<U8, U8>(shape);
  default:
    return nullptr;
  }
}

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
