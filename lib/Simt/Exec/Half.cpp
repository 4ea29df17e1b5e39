//===- Half.cpp - Arithmetic on f16, bf16 and packed pairs ----------------===//
//
// Computed in f32 (f64 where f32 would round twice) and rounded once. NaN
// results are 0x7FFF. f32x2, two f32 in a 64-bit register, belongs here as
// well.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

// Sums of two halves and products of two f16 are rounded innocuously by f32.
LANE f16 add(f16 a, f16 b) { return f16(f32(a) + f32(b)); }
LANE f16 subtract(f16 a, f16 b) { return f16(f32(a) - f32(b)); }
LANE f16 multiply(f16 a, f16 b) { return f16(f32(a) * f32(b)); }
LANE bf16 add(bf16 a, bf16 b) { return bf16(f32(a) + f32(b)); }
LANE bf16 subtract(bf16 a, bf16 b) { return bf16(f32(a) - f32(b)); }
/// Not in f32: a subnormal product would be rounded twice.
LANE bf16 multiply(bf16 a, bf16 b) { return fma(a, b, bf16(-0.0f)); }

template <class T> LANE T fromBits(u32 bits) {
  return bitCast<T>(static_cast<u16>(bits));
}
template <class T> LANE T magnitude(T a) {
  return fromBits<T>(a.bits & 0x7FFFu);
}
template <class T> LANE T negated(T a) { return fromBits<T>(a.bits ^ 0x8000u); }

template <class T> LANE T minimum(T a, T b) {
  f32 x = a, y = b;
  u32 equal = a.bits | b.bits;
  u32 result = x < y ? a.bits : y < x ? b.bits : equal;
  result = isNan(b) ? a.bits : result;
  result = isNan(a) ? b.bits : result;
  return isNan(a) && isNan(b) ? canonicalNan<T>() : fromBits<T>(result);
}
template <class T> LANE T maximum(T a, T b) {
  f32 x = a, y = b;
  u32 equal = a.bits & b.bits;
  u32 result = x > y ? a.bits : y > x ? b.bits : equal;
  result = isNan(b) ? a.bits : result;
  result = isNan(a) ? b.bits : result;
  return isNan(a) && isNan(b) ? canonicalNan<T>() : fromBits<T>(result);
}
template <class T> LANE T minimumNan(T a, T b) {
  return isNan(a) || isNan(b) ? canonicalNan<T>() : minimum(a, b);
}
template <class T> LANE T maximumNan(T a, T b) {
  return isNan(a) || isNan(b) ? canonicalNan<T>() : maximum(a, b);
}
template <class T> LANE T withXorSign(T value, T a, T b) {
  return fromBits<T>((value.bits & 0x7FFFu) | ((a.bits ^ b.bits) & 0x8000u));
}

// clang-format off
#define PAIR(NAME, N, T, MODE, OP, ARITY, ...)                                                    \
    {NAME "." N, lane<ARITY(T, __VA_ARGS__), (MODE) | kOneLoop>, Opcode::OP, kHalf},                           \
    {NAME "." N "x2", lane2<ARITY(T, __VA_ARGS__), (MODE) | kOneLoop>, Opcode::OP, kHalf}

#define FTZ(NAME, MODE, OP, ARITY, ...)                                                           \
    PAIR(NAME, "f16", f16, MODE, OP, ARITY, __VA_ARGS__),                                         \
    PAIR(NAME ".ftz", "f16", f16, (MODE) | kFtz, OP, ARITY, __VA_ARGS__)
#define BOTH(NAME, OP, ARITY, ...)                                                                \
    FTZ(NAME, 0, OP, ARITY, __VA_ARGS__), PAIR(NAME, "bf16", bf16, 0, OP, ARITY, __VA_ARGS__)
#define ARITHMETIC(NAME, OP, ARITY, ...)                                                          \
    BOTH(NAME, OP, ARITY, __VA_ARGS__),                                                           \
    PAIR(NAME ".sat", "f16", f16, kSat, OP, ARITY, __VA_ARGS__),                                  \
    PAIR(NAME ".ftz.sat", "f16", f16, kFtz | kSat, OP, ARITY, __VA_ARGS__)

#define SINGLE2(NAME, OP, ARITY, ...)                                                             \
    {NAME ".f32x2", lane2<ARITY(f32, __VA_ARGS__), kArith>, Opcode::OP, kFma},                    \
    {NAME ".ftz.f32x2", lane2<ARITY(f32, __VA_ARGS__), kArith | kFtz>, Opcode::OP, kFma}

constexpr Semantics kTable[] = {
    ARITHMETIC("add", Add, BINARY, add(a, b)),
    ARITHMETIC("sub", Sub, BINARY, subtract(a, b)),
    ARITHMETIC("mul", Mul, BINARY, multiply(a, b)),
    ARITHMETIC("fma", Fma, TERNARY, fma(a, b, c)),
    PAIR("fma.relu", "f16", f16, kRelu, Fma, TERNARY, fma(a, b, c)),
    PAIR("fma.ftz.relu", "f16", f16, kFtz | kRelu, Fma, TERNARY, fma(a, b, c)),
    PAIR("fma.relu", "bf16", bf16, kRelu, Fma, TERNARY, fma(a, b, c)),

    BOTH("neg", Neg, UNARY, negated(a)),
    BOTH("abs", Abs, UNARY, magnitude(a)),
    BOTH("min", Min, BINARY, minimum(a, b)),
    BOTH("max", Max, BINARY, maximum(a, b)),
    PAIR("min.NaN", "f16", f16, 0, Min, BINARY, minimumNan(a, b)),
    PAIR("max.NaN", "f16", f16, 0, Max, BINARY, maximumNan(a, b)),
    PAIR("min.ftz.NaN", "f16", f16, kFtz, Min, BINARY, minimumNan(a, b)),
    PAIR("max.ftz.NaN", "f16", f16, kFtz, Max, BINARY, maximumNan(a, b)),
    PAIR("min.NaN", "bf16", bf16, 0, Min, BINARY, minimumNan(a, b)),
    PAIR("max.NaN", "bf16", bf16, 0, Max, BINARY, maximumNan(a, b)),
    PAIR("min.xorsign.abs", "f16", f16, 0, Min, BINARY, withXorSign(minimum(magnitude(a), magnitude(b)), a, b)),
    PAIR("max.xorsign.abs", "f16", f16, 0, Max, BINARY, withXorSign(maximum(magnitude(a), magnitude(b)), a, b)),
    PAIR("min.xorsign.abs", "bf16", bf16, 0, Min, BINARY, withXorSign(minimum(magnitude(a), magnitude(b)), a, b)),
    PAIR("max.xorsign.abs", "bf16", bf16, 0, Max, BINARY, withXorSign(maximum(magnitude(a), magnitude(b)), a, b)),

    SINGLE2("add", Add, BINARY, a + b),
    SINGLE2("sub", Sub, BINARY, a - b),
    SINGLE2("mul", Mul, BINARY, a * b),
    SINGLE2("fma", Fma, TERNARY, fma(a, b, c)),
};
// clang-format on

} // namespace

const Table kHalfTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
