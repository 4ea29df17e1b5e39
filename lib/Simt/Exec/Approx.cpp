//===- Approx.cpp - Approximate transcendental functions ------------------===//
//
// ex2, lg2, sin, cos, tanh. Within the error bounds of the PTX manual, not the
// hardware's bits. Plain multiplications and additions in a fixed order, so
// that every host gives the same result.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

/// 2^n for n in [-127, 127].
LANE f32 powerOfTwo(i32 n) {
  return bitCast<f32>(static_cast<u32>(n + 127) << 23);
}

/// 2^x, error below 1.5 ulp. Integers are exact, results may be subnormal.
LANE f32 exp2(f32 x) {
  f32 clamped = x < -160.0f ? -160.0f : x > 130.0f ? 130.0f : x;
  clamped = isNan(x) ? 0.0f : clamped;
  f32 whole = __builtin_rintf(clamped);
  f32 t = clamped - whole;
  f32 p = 1.525273380405984e-5f; // ln(2)^k / k!
  p = p * t + 1.540353039338161e-4f;
  p = p * t + 1.333355814642844e-3f;
  p = p * t + 9.618129107628477e-3f;
  p = p * t + 5.550410866482158e-2f;
  p = p * t + 2.402265069591007e-1f;
  p = p * t + 6.931471805599453e-1f;
  p = p * t + 1.0f;
  i32 n = static_cast<i32>(whole);
  i32 half = n >> 1;
  f32 result = p * powerOfTwo(half) * powerOfTwo(n - half);
  return isNan(x) ? x : result;
}

