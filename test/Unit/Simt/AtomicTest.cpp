//===- AtomicTest.cpp - Arithmetic of atom and red ------------------------===//

#include "Simt/Exec/Atomic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace kperfir::simt;

namespace {
template <typename T> struct Outcome {
  T memory, old;
};

template <typename T>
Outcome<T> apply(AtomicOp operation, Type type, T memory, T operand,
                 T replacement = T()) {
  Outcome<T> outcome{memory, T()};
  applyAtomic(operation, type, reinterpret_cast<uint8_t *>(&outcome.memory),
              reinterpret_cast<const uint8_t *>(&operand),
              reinterpret_cast<const uint8_t *>(&replacement),
              reinterpret_cast<uint8_t *>(&outcome.old));
  EXPECT_EQ(std::memcmp(&outcome.old, &memory, sizeof(T)), 0);
  return outcome;
}

constexpr uint32_t kMax32 = 0xFFFFFFFF;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
} // namespace

TEST(Atomic, IntegersWrapAndCompareBySign) {
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Add, Type::U32, kMax32, 2).memory, 1u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Min, Type::U32, kMax32, 1).memory, 1u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Min, Type::S32, kMax32, 1).memory,
            kMax32);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Max, Type::S32, kMax32, 1).memory, 1u);
  EXPECT_EQ(apply<uint64_t>(AtomicOp::Add, Type::U64, ~0ull, 1).memory, 0u);
  EXPECT_EQ(apply<uint64_t>(AtomicOp::Max, Type::S64, ~0ull, 0).memory, 0u);
  EXPECT_EQ(apply<uint64_t>(AtomicOp::Max, Type::U64, ~0ull, 0).memory, ~0ull);
}

TEST(Atomic, Bitwise) {
  EXPECT_EQ(apply<uint32_t>(AtomicOp::And, Type::B32, 0xF0F0, 0xFF00).memory,
            0xF000u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Or, Type::B32, 0xF0F0, 0x0F00).memory,
            0xFFF0u);
  EXPECT_EQ(apply<uint64_t>(AtomicOp::Xor, Type::B64, ~0ull, 1).memory, ~1ull);
}

TEST(Atomic, IncAndDecWrapAtTheOperand) {
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Inc, Type::U32, 3, 4).memory, 4u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Inc, Type::U32, 4, 4).memory, 0u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Dec, Type::U32, 0, 4).memory, 4u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Dec, Type::U32, 9, 4).memory, 4u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Dec, Type::U32, 3, 4).memory, 2u);
}

TEST(Atomic, ExchangeAndCompareAndSwap) {
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Exch, Type::B32, 1, 2).memory, 2u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Cas, Type::B32, 1, 1, 7).memory, 7u);
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Cas, Type::B32, 1, 2, 7).memory, 1u);
  EXPECT_EQ(apply<uint16_t>(AtomicOp::Cas, Type::B16, 5, 5, 6).memory, 6u);
  EXPECT_EQ(apply<uint64_t>(AtomicOp::Cas, Type::B64, 5, 5, 6).memory, 6u);
}

TEST(Atomic, Floats) {
  EXPECT_EQ(apply<float>(AtomicOp::Add, Type::F32, 1.5f, 2.25f).memory, 3.75f);
  EXPECT_EQ(apply<double>(AtomicOp::Add, Type::F64, 1e300, 1e300).memory,
            2e300);
  EXPECT_TRUE(
      std::isnan(apply<float>(AtomicOp::Add, Type::F32, kNan, 1.f).memory));
  EXPECT_EQ(apply<float>(AtomicOp::Max, Type::F32, kNan, 1.f).memory, 1.f);
  float denormal = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(apply<float>(AtomicOp::Add, Type::F32, denormal, denormal).memory,
            2 * denormal);
}

TEST(Atomic, HalvesOfAPairAreSeparate) {
  // f16: 0x3C00 = 1, 0x4000 = 2, 0x4200 = 3, 0x7BFF = 65504, 0x7C00 = inf.
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Add, Type::F16x2, 0x3C007BFF, 0x40007BFF)
                .memory,
            0x42007C00u);
  // bf16: 0x3F80 = 1, 0x4000 = 2, 0x4040 = 3; 256 + 1 rounds to 256 (to even).
  EXPECT_EQ(apply<uint32_t>(AtomicOp::Add, Type::BF16x2, 0x3F804380, 0x40003F80)
                .memory,
            0x40404380u);
  EXPECT_EQ(apply<uint16_t>(AtomicOp::Add, Type::F16, 0x3C00, 0x3C00).memory,
            0x4000);
}

TEST(Atomic, OnlyWhatPtxHasIsSupported) {
  EXPECT_TRUE(isAtomicSupported(AtomicOp::Add, Type::F64));
  EXPECT_FALSE(isAtomicSupported(AtomicOp::And, Type::F32));
  EXPECT_FALSE(isAtomicSupported(AtomicOp::Inc, Type::U64));
  EXPECT_FALSE(isAtomicSupported(AtomicOp::Cas, Type::B8));
}
