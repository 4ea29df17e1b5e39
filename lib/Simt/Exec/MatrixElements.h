//===- MatrixElements.h - What the registers of mma.sync's fragments hold -===//
//
// Included by MatrixKernels.cpp alone, which is compiled once per instruction
// set.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MATRIXELEMENTS_H
#define KPERFIR_SIMT_EXEC_MATRIXELEMENTS_H

#include "Simt/Exec/HalfBits.h"
#include "Simt/Exec/MicroOp.h"

#include <cstring>
#include <immintrin.h>

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

constexpr unsigned kN = 8;
constexpr unsigned kGroups = 8;  // lane / 4: row of A, column of B
constexpr unsigned kThreads = 4; // lane % 4: place within a row

//===----------------------------------------------------------------------===//
// Element types: how many share a 32-bit register, and their value
//
// expand: the elements of `words` registers in the order of lane and place.
// spread: of eight registers, one from each group, element j to row j of `to`.
//===----------------------------------------------------------------------===//

struct Half {
  static constexpr unsigned kPerRegister = 2;
  using Accumulator = float;
  using Word = uint32_t;
  static void expand(const uint32_t *from, unsigned words, float *to) {
#ifdef __F16C__
    for (unsigned i = 0; i < words; i += 4)
      _mm256_storeu_ps(to + 2 * i,
                       _mm256_cvtph_ps(_mm_loadu_si128(
                           reinterpret_cast<const __m128i *>(from + i))));
#else
    for (unsigned i = 0; i < words; ++i) {
      to[2 * i] = halfToFloat(static_cast<uint16_t>(from[i]));
      to[2 * i + 1] = halfToFloat(static_cast<uint16_t>(from[i] >> 16));
    }
#endif
  }
  static void spread(const uint32_t *from, float (*to)[kN]) {
#ifdef __AVX2__
    __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i *>(from));
    __m256i low = _mm256_and_si256(both, _mm256_set1_epi32(0xFFFF));
    // Packs within each half of the vector.
    __m256i packed = _mm256_permute4x64_epi64(
        _mm256_packus_epi32(low, _mm256_srli_epi32(both, 16)), 0b11'01'10'00);
    _mm256_store_ps(to[0], _mm256_cvtph_ps(_mm256_castsi256_si128(packed)));
    _mm256_store_ps(to[1],
                    _mm256_cvtph_ps(_mm256_extracti128_si256(packed, 1)));
#else
    for (unsigned i = 0; i < kN; ++i) {
      to[0][i] = halfToFloat(static_cast<uint16_t>(from[i]));
      to[1][i] = halfToFloat(static_cast<uint16_t>(from[i] >> 16));
    }
#endif
  }
};

struct BFloat {
  static constexpr unsigned kPerRegister = 2;
  using Accumulator = float;
  using Word = uint32_t;
  static void expand(const uint32_t *from, unsigned words, float *to) {
    for (unsigned i = 0; i < words; ++i) {
      to[2 * i] = bitsToFloat(from[i] << 16);
      to[2 * i + 1] = bitsToFloat(from[i] & 0xFFFF0000);
    }
  }
  static void spread(const uint32_t *from, float (*to)[kN]) {
    for (unsigned i = 0; i < kN; ++i) {
      to[0][i] = bitsToFloat(from[i] << 16);
      to[1][i] = bitsToFloat(from[i] & 0xFFFF0000);
    }
  }
};

/// Raw f32 bits, of which the unit uses the upper 19.
struct Tf32 {
  static constexpr unsigned kPerRegister = 1;
  using Accumulator = float;
  using Word = uint32_t;
  static void expand(const uint32_t *from, unsigned words, float *to) {
    for (unsigned i = 0; i < words; ++i)
      to[i] = bitsToFloat(from[i] & 0xFFFFE000);
  }
  static void spread(const uint32_t *from, float (*to)[kN]) {
    expand(from, kN, to[0]);
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
  using Word = uint32_t;
  static void expand(const uint32_t *from, unsigned words, float *to) {
    for (unsigned i = 0; i < words; ++i)
      for (unsigned j = 0; j < 4; ++j)
        to[4 * i + j] = Convert(static_cast<uint8_t>(from[i] >> 8 * j));
  }
  static void spread(const uint32_t *from, float (*to)[kN]) {
    for (unsigned j = 0; j < 4; ++j)
      for (unsigned i = 0; i < kN; ++i)
        to[j][i] = Convert(static_cast<uint8_t>(from[i] >> 8 * j));
  }
};

template <unsigned Bits, bool Signed> struct Integer {
  static constexpr unsigned kPerRegister = 32 / Bits;
  using Accumulator = int32_t;
  using Word = uint32_t;
  static int32_t element(uint32_t word, unsigned j) {
    uint32_t high = word << (32 - Bits * (j + 1));
    return Signed ? static_cast<int32_t>(high) >> (32 - Bits)
                  : static_cast<int32_t>(high >> (32 - Bits));
  }
  static void expand(const uint32_t *from, unsigned words, int32_t *to) {
    for (unsigned i = 0; i < words; ++i)
      for (unsigned j = 0; j < kPerRegister; ++j)
        to[kPerRegister * i + j] = element(from[i], j);
  }
  static void spread(const uint32_t *from, int32_t (*to)[kN]) {
    for (unsigned j = 0; j < kPerRegister; ++j)
      for (unsigned i = 0; i < kN; ++i)
        to[j][i] = element(from[i], j);
  }
};

struct Double {
  static constexpr unsigned kPerRegister = 1;
  using Accumulator = double;
  using Word = double;
  static void expand(const double *from, unsigned words, double *to) {
    std::memcpy(to, from, words * sizeof(double));
  }
  static void spread(const double *from, double (*to)[kN]) {
    expand(from, kN, to[0]);
  }
};

//===----------------------------------------------------------------------===//
// Accumulators: registers of the C and D fragments
//===----------------------------------------------------------------------===//

/// One value per register: two registers hold columns 2t and 2t + 1 of a row.
template <typename T> struct Wide {
  static constexpr unsigned kPerRegister = 1;
};
using Float32 = Wide<float>;
using Int32 = Wide<int32_t>;
using Float64 = Wide<double>;

struct Float16 {
  static constexpr unsigned kPerRegister = 2;
  static void expand(const uint32_t *from, float *to) {
    Half::expand(from, kWarpSize, to);
  }
  static void contract(const float *from, uint32_t *to) {
    for (unsigned i = 0; i < kWarpSize; ++i)
      to[i] = floatToHalf(from[2 * i]) | uint32_t(floatToHalf(from[2 * i + 1]))
                                             << 16;
  }
};

} // namespace
} // namespace kperfir::simt::KPERFIR_SIMT_ISA

#endif // KPERFIR_SIMT_EXEC_MATRIXELEMENTS_H
