//===- MatrixKernels.cpp - mma.sync, compiled once per instruction set
//-----===//
//
// Every shape is: unpack the fragments into dense matrices, multiply, pack. A
// product of two f16, bf16, tf32 or fp8 values is exact in f32 (ranges apart),
// and sums are taken in the order of k, so that all instruction sets agree.
// Tensor cores sum in another order and with other rounding: results are equal
// within the usual tolerance, not bit for bit.
//
// No standard containers or shared inline functions here: the linker might
// take the copy of another instruction set.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/MatrixKernels.h"

#include "Simt/Exec/HalfBits.h"

#include <immintrin.h>

namespace kperfir::simt::KPERFIR_SIMT_ISA {

namespace {
//===----------------------------------------------------------------------===//
// Element types: how many share a 32-bit register, and their value
//===----------------------------------------------------------------------===//

struct Half {
  static constexpr unsigned kPerRegister = 2;
  using Accumulator = float;
  static void expand(const uint32_t *from, float *to) {
#ifdef __F16C__
    for (unsigned i = 0; i < kWarpSize; i += 4)
      _mm256_storeu_ps(to + 2 * i,
                       _mm256_cvtph_ps(_mm_loadu_si128(
                           reinterpret_cast<const __m128i *>(from + i))));
#else
    for (unsigned i = 0; i < kWarpSize; ++i) {
      to[2 * i] = halfToFloat(static_cast<uint16_t>(from[i]));
      to[2 * i + 1] = halfToFloat(static_cast<uint16_t>(from[i] >> 16));
    }
#endif
  }
};

struct BFloat {
  static constexpr unsigned kPerRegister = 2;
  using Accumulator = float;
  static void expand(const uint32_t *from, float *to) {
    for (unsigned i = 0; i < kWarpSize; ++i) {
      to[2 * i] = bitsToFloat(from[i] << 16);
      to[2 * i + 1] = bitsToFloat(from[i] & 0xFFFF0000);
    }
  }
};

/// Raw f32 bits, of which the unit uses the upper 19.
struct Tf32 {
  static constexpr unsigned kPerRegister = 1;
  using Accumulator = float;
  static void expand(const uint32_t *from, float *to) {
    for (unsigned i = 0; i < kWarpSize; ++i)
      to[i] = bitsToFloat(from[i] & 0xFFFFE000);
  }
};

float e4m3ToFloat(uint8_t byte) {
  uint32_t sign = uint32_t(byte & 0x80) << 24;
  if ((byte & 0x7F) == 0x7F)
    return bitsToFloat(sign | 0x7FC00000);
  return bitsToFloat(sign | uint32_t(byte & 0x7F) << 20) *
         bitsToFloat(0x7B800000); // 2^120
}

float e5m2ToFloat(uint8_t byte) {
  return halfToFloat(static_cast<uint16_t>(byte << 8));
}

template <float (*Convert)(uint8_t)> struct Float8 {
  static constexpr unsigned kPerRegister = 4;
  using Accumulator = float;
  static void expand(const uint32_t *from, float *to) {
    for (unsigned i = 0; i < kWarpSize; ++i)
      for (unsigned j = 0; j < 4; ++j)
        to[4 * i + j] = Convert(static_cast<uint8_t>(from[i] >> 8 * j));
  }
};

template <unsigned Bits, bool Signed> struct Integer {
  static constexpr unsigned kPerRegister = 32 / Bits;
  using Accumulator = int32_t;
  static void expand(const uint32_t *from, int32_t *to) {
    for (unsigned i = 0; i < kWarpSize; ++i)
      for (unsigned j = 0; j < kPerRegister; ++j) {
        uint32_t high = from[i] << (32 - Bits * (j + 1));
        to[kPerRegister * i + j] =
            Signed ? static_cast<int32_t>(high) >> (32 - Bits)
                   : static_cast<int32_t>(high >> (32 - Bits));
      }
  }
};

struct Double {
  static constexpr unsigned kPerRegister = 1;
  using Accumulator = double;
  static void expand(const uint32_t *from, double *to) {
    std::memcpy(to, from, kWarpSize * sizeof(double));
  }
};

//===----------------------------------------------------------------------===//
// Accumulators: registers of the C and D fragments
//===----------------------------------------------------------------------===//

/// One value per register: two registers hold columns 2t and 2t + 1 of a row.
template <typename T, typename Word> struct Wide {
  static constexpr unsigned kPerRegister = 1;
  static void expand(const uint32_t *from, T *to) {
    std::memcpy(to, from, kWarpSize * sizeof(T));
  }
  static void contract(const T *from, uint32_t *to) {
    std::memcpy(to, from, kWarpSize * sizeof(T));
  }
};
using Float32 = Wide<float, uint32_t>;
using Int32 = Wide<int32_t, uint32_t>;
using Float64 = Wide<double, uint64_t>;

struct Float16 {
  static constexpr unsigned kPerRegister = 2;
  static void expand(const uint32_t *from, float *to) {
    Half::expand(from, to);
  }
  static void contract(const float *from, uint32_t *to) {
    for (unsigned i = 0; i < kWarpSize; ++i)
      to[i] = floatToHalf(from[2 * i]) | uint32_t(floatToHalf(from[2 * i + 1]))
                                             << 16;
  }
};

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// One row of C: eight values, and the operations on all of them.
template <typename T> struct RowOf;
template <> struct RowOf<float> {
  typedef float Type __attribute__((vector_size(32)));
};
template <> struct RowOf<int32_t> {
  typedef uint32_t Type __attribute__((vector_size(32))); // wraps
};

constexpr unsigned kN = 8;
constexpr unsigned kGroups = 8;  // lane / 4: row of A, column of B
constexpr unsigned kThreads = 4; // lane % 4: place within a row

template <typename T> void interleave(const T *even, const T *odd, T *to) {
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    to[2 * lane] = even[lane];
    to[2 * lane + 1] = odd[lane];
  }
}

/// c += a * b, in the order of k; four rows at once hide the latency of adding.
template <unsigned M, unsigned K, typename T>
void accumulate(const T (&a)[M][K], const T (&b)[K][kN], T *c) {
  constexpr unsigned kBlock = 4;
  if constexpr (sizeof(T) == sizeof(double)) {
    for (unsigned m = 0; m < M; ++m)
      for (unsigned k = 0; k < K; ++k)
        for (unsigned n = 0; n < kN; ++n)
          c[m * kN + n] = __builtin_fma(a[m][k], b[k][n], c[m * kN + n]);
  } else {
    using Row = typename RowOf<T>::Type;
    for (unsigned m = 0; m < M; m += kBlock) {
      Row rows[kBlock];
      std::memcpy(rows, c + m * kN, sizeof rows);
      for (unsigned k = 0; k < K; ++k) {
        Row column;
        std::memcpy(&column, b[k], sizeof column);
        rows[0] += a[m][k] * column;
        rows[1] += a[m + 1][k] * column;
        rows[2] += a[m + 2][k] * column;
        rows[3] += a[m + 3][k] * column;
      }
      std::memcpy(c + m * kN, rows, sizeof rows);
    }
  }
}

template <unsigned M, unsigned K>
void accumulateSaturated(const int32_t (&a)[M][K], const int32_t (&b)[K][kN],
                         int32_t *c) {
  // Products of a step fit in 32 bits together; only adding them to c may not.
  alignas(64) int32_t products[M * kN] = {};
  accumulate<M, K>(a, b, products);
  for (unsigned i = 0; i < M * kN; ++i) {
    int64_t sum = int64_t(c[i]) + products[i];
    c[i] = static_cast<int32_t>(sum > INT32_MAX   ? INT32_MAX
                                : sum < INT32_MIN ? INT32_MIN
                                                  : sum);
  }
}

/// Fragment layouts of PTX for m (8 or 16) x 8 x k: lane = 4 * group + thread.
/// A: register r holds row group + 8 * (r % rows), k from
/// r / rows * 4e + thread * e, for e elements per register.
template <typename ElementA, typename ElementB, typename AccD, typename AccC,
          unsigned M, unsigned K, bool Saturate = false>
void multiply(const MmaOperands &operands) {
  using T = typename ElementA::Accumulator;
  constexpr unsigned kE = ElementA::kPerRegister;
  static_assert(kE == ElementB::kPerRegister);
  constexpr unsigned kRows = M / 8;
  constexpr unsigned kSpan = kThreads * kE; // k values of one register

  alignas(64) T a[M][K];
  for (unsigned r = 0; r < kRows * K / kSpan; ++r) {
    alignas(64) T values[kWarpSize * kE];
    ElementA::expand(operands.a[r], values);
    for (unsigned group = 0; group < kGroups; ++group)
      std::memcpy(&a[group + 8 * (r % kRows)][r / kRows * kSpan],
                  values + group * kSpan, kSpan * sizeof(T));
  }
  alignas(64) T b[K][kN];
  for (unsigned r = 0; r < K / kSpan; ++r) {
    alignas(64) T values[kWarpSize * kE];
    ElementB::expand(operands.b[r], values);
    for (unsigned k = 0; k < kSpan; ++k)
      for (unsigned n = 0; n < kN; ++n)
        b[r * kSpan + k][n] = values[n * kSpan + k];
  }

  // C and D: for each 8 rows, columns 2t and 2t + 1 of row `group`, so that the
  // dense rows are the two registers interleaved.
  alignas(64) T c[M * kN];
  for (unsigned half = 0; half < kRows; ++half) {
    T *rows = c + half * kGroups * kN;
    if constexpr (AccC::kPerRegister == 2) {
      AccC::expand(operands.c[half], rows);
    } else {
      alignas(64) T values[2][kWarpSize];
      AccC::expand(operands.c[2 * half], values[0]);
      AccC::expand(operands.c[2 * half + 1], values[1]);
      interleave(values[0], values[1], rows);
    }
  }

  if constexpr (Saturate)
    accumulateSaturated<M, K>(a, b, c);
  else
    accumulate<M, K>(a, b, c);

  for (unsigned half = 0; half < kRows; ++half) {
    const T *rows = c + half * kGroups * kN;
    if constexpr (AccD::kPerRegister == 2) {
      AccD::contract(rows, operands.d[half]);
    } else {
      alignas(64) T values[2][kWarpSize];
      for (unsigned lane = 0; lane < kWarpSize; ++lane) {
        values[0][lane] = rows[2 * lane];
        values[1][lane] = rows[2 * lane + 1];
      }
      AccD::contract(values[0], operands.d[2 * half]);
      AccD::contract(values[1], operands.d[2 * half + 1]);
    }
  }
}

//===----------------------------------------------------------------------===//
// Selection
//===----------------------------------------------------------------------===//

template <typename A, typename B, unsigned M, unsigned K>
MmaKernel floating(const MmaShape &shape) {
  bool halfD = shape.typeD == Type::F16, halfC = shape.typeC == Type::F16;
  if (halfD && halfC)
    return multiply<A, B, Float16, Float16, M, K>;
  if (!halfD && !halfC)
    return multiply<A, B, Float32, Float32, M, K>;
  return nullptr;
}

template <typename A, typename B, unsigned M, unsigned K>
MmaKernel integer(const MmaShape &shape) {
  return shape.satfinite ? multiply<A, B, Int32, Int32, M, K, true>
                         : multiply<A, B, Int32, Int32, M, K, false>;
}

/// Signedness of A and B is free.
template <unsigned Bits, unsigned M, unsigned K>
MmaKernel integerBySign(const MmaShape &shape) {
  using S = Integer<Bits, true>;
  using U = Integer<Bits, false>;
  bool signedA = shape.typeA == Type::S8 || shape.typeA == Type::S4;
  bool signedB = shape.typeB == Type::S8 || shape.typeB == Type::S4;
  if (signedA)
    return signedB ? integer<S, S, M, K>(shape) : integer<S, U, M, K>(shape);
  return signedB ? integer<U, S, M, K>(shape) : integer<U, U, M, K>(shape);
}

template <unsigned M, unsigned K> MmaKernel float8(const MmaShape &shape) {
  using E4M3 = Float8<e4m3ToFloat>;
  using E5M2 = Float8<e5m2ToFloat>;
  if (shape.typeA == Type::E4M3)
    return shape.typeB == Type::E4M3 ? floating<E4M3, E4M3, M, K>(shape)
                                     : floating<E4M3, E5M2, M, K>(shape);
  return shape.typeB == Type::E4M3 ? floating<E5M2, E4M3, M, K>(shape)
                                   : floating<E5M2, E5M2, M, K>(shape);
}

MmaKernel findDouble(const MmaShape &shape) {
  if (shape.m == 8 && shape.k == 4)
    return multiply<Double, Double, Float64, Float64, 8, 4>;
  if (shape.m != 16)
    return nullptr;
  switch (shape.k) {
  case 4:
    return multiply<Double, Double, Float64, Float64, 16, 4>;
  case 8:
    return multiply<Double, Double, Float64, Float64, 16, 8>;
  case 16:
    return multiply<Double, Double, Float64, Float64, 16, 16>;
  default:
    return nullptr;
  }
}
} // namespace

