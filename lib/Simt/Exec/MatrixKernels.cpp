//===- MatrixKernels.cpp - mma.sync, compiled per instruction set ---------===//
//
// Every shape is: unpack the fragments into dense matrices, multiply, pack. A
// product of two f16, bf16, tf32 or fp8 values is exact in f32 (ranges apart),
// and sums are taken in the order of k, so that all instruction sets agree.
// Tensor cores sum in another order and with other rounding: results are equal
// within the usual tolerance, not bit for bit.
//
// The types of elements are in MatrixElements.h. No standard containers or
// shared inline functions here: the linker might take the copy of another
// instruction set.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/MatrixKernels.h"

#include "Simt/Exec/MatrixElements.h"

#include <immintrin.h>

namespace kperfir::simt::KPERFIR_SIMT_ISA {

namespace {

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

template <typename T> void interleave(const T *even, const T *odd, T *to) {
#ifdef __AVX2__
  if constexpr (sizeof(T) == sizeof(float)) {
    for (unsigned lane = 0; lane < kWarpSize; lane += 8) {
      __m256 x = _mm256_loadu_ps(reinterpret_cast<const float *>(even + lane));
      __m256 y = _mm256_loadu_ps(reinterpret_cast<const float *>(odd + lane));
      __m256 low = _mm256_unpacklo_ps(x, y), high = _mm256_unpackhi_ps(x, y);
      auto rows = reinterpret_cast<float *>(to + 2 * lane);
      _mm256_store_ps(rows, _mm256_permute2f128_ps(low, high, 0x20));
      _mm256_store_ps(rows + 8, _mm256_permute2f128_ps(low, high, 0x31));
    }
    return;
  }
#endif
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    to[2 * lane] = even[lane];
    to[2 * lane + 1] = odd[lane];
  }
}

template <typename T> void separate(const T *from, T *even, T *odd) {
#ifdef __AVX2__
  if constexpr (sizeof(T) == sizeof(float)) {
    // Shuffles work within each half of the vectors.
    auto inOrder = [](__m256 values) {
      return _mm256_permute4x64_pd(_mm256_castps_pd(values), 0b11'01'10'00);
    };
    for (unsigned lane = 0; lane < kWarpSize; lane += 8) {
      auto rows = reinterpret_cast<const float *>(from + 2 * lane);
      __m256 x = _mm256_load_ps(rows), y = _mm256_load_ps(rows + 8);
      _mm256_storeu_pd(reinterpret_cast<double *>(even + lane),
                       inOrder(_mm256_shuffle_ps(x, y, 0b10'00'10'00)));
      _mm256_storeu_pd(reinterpret_cast<double *>(odd + lane),
                       inOrder(_mm256_shuffle_ps(x, y, 0b11'01'11'01)));
    }
    return;
  }
#endif
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    even[lane] = from[2 * lane];
    odd[lane] = from[2 * lane + 1];
  }
}

/// The registers of each thread's place side by side: the groups' in turn.
template <typename Word> void transpose(const Word *from, Word (*to)[kGroups]) {
  for (unsigned thread = 0; thread < kThreads; ++thread)
    for (unsigned group = 0; group < kGroups; ++group)
      to[thread][group] = from[group * kThreads + thread];
}

#ifdef __AVX2__
void transpose(const uint32_t *from, uint32_t (*to)[kGroups]) {
  auto groupsOf = [&](unsigned i) { // i and i + 4
    auto low = reinterpret_cast<const __m128i *>(from + i * kThreads);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(low + 4), 1);
  };
  __m256i g0 = groupsOf(0), g1 = groupsOf(1), g2 = groupsOf(2),
          g3 = groupsOf(3);
  __m256i low01 = _mm256_unpacklo_epi32(g0, g1);
  __m256i high01 = _mm256_unpackhi_epi32(g0, g1);
  __m256i low23 = _mm256_unpacklo_epi32(g2, g3);
  __m256i high23 = _mm256_unpackhi_epi32(g2, g3);
  auto rows = reinterpret_cast<__m256i *>(to);
  _mm256_store_si256(rows, _mm256_unpacklo_epi64(low01, low23));
  _mm256_store_si256(rows + 1, _mm256_unpackhi_epi64(low01, low23));
  _mm256_store_si256(rows + 2, _mm256_unpacklo_epi64(high01, high23));
  _mm256_store_si256(rows + 3, _mm256_unpackhi_epi64(high01, high23));
}
#endif

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
        for (unsigned i = 0; i < kBlock; ++i)
          rows[i] += a[m + i][k] * column;
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

  using Word = typename ElementA::Word;

  alignas(64) T a[M][K];
  for (unsigned r = 0; r < kRows * K / kSpan; ++r)
    for (unsigned group = 0; group < kGroups; ++group)
      ElementA::expand(
          reinterpret_cast<const Word *>(operands.a[r]) + group * kThreads,
          kThreads, &a[group + 8 * (r % kRows)][r / kRows * kSpan]);
  alignas(64) T b[K][kN];
  for (unsigned r = 0; r < K / kSpan; ++r) {
    alignas(64) Word columns[kThreads][kGroups];
    transpose(reinterpret_cast<const Word *>(operands.b[r]), columns);
    for (unsigned thread = 0; thread < kThreads; ++thread)
      ElementB::spread(columns[thread], b + r * kSpan + thread * kE);
  }

  // C and D: for each 8 rows, columns 2t and 2t + 1 of row `group`, so that the
  // dense rows are the two registers interleaved.
  alignas(64) T c[M * kN];
  for (unsigned half = 0; half < kRows; ++half) {
    T *rows = c + half * kGroups * kN;
    if constexpr (AccC::kPerRegister == 2) {
      AccC::expand(operands.c[half], rows);
    } else {
      interleave(reinterpret_cast<const T *>(operands.c[2 * half]),
                 reinterpret_cast<const T *>(operands.c[2 * half + 1]), rows);
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
      separate(rows, reinterpret_cast<T *>(operands.d[2 * half]),
               reinterpret_cast<T *>(operands.d[2 * half + 1]));
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
