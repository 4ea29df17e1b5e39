//===- MatrixKernelsTest.cpp - mma.sync against plain products ------------===//
//
// The places of elements in registers are written here as the PTX manual lists
// them, element by element, not by the rule that the implementation uses.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/MatrixKernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

using namespace kperfir::simt;

namespace {
struct Place {
  unsigned row, column;
};
/// Place of element i of a lane's fragment (group = lane / 4, t = lane % 4).
using Layout = std::function<Place(unsigned i, unsigned group, unsigned t)>;

Place a16x16(unsigned i, unsigned g, unsigned t) {
  bool upper = i < 2 || (i >= 4 && i < 6);
  return {upper ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place b16x8(unsigned i, unsigned g, unsigned t) {
  return {t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g};
}
Place a16x8tf32(unsigned i, unsigned g, unsigned t) {
  return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
}
Place b8x8tf32(unsigned i, unsigned g, unsigned t) {
  return {i == 0 ? t : t + 4, g};
}
Place a16x32(unsigned i, unsigned g, unsigned t) {
  bool upper = i < 4 || (i >= 8 && i < 12);
  return {upper ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place b32x8(unsigned i, unsigned g, unsigned t) {
  return {t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g};
}
Place a8x16(unsigned i, unsigned g, unsigned t) { return {g, t * 4 + i}; }
Place b16x8bytes(unsigned i, unsigned g, unsigned t) { return {t * 4 + i, g}; }
Place a8x4(unsigned, unsigned g, unsigned t) { return {g, t}; }
Place b4x8(unsigned, unsigned g, unsigned t) { return {t, g}; }
Place c16x8(unsigned i, unsigned g, unsigned t) {
  return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
}
Place c8x8(unsigned i, unsigned g, unsigned t) { return {g, t * 2 + i}; }

/// Bits of a value in a format, and back. Values are exact in the format.
struct Format {
  unsigned bits;
  std::function<uint64_t(double)> encode;
  std::function<double(uint64_t)> decode;
};

uint64_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}
float floatOf(uint64_t bits) {
  auto word = static_cast<uint32_t>(bits);
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
Format half() {
  return {16,
          [](double v) {
            auto h = static_cast<_Float16>(v);
            uint16_t bits;
            std::memcpy(&bits, &h, 2);
            return uint64_t(bits);
          },
          [](uint64_t b) {
            auto bits = static_cast<uint16_t>(b);
            _Float16 h;
            std::memcpy(&h, &bits, 2);
            return double(h);
          }};
}
Format bfloat() {
  return {16, [](double v) { return bitsOf(static_cast<float>(v)) >> 16; },
          [](uint64_t b) { return double(floatOf(b << 16)); }};
}
Format single() {
  return {32, [](double v) { return bitsOf(static_cast<float>(v)); },
          [](uint64_t b) { return double(floatOf(b)); }};
}
Format integer(unsigned bits) {
  return {
      bits,
      [](double v) { return static_cast<uint64_t>(static_cast<int64_t>(v)); },
      [](uint64_t b) { return double(static_cast<int32_t>(b)); }};
}
Format real() {
  return {64,
          [](double v) {
            uint64_t bits;
            std::memcpy(&bits, &v, 8);
            return bits;
          },
          [](uint64_t b) {
            double v;
            std::memcpy(&v, &b, 8);
            return v;
          }};
}
/// Eight-bit floats, normal numbers only.
Format float8(unsigned mantissa, int bias) {
  return {8,
          [=](double v) {
            if (v == 0)
              return uint64_t(0);
            int exponent;
            double fraction =
                std::frexp(std::fabs(v), &exponent); // in [0.5, 1)
            auto digits =
                static_cast<uint64_t>(std::ldexp(fraction, int(mantissa) + 1)) &
                ((1u << mantissa) - 1);
            return uint64_t(v < 0) << 7 |
                   uint64_t(exponent - 1 + bias) << mantissa | digits;
          },
          nullptr};
}

struct Case {
  const char *name;
  MmaShape shape;
  Format element, accumulator;
  Layout a, b, c;
  std::function<double(std::mt19937 &)> draw;
  double tolerance;
};

double smallIntegers(std::mt19937 &random) {
  return std::uniform_int_distribution<int>(-8, 7)(random);
}
double bytes(std::mt19937 &random) {
  return std::uniform_int_distribution<int>(-128, 127)(random);
}
double reals(std::mt19937 &random) {
  return std::uniform_real_distribution<double>(-1, 1)(random);
}
double coarse(std::mt19937 &random) {
  return std::uniform_int_distribution<int>(-32, 32)(random) / 16.0;
}

MmaShape shape(unsigned m, unsigned k, Type in, Type out,
               std::array<unsigned, 4> registers) {
  MmaShape result;
  result.m = static_cast<uint16_t>(m);
  result.n = 8;
  result.k = static_cast<uint16_t>(k);
  result.typeA = result.typeB = in;
  result.typeC = result.typeD = out;
  result.numD = static_cast<uint8_t>(registers[0]);
  result.numA = static_cast<uint8_t>(registers[1]);
  result.numB = static_cast<uint8_t>(registers[2]);
  result.numC = static_cast<uint8_t>(registers[3]);
  return result;
}

std::vector<Case> cases() {
  auto s = shape;
  return {
      {"f16", s(16, 16, Type::F16, Type::F32, {4, 4, 2, 4}), half(), single(),
       a16x16, b16x8, c16x8, coarse, 0},
      {"f16k8", s(16, 8, Type::F16, Type::F32, {4, 2, 1, 4}), half(), single(),
       a16x16, b16x8, c16x8, coarse, 0},
      {"f16acc", s(16, 16, Type::F16, Type::F16, {2, 4, 2, 2}), half(), half(),
       a16x16, b16x8, c16x8, coarse, 1e-2},
      {"bf16", s(16, 16, Type::BF16, Type::F32, {4, 4, 2, 4}), bfloat(),
       single(), a16x16, b16x8, c16x8, coarse, 0},
      {"bf16k8", s(16, 8, Type::BF16, Type::F32, {4, 2, 1, 4}), bfloat(),
       single(), a16x16, b16x8, c16x8, coarse, 0},
      {"tf32", s(16, 8, Type::TF32, Type::F32, {4, 4, 2, 4}), single(),
       single(), a16x8tf32, b8x8tf32, c16x8, coarse, 0},
      {"tf32k4", s(16, 4, Type::TF32, Type::F32, {4, 2, 1, 4}), single(),
       single(), a16x8tf32, b8x8tf32, c16x8, coarse, 0},
      {"s8", s(16, 32, Type::S8, Type::S32, {4, 4, 2, 4}), integer(8),
       integer(32), a16x32, b32x8, c16x8, bytes, 0},
      {"s8k16", s(16, 16, Type::S8, Type::S32, {4, 2, 1, 4}), integer(8),
       integer(32), a16x32, b32x8, c16x8, bytes, 0},
      {"s8m8", s(8, 16, Type::S8, Type::S32, {2, 1, 1, 2}), integer(8),
       integer(32), a8x16, b16x8bytes, c8x8, bytes, 0},
      {"e4m3", s(16, 32, Type::E4M3, Type::F32, {4, 4, 2, 4}), float8(3, 7),
       single(), a16x32, b32x8, c16x8, smallIntegers, 0},
      {"e5m2", s(16, 32, Type::E5M2, Type::F32, {4, 4, 2, 4}), float8(2, 15),
       single(), a16x32, b32x8, c16x8,
       [](std::mt19937 &r) {
         return std::ldexp(double(std::uniform_int_distribution<int>(-3, 3)(r)),
                           -1);
       },
       0},
      {"f64", s(8, 4, Type::F64, Type::F64, {2, 1, 1, 2}), real(), real(), a8x4,
       b4x8, c8x8, reals, 1e-14},
  };
}

/// Registers of one operand: 32 lanes of 32 or 64 bits.
struct Fragment {
  std::vector<std::vector<uint64_t>> registers;

  std::vector<uint32_t> words(unsigned index, unsigned bits) const {
    std::vector<uint32_t> result(kWarpSize * (bits > 32 ? 2 : 1));
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      std::memcpy(&result[lane * (bits > 32 ? 2 : 1)], &registers[index][lane],
                  bits > 32 ? 8 : 4);
    return result;
  }
};

unsigned perRegister(unsigned bits) { return bits >= 32 ? 1 : 32 / bits; }

Fragment pack(unsigned count, const Format &format, const Layout &layout,
              const std::vector<std::vector<double>> &matrix) {
  unsigned per = perRegister(format.bits);
  Fragment fragment{std::vector<std::vector<uint64_t>>(
      count, std::vector<uint64_t>(kWarpSize))};
  uint64_t mask = format.bits == 64 ? ~0ull : (uint64_t(1) << format.bits) - 1;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned i = 0; i < count * per; ++i) {
      Place place = layout(i, lane / 4, lane % 4);
      fragment.registers[i / per][lane] |=
          (format.encode(matrix[place.row][place.column]) & mask)
          << (i % per * format.bits);
    }
  return fragment;
}

using Matrix = std::vector<std::vector<double>>;

Matrix draw(unsigned rows, unsigned columns,
            const std::function<double()> &value) {
  Matrix matrix(rows, std::vector<double>(columns));
  for (auto &row : matrix)
    std::generate(row.begin(), row.end(), value);
  return matrix;
}

Matrix runKernel(const Case &c, HostIsa isa, const Matrix &a, const Matrix &b,
                 const Matrix &acc) {
  const MmaShape &s = c.shape;
  MmaKernel kernel = findMmaKernel(s, isa);
  EXPECT_NE(kernel, nullptr) << c.name;
  Fragment fa = pack(s.numA, c.element, c.a, a),
           fb = pack(s.numB, c.element, c.b, b),
           fc = pack(s.numC, c.accumulator, c.c, acc);
  std::vector<std::vector<uint32_t>> storage;
  MmaOperands operands{};
  auto use = [&](const Fragment &fragment, unsigned count, unsigned bits,
                 const uint32_t **to) {
    for (unsigned i = 0; i < count; ++i) {
      storage.push_back(fragment.words(i, bits));
      to[i] = storage.back().data();
    }
  };
  storage.reserve(64);
  use(fa, s.numA, c.element.bits, operands.a);
  use(fb, s.numB, c.element.bits, operands.b);
  use(fc, s.numC, c.accumulator.bits, operands.c);
  unsigned words = c.accumulator.bits > 32 ? 2 : 1;
  std::vector<std::vector<uint32_t>> out(
      s.numD, std::vector<uint32_t>(kWarpSize * words));
  for (unsigned i = 0; i < s.numD; ++i)
    operands.d[i] = out[i].data();
  kernel(operands);

  Matrix result(s.m, std::vector<double>(s.n));
  unsigned bits = c.accumulator.bits, per = perRegister(bits);
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    for (unsigned i = 0; i < s.numD * per; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, &out[i / per][lane * words], words * 4);
      if (bits < 32)
        word = word >> (i % per * bits) & ((1u << bits) - 1);
      Place place = c.c(i, lane / 4, lane % 4);
      result[place.row][place.column] = c.accumulator.decode(word);
    }
  return result;
}

std::vector<HostIsa> hostIsas() {
  std::vector<HostIsa> isas = {HostIsa::Baseline};
  if (detectHostIsa() != HostIsa::Baseline)
    isas.push_back(HostIsa::Avx2);
  if (detectHostIsa() == HostIsa::Avx512)
    isas.push_back(HostIsa::Avx512);
  return isas;
}
} // namespace

TEST(Mma, EveryShapeEqualsThePlainProduct) {
  std::mt19937 random(1);
  for (const Case &c : cases()) {
    for (int repeat = 0; repeat < 4; ++repeat) {
      const MmaShape &s = c.shape;
      auto value = [&] { return c.draw(random); };
      Matrix a = draw(s.m, s.k, value), b = draw(s.k, s.n, value),
             acc = draw(s.m, s.n, value);
      Matrix first = runKernel(c, HostIsa::Baseline, a, b, acc);
      for (unsigned m = 0; m < s.m; ++m)
        for (unsigned n = 0; n < s.n; ++n) {
          double sum = acc[m][n];
          for (unsigned k = 0; k < s.k; ++k)
            sum += a[m][k] * b[k][n];
          ASSERT_NEAR(first[m][n], sum,
                      c.tolerance * std::max(1.0, std::fabs(sum)))
              << c.name << " row " << m << " column " << n;
        }
      for (HostIsa isa : hostIsas())
        ASSERT_EQ(runKernel(c, isa, a, b, acc), first)
            << c.name << " on " << hostIsaName(isa);
    }
  }
}

TEST(Mma, Tf32UsesTenBitsOfTheMantissa) {
  Case c = cases()[5];
  Matrix a(16, std::vector<double>(8)), b(8, std::vector<double>(8)),
      acc(16, std::vector<double>(8));
  a[0][0] =
      1.0 + std::ldexp(1.0, -10) + std::ldexp(1.0, -11); // the last bit is cut
  b[0][0] = 1.0;
  EXPECT_EQ(runKernel(c, detectHostIsa(), a, b, acc)[0][0],
            1.0 + std::ldexp(1.0, -10));
}

TEST(Mma, SpecialValuesPropagate) {
  Case c = cases()[0];
  double inf = std::numeric_limits<double>::infinity();
  for (HostIsa isa : hostIsas()) {
    Matrix a(16, std::vector<double>(16)), b(16, std::vector<double>(8)),
        acc(16, std::vector<double>(8));
    a[0][0] = inf;
    b[0][0] = 1;
    a[8][1] = std::ldexp(1.0, -24); // the least denormal of f16
    b[1][3] = 1;
    Matrix d = runKernel(c, isa, a, b, acc);
    EXPECT_EQ(d[0][0], inf);
    EXPECT_TRUE(std::isnan(d[0][1])); // inf * 0
    EXPECT_EQ(d[8][3], std::ldexp(1.0, -24));
  }
}

TEST(Mma, SatfiniteClampsIntegers) {
  Case c = cases()[7];
  c.shape.satfinite = true;
  Matrix a(16, std::vector<double>(32, 127)),
      b(32, std::vector<double>(8, 127)),
      acc(16, std::vector<double>(8, 2147483647.0));
  for (HostIsa isa : hostIsas())
    EXPECT_EQ(runKernel(c, isa, a, b, acc)[3][3], 2147483647.0);
  for (auto &row : b)
    std::fill(row.begin(), row.end(), -128);
  for (auto &row : acc)
    std::fill(row.begin(), row.end(), -2147483648.0);
  EXPECT_EQ(runKernel(c, detectHostIsa(), a, b, acc)[3][3], -2147483648.0);
}

TEST(Mma, UnknownShapesHaveNoKernel) {
  EXPECT_EQ(findMmaKernel(shape(16, 24, Type::F16, Type::F32, {4, 4, 2, 4}),
                          detectHostIsa()),
            nullptr);
  EXPECT_EQ(findMmaKernel(shape(8, 4, Type::F16, Type::F32, {8, 2, 2, 8}),
                          detectHostIsa()),
            nullptr);
}