MmaKernel find(const MmaShape &shape) {
  if (shape.n != kN)
    return nullptr;
  bool m16 = shape.m == 16, m8 = shape.m == 8;
  switch (shape.typeA) {
  case Type::F16:
    return !m16            ? nullptr
           : shape.k == 16 ? floating<Half, Half, 16, 16>(shape)
           : shape.k == 8  ? floating<Half, Half, 16, 8>(shape)
                           : nullptr;
  case Type::BF16:
    return !m16            ? nullptr
           : shape.k == 16 ? floating<BFloat, BFloat, 16, 16>(shape)
           : shape.k == 8  ? floating<BFloat, BFloat, 16, 8>(shape)
                           : nullptr;
  case Type::TF32:
    return !m16           ? nullptr
           : shape.k == 8 ? floating<Tf32, Tf32, 16, 8>(shape)
           : shape.k == 4 ? floating<Tf32, Tf32, 16, 4>(shape)
                          : nullptr;
  case Type::S8:
  case Type::U8:
    if (m16 && shape.k == 32)
      return integerBySign<8, 16, 32>(shape);
    if (m16 && shape.k == 16)
      return integerBySign<8, 16, 16>(shape);
    return m8 && shape.k == 16 ? integerBySign<8, 8, 16>(shape) : nullptr;
  case Type::S4:
  case Type::U4:
    if (m16 && shape.k == 64)
      return integerBySign<4, 16, 64>(shape);
    return m16 && shape.k == 32 ? integerBySign<4, 16, 32>(shape) : nullptr;
  case Type::E4M3:
  case Type::E5M2:
    return !m16            ? nullptr
           : shape.k == 32 ? float8<16, 32>(shape)
           : shape.k == 16 ? float8<16, 16>(shape)
                           : nullptr;
  case Type::F64:
    return findDouble(shape);
  default:
    return nullptr;
  }
}

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