/// log2(x) for x > 0 by log2(m) = 2/ln(2) * atanh((m - 1) / (m + 1)).
LANE f32 log2(f32 x) {
  u64 bits = bitCast<u64>(static_cast<f64>(x)); // subnormals become normal
  i64 exponent = static_cast<i64>(bits >> 52 & 0x7FF) - 1023;
  f64 m = bitCast<f64>((bits & 0xF'FFFF'FFFF'FFFFu) | 0x3FF0'0000'0000'0000u);
  bool high = m > 1.4142135623730951;
  m = high ? m * 0.5 : m;
  f64 e = static_cast<f64>(static_cast<i32>(exponent + (high ? 1 : 0)));
  f64 t = (m - 1.0) / (m + 1.0);
  f64 s = t * t;
  f64 p = 1.0 / 13;
  p = p * s + 1.0 / 11;
  p = p * s + 1.0 / 9;
  p = p * s + 1.0 / 7;
  p = p * s + 1.0 / 5;
  p = p * s + 1.0 / 3;
  p = p * s + 1.0;
  f32 result = static_cast<f32>(e + 2.885390081777927 * t * p);
  result = x == 0.0f ? -__builtin_inff() : result;
  result = x > 3.4028235e38f ? x : result;
  return x < 0.0f || isNan(x) ? canonicalNan<f32>() : result;
}

/// sin or cos of x; quadrant from x * 2/pi, remainder with a two-part pi/2.
/// Beyond 2^30 quadrants, where the manual promises nothing, the argument
/// counts as 0.
template <bool Cosine> LANE f32 sine(f32 x) {
  f64 wide = __builtin_fabsf(x) < 1.6e9f ? static_cast<f64>(x) : 0.0;
  f64 quadrant = __builtin_rint(wide * 0.6366197723675814);
  f64 r = (wide - quadrant * 1.57079632673412561417) -
          quadrant * 6.07710050650619224932e-11;
  f64 s = r * r;
  f64 sinPart = -2.5052108385441718e-8;
  sinPart = sinPart * s + 2.7557319223985893e-6;
  sinPart = sinPart * s - 1.984126984126984e-4;
  sinPart = sinPart * s + 8.333333333333333e-3;
  sinPart = sinPart * s - 1.6666666666666666e-1;
  sinPart = r + r * s * sinPart;
  f64 cosPart = 2.08767569878681e-9;
  cosPart = cosPart * s - 2.755731922398589e-7;
  cosPart = cosPart * s + 2.48015873015873e-5;
  cosPart = cosPart * s - 1.388888888888889e-3;
  cosPart = cosPart * s + 4.1666666666666664e-2;
  cosPart = cosPart * s - 0.5;
  cosPart = 1.0 + s * cosPart;
  i32 n = static_cast<i32>(quadrant) + (Cosine ? 1 : 0);
  f64 value = n & 1 ? cosPart : sinPart;
  f32 result = static_cast<f32>(n & 2 ? -value : value);
  result = !Cosine && x == 0.0f ? x : result; // keeps -0
  return __builtin_fabsf(x) <= 3.4028235e38f ? result : canonicalNan<f32>();
}

/// (e^2x - 1) / (e^2x + 1) in f64; near 0 by its series.
LANE f32 hyperbolicTangent(f32 x) {
  f64 wide = x < -10.0f ? -10.0 : x > 10.0f ? 10.0 : static_cast<f64>(x);
  f64 y = wide * 2.8853900817779268; // 2 log2(e)
  f64 whole = __builtin_rint(y);
  f64 t = (y - whole) * 0.6931471805599453;
  f64 p = 1.0 / 40320;
  p = p * t + 1.0 / 5040;
  p = p * t + 1.0 / 720;
  p = p * t + 1.0 / 120;
  p = p * t + 1.0 / 24;
  p = p * t + 1.0 / 6;
  p = p * t + 0.5;
  p = p * t + 1.0;
  p = p * t + 1.0;
  i64 n = static_cast<i32>(isNan(x) ? 0.0 : whole);
  f64 power = p * bitCast<f64>(static_cast<u64>(n + 1023) << 52);
  f64 value = (power - 1.0) / (power + 1.0);
  f64 series = wide * (1.0 - wide * wide * (1.0 / 3)); // keeps -0
  value = wide > -0.001 && wide < 0.001 ? series : value;
  return isNan(x) ? canonicalNan<f32>() : static_cast<f32>(value);
}

// clang-format off
#define APPROX(NAME, OP, TIMING, ...)                                                             \
    {NAME ".approx.f32", lane<UNARY(f32, __VA_ARGS__), kArith | kOneLoop>, Opcode::OP, TIMING},              \
    {NAME ".approx.ftz.f32", lane<UNARY(f32, __VA_ARGS__), kArith | kFtz | kOneLoop>, Opcode::OP, TIMING}

#define NARROW(NAME, OP, TIMING, ...)                                                             \
    {NAME ".f16", lane<UNARY(f16, __VA_ARGS__), kOneLoop>, Opcode::OP, TIMING},                             \
    {NAME ".f16x2", lane2<UNARY(f16, __VA_ARGS__), kOneLoop>, Opcode::OP, TIMING}
#define NARROW_BFLOAT(NAME, OP, TIMING, MODE, ...)                                                \
    {NAME ".bf16", lane<UNARY(bf16, __VA_ARGS__), (MODE) | kOneLoop>, Opcode::OP, TIMING},                     \
    {NAME ".bf16x2", lane2<UNARY(bf16, __VA_ARGS__), (MODE) | kOneLoop>, Opcode::OP, TIMING}

constexpr Semantics kTable[] = {
    APPROX("ex2", Ex2, kEx2, exp2(a)),
    APPROX("lg2", Lg2, kSfu, log2(a)),
    APPROX("sin", Sin, kSfu, sine<false>(a)),
    APPROX("cos", Cos, kSfu, sine<true>(a)),
    {"tanh.approx.f32", lane<UNARY(f32, hyperbolicTangent(a)), kArith | kOneLoop>, Opcode::Tanh, kSfu},
    NARROW("ex2.approx", Ex2, kEx2, exp2(f32(a))),
    NARROW_BFLOAT("ex2.approx.ftz", Ex2, kEx2, kFtz, exp2(f32(a))),
    NARROW("tanh.approx", Tanh, kSfu, hyperbolicTangent(f32(a))),
    NARROW_BFLOAT("tanh.approx", Tanh, kSfu, kPlain, hyperbolicTangent(f32(a))),
};
// clang-format on

} // namespace

const Table kApproxTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
