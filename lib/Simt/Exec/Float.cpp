//===- Float.cpp - IEEE arithmetic on f32 and f64 -------------------------===//
//
// Exact: rounding modes, subnormals, flush-to-zero, saturation, NaN handling as
// the PTX manual defines them. Every f32 NaN result is 0x7FFFFFFF. For f64 the
// manual leaves the payload open; here it is 0x7FF8000000000000. The `.full`
// and
// `.approx` divisions and roots are allowed to err and do not: they are the
// correctly rounded ones.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

LANE f32 squareRoot(f32 a) { return __builtin_sqrtf(a); }
LANE f64 squareRoot(f64 a) { return __builtin_sqrt(a); }
// Under another rounding mode the emulation in fma() would not be exact.
LANE f32 fmaRounded(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
LANE f64 fmaRounded(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }

/// A NaN loses against a number; -0 is less than +0.
template <class T> LANE T minimum(T a, T b) {
  T equal = bitCast<T>(rawBits(a) | rawBits(b));
  T result = a < b ? a : b < a ? b : equal;
  result = isNan(b) ? a : result;
  result = isNan(a) ? b : result;
  return isNan(result) ? canonicalNan<T>() : result;
}
template <class T> LANE T maximum(T a, T b) {
  T equal = bitCast<T>(rawBits(a) & rawBits(b));
  T result = a > b ? a : b > a ? b : equal;
  result = isNan(b) ? a : result;
  result = isNan(a) ? b : result;
  return isNan(result) ? canonicalNan<T>() : result;
}
/// A NaN wins.
template <class T> LANE T minimumNan(T a, T b) {
  return isNan(a) || isNan(b) ? canonicalNan<T>() : minimum(a, b);
}
template <class T> LANE T maximumNan(T a, T b) {
  return isNan(a) || isNan(b) ? canonicalNan<T>() : maximum(a, b);
}

template <class T> LANE T magnitude(T a) {
  return bitCast<T>(static_cast<typename FloatTraits<T>::Bits>(
      rawBits(a) & ~FloatTraits<T>::sign));
}
template <class T> LANE T negated(T a) {
  return bitCast<T>(static_cast<typename FloatTraits<T>::Bits>(
      rawBits(a) ^ FloatTraits<T>::sign));
}
/// The value of `value` with the sign of `sign`.
template <class T> LANE T withSign(T value, T sign) {
  auto mask = FloatTraits<T>::sign;
  return bitCast<T>((rawBits(value) & ~mask) | (rawBits(sign) & mask));
}
/// `.xorsign.abs`: compare magnitudes, the sign is the exclusive or of both.
LANE f32 withXorSign(f32 value, f32 a, f32 b) {
  return bitCast<f32>((rawBits(value) & 0x7FFF'FFFFu) |
                      ((rawBits(a) ^ rawBits(b)) & 0x8000'0000u));
}

template <class T> LANE bool isSubnormal(T a) {
  auto bits = rawBits(magnitude(a));
  return bits != 0 && (bits & FloatTraits<T>::exponent) == 0;
}
template <class T> LANE bool isNormal(T a) {
  auto bits = rawBits(a) & FloatTraits<T>::exponent;
  return bits != 0 && bits != FloatTraits<T>::exponent;
}
template <class T> LANE bool isInfinite(T a) {
  return rawBits(magnitude(a)) == FloatTraits<T>::exponent;
}

/// Reciprocal in f64 with the low 32 bits of the result zero.
LANE f64 grossReciprocal(f64 a) {
  return bitCast<f64>(bitCast<u64>(1.0 / a) & 0xFFFF'FFFF'0000'0000u);
}
LANE f64 grossRsqrt(f64 a) {
  return bitCast<f64>(bitCast<u64>(1.0 / squareRoot(a)) &
                      0xFFFF'FFFF'0000'0000u);
}

// clang-format off
// ROW(name before the type, modes, body) for every combination of suffixes.
#define FTZ_SAT(NAME, MODE, OP, TIMING, TYPE, ARITY, ...)                                         \
    {NAME "." TYPE, lane<ARITY(f32, __VA_ARGS__), kArith | (MODE)>, Opcode::OP, TIMING},          \
    {NAME ".ftz." TYPE, lane<ARITY(f32, __VA_ARGS__), kArith | kFtz | (MODE)>, Opcode::OP, TIMING}, \
    {NAME ".sat." TYPE, lane<ARITY(f32, __VA_ARGS__), kArith | kSat | (MODE)>, Opcode::OP, TIMING}, \
    {NAME ".ftz.sat." TYPE, lane<ARITY(f32, __VA_ARGS__), kArith | kFtz | kSat | (MODE)>, Opcode::OP, TIMING}
#define FTZ(NAME, MODE, OP, TIMING, TYPE, ARITY, ...)                                             \
    {NAME "." TYPE, lane<ARITY(f32, __VA_ARGS__), (MODE)>, Opcode::OP, TIMING},                   \
    {NAME ".ftz." TYPE, lane<ARITY(f32, __VA_ARGS__), kFtz | (MODE)>, Opcode::OP, TIMING}
#define FTZ_ARITH(NAME, MODE, ...) FTZ(NAME, kArith | (MODE), __VA_ARGS__)
#define DIRECTED(ROWS, NAME, OP, TIMING, TYPE, ARITY, ...)                                        \
    ROWS(NAME ".rz", kToZero, OP, TIMING, TYPE, ARITY, __VA_ARGS__),                              \
    ROWS(NAME ".rm", kDown, OP, TIMING, TYPE, ARITY, __VA_ARGS__),                                \
    ROWS(NAME ".rp", kUp, OP, TIMING, TYPE, ARITY, __VA_ARGS__)

#define ARITHMETIC(NAME, OP, ARITY, ...)                                                          \
    FTZ_SAT(NAME, 0, OP, kFma, "f32", ARITY, __VA_ARGS__),                                        \
    DIRECTED(FTZ_SAT, NAME, OP, kFma, "f32", ARITY, __VA_ARGS__)

constexpr Semantics kTable[] = {
    ARITHMETIC("add", Add, BINARY, a + b),
    ARITHMETIC("sub", Sub, BINARY, a - b),
    ARITHMETIC("mul", Mul, BINARY, a * b),
    FTZ_SAT("fma", 0, Fma, kFma, "f32", TERNARY, fma(a, b, c)),
    DIRECTED(FTZ_SAT, "fma", Fma, kFma, "f32", TERNARY, fmaRounded(a, b, c)),
    FTZ_SAT("mad", 0, Fma, kFma, "f32", TERNARY, fma(a, b, c)),

    {"add.f32.f16", lane<[](f16 a, f32 b) -> f32 { return f32(a) + b; }, kArith>, Opcode::Add, kFma},
    {"add.f32.bf16", lane<[](bf16 a, f32 b) -> f32 { return f32(a) + b; }, kArith>, Opcode::Add, kFma},
    {"sub.f32.f16", lane<[](f16 a, f32 b) -> f32 { return f32(a) - b; }, kArith>, Opcode::Sub, kFma},
    {"sub.f32.bf16", lane<[](bf16 a, f32 b) -> f32 { return f32(a) - b; }, kArith>, Opcode::Sub, kFma},
    {"fma.f32.f16", lane<[](f16 a, f16 b, f32 c) -> f32 { return fma(f32(a), f32(b), c); }, kArith>, Opcode::Fma, kFma},
    {"fma.f32.bf16", lane<[](bf16 a, bf16 b, f32 c) -> f32 { return fma(f32(a), f32(b), c); }, kArith>, Opcode::Fma, kFma},

    FTZ_ARITH("div.approx", 0, Div, kDivApprox, "f32", BINARY, a / b),
    FTZ_ARITH("div.full", 0, Div, kDivFull, "f32", BINARY, a / b),
    FTZ_ARITH("div.rn", 0, Div, kDivRn, "f32", BINARY, a / b),
    DIRECTED(FTZ_ARITH, "div", Div, kDivRn, "f32", BINARY, a / b),
    FTZ_ARITH("rcp.approx", 0, Rcp, kSfu, "f32", UNARY, 1.0f / a),
    FTZ_ARITH("rcp.rn", 0, Rcp, kDivRn, "f32", UNARY, 1.0f / a),
    DIRECTED(FTZ_ARITH, "rcp", Rcp, kDivRn, "f32", UNARY, 1.0f / a),
    FTZ_ARITH("sqrt.approx", 0, Sqrt, kSfu, "f32", UNARY, squareRoot(a)),
    FTZ_ARITH("sqrt.rn", 0, Sqrt, kSqrtRn, "f32", UNARY, squareRoot(a)),
    DIRECTED(FTZ_ARITH, "sqrt", Sqrt, kSqrtRn, "f32", UNARY, squareRoot(a)),
    FTZ_ARITH("rsqrt.approx", 0, Rsqrt, kSfu, "f32", UNARY, 1.0 / squareRoot(f64(a))),

    FTZ("abs", 0, Abs, kInt, "f32", UNARY, magnitude(a)),
    FTZ("neg", 0, Neg, kInt, "f32", UNARY, negated(a)),
    FTZ("min", 0, Min, kInt, "f32", BINARY, minimum(a, b)),
    FTZ("max", 0, Max, kInt, "f32", BINARY, maximum(a, b)),
    {"min.NaN.f32", lane<BINARY(f32, minimumNan(a, b)), kArith>, Opcode::Min, kInt},
    {"max.NaN.f32", lane<BINARY(f32, maximumNan(a, b)), kArith>, Opcode::Max, kInt},
    {"min.ftz.NaN.f32", lane<BINARY(f32, minimumNan(a, b)), kArith | kFtz>, Opcode::Min, kInt},
    {"max.ftz.NaN.f32", lane<BINARY(f32, maximumNan(a, b)), kArith | kFtz>, Opcode::Max, kInt},
    FTZ("min", 0, Min, kInt, "xorsign.abs.f32", BINARY, withXorSign(minimum(magnitude(a), magnitude(b)), a, b)),
    FTZ("max", 0, Max, kInt, "xorsign.abs.f32", BINARY, withXorSign(maximum(magnitude(a), magnitude(b)), a, b)),
    FTZ("min", 0, Min, kInt, "NaN.xorsign.abs.f32", BINARY, withXorSign(minimumNan(magnitude(a), magnitude(b)), a, b)),
    FTZ("max", 0, Max, kInt, "NaN.xorsign.abs.f32", BINARY, withXorSign(maximumNan(magnitude(a), magnitude(b)), a, b)),
    // Three operands; the lowering tells them from the others by their number.
#define EXTREME3(NAME, OP, MODE, F)                                                               \
    {NAME "f32", lane<TERNARY(f32, F(F(a, b), c)), kArith | (MODE)>, Opcode::OP, kInt},           \
    {NAME "abs.f32", lane<TERNARY(f32, F(F(magnitude(a), magnitude(b)), magnitude(c))), kArith | (MODE)>, Opcode::OP, kInt}
    EXTREME3("min3.", Min, 0, minimum), EXTREME3("min3.ftz.", Min, kFtz, minimum),
    EXTREME3("min3.NaN.", Min, 0, minimumNan), EXTREME3("min3.ftz.NaN.", Min, kFtz, minimumNan),
    EXTREME3("max3.", Max, 0, maximum), EXTREME3("max3.ftz.", Max, kFtz, maximum),
    EXTREME3("max3.NaN.", Max, 0, maximumNan), EXTREME3("max3.ftz.NaN.", Max, kFtz, maximumNan),
    {"copysign.f32", lane<BINARY(f32, withSign(b, a))>, Opcode::CopySign, kInt},

#define TESTP(N, T)                                                                               \
    {"testp.finite." N, lane<[](T a) -> bool { return !isNan(a) && !isInfinite(a); }>, Opcode::TestP, kPredicate}, \
    {"testp.infinite." N, lane<[](T a) -> bool { return isInfinite(a); }>, Opcode::TestP, kPredicate},    \
    {"testp.number." N, lane<[](T a) -> bool { return !isNan(a); }>, Opcode::TestP, kPredicate},          \
    {"testp.notanumber." N, lane<[](T a) -> bool { return isNan(a); }>, Opcode::TestP, kPredicate},       \
    {"testp.normal." N, lane<[](T a) -> bool { return isNormal(a); }>, Opcode::TestP, kPredicate},        \
    {"testp.subnormal." N, lane<[](T a) -> bool { return isSubnormal(a); }>, Opcode::TestP, kPredicate}
    TESTP("f32", f32), TESTP("f64", f64),
};

// --- f64 ---------------------------------------------------------------------

#define DOUBLE(NAME, OP, TIMING, ARITY, ...)                                                      \
    {NAME ".f64", lane<ARITY(f64, __VA_ARGS__), kArith>, Opcode::OP, TIMING}
#define DOUBLE_DIRECTED(NAME, OP, TIMING, ARITY, ...)                                             \
    {NAME ".rz.f64", lane<ARITY(f64, __VA_ARGS__), kArith | kToZero>, Opcode::OP, TIMING},        \
    {NAME ".rm.f64", lane<ARITY(f64, __VA_ARGS__), kArith | kDown>, Opcode::OP, TIMING},          \
    {NAME ".rp.f64", lane<ARITY(f64, __VA_ARGS__), kArith | kUp>, Opcode::OP, TIMING}

constexpr Semantics kDoubleRows[] = {
    DOUBLE("add", Add, kFp64, BINARY, a + b), DOUBLE_DIRECTED("add", Add, kFp64, BINARY, a + b),
    DOUBLE("sub", Sub, kFp64, BINARY, a - b), DOUBLE_DIRECTED("sub", Sub, kFp64, BINARY, a - b),
    DOUBLE("mul", Mul, kFp64, BINARY, a * b), DOUBLE_DIRECTED("mul", Mul, kFp64, BINARY, a * b),
    DOUBLE("fma", Fma, kFp64, TERNARY, fma(a, b, c)), DOUBLE_DIRECTED("fma", Fma, kFp64, TERNARY, fmaRounded(a, b, c)),
    DOUBLE("mad", Fma, kFp64, TERNARY, fma(a, b, c)), DOUBLE_DIRECTED("mad", Fma, kFp64, TERNARY, fmaRounded(a, b, c)),
    DOUBLE("div.rn", Div, kDivFp64, BINARY, a / b), DOUBLE_DIRECTED("div", Div, kDivFp64, BINARY, a / b),
    DOUBLE("rcp.rn", Rcp, kDivFp64, UNARY, 1.0 / a), DOUBLE_DIRECTED("rcp", Rcp, kDivFp64, UNARY, 1.0 / a),
    DOUBLE("sqrt.rn", Sqrt, kDivFp64, UNARY, squareRoot(a)), DOUBLE_DIRECTED("sqrt", Sqrt, kDivFp64, UNARY, squareRoot(a)),
    DOUBLE("rsqrt.approx", Rsqrt, kSfu, UNARY, 1.0 / squareRoot(a)),
    {"rsqrt.approx.ftz.f64", lane<UNARY(f64, grossRsqrt(a)), kArith | kFtz>, Opcode::Rsqrt, kSfu},
    {"rcp.approx.ftz.f64", lane<UNARY(f64, grossReciprocal(a)), kArith | kFtz>, Opcode::Rcp, kSfu},
    {"abs.f64", lane<UNARY(f64, magnitude(a))>, Opcode::Abs, kInt64},
    {"neg.f64", lane<UNARY(f64, negated(a))>, Opcode::Neg, kInt64},
    DOUBLE("min", Min, kFp64, BINARY, minimum(a, b)),
    DOUBLE("max", Max, kFp64, BINARY, maximum(a, b)),
    {"copysign.f64", lane<BINARY(f64, withSign(b, a))>, Opcode::CopySign, kInt64},
};
// clang-format on

} // namespace

const Table kFloatTable{kTable};
const Table kDoubleTable{kDoubleRows};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
