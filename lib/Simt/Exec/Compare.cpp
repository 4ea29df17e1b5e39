//===- Compare.cpp - Comparison and selection -----------------------------===//
//
// setp has one row per comparison and type. Its second destination (`p|q`) and
// its boolean operand (`setp.lt.and`) are operands of every row: dst[1] may be
// absent, MicroOp::sub is a Combine. `set` is lowered to setp and selp, but for
// packed halves.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Compare.h"
#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

LANE LaneMask combine(const ExecContext &context, const MicroOp &op,
                      LaneMask value) {
  if (op.sub == static_cast<uint8_t>(Combine::None)) [[likely]]
    return value;
  LaneMask other = context.predicate(op.src[2]);
  if (op.has(kPredSrcNegated))
    other = ~other;
  switch (static_cast<Combine>(op.sub)) {
  case Combine::And:
    return value & other;
  case Combine::Or:
    return value | other;
  default:
    return value ^ other;
  }
}

/// dst[0] = (a ? b) op c, dst[1] = !(a ? b) op c.
template <auto F, unsigned M, class Signature> struct Comparison;
template <auto F, unsigned M, class T> struct Comparison<F, M, bool (*)(T, T)> {
  static constexpr char signature[] = {'p', '=', Layout<T, 1>::letter,
                                       Layout<T, 1>::letter, '\0'};
  static void run(ExecContext &context, const MicroOp &op, LaneMask active) {
    Source<T, 1> a(context, op.src[0]), b(context, op.src[1]);
    alignas(64) u32 flags[kWarpSize];
    for (unsigned i = 0; i < kWarpSize; ++i)
      flags[i] = F(prepare<M>(a.at(i)), prepare<M>(b.at(i))) ? ~0u : 0u;
    LaneMask value = collect(flags);
    LaneMask first = combine(context, op, value);
    LaneMask second =
        op.dst[1] == kNoPredicate ? 0 : combine(context, op, ~value);
    writePredicate(context, op.dst[0], first, active);
    writePredicate(context, op.dst[1], second, active);
  }
};
/// Packed halves: dst[0] for the low ones, dst[1] for the high ones.
template <auto F, unsigned M, class Signature> struct PackedComparison;
template <auto F, unsigned M, class T>
struct PackedComparison<F, M, bool (*)(T, T)> {
  static void run(ExecContext &context, const MicroOp &op, LaneMask active) {
    Source<T, 2> a(context, op.src[0]), b(context, op.src[1]);
    LaneMask value[2] = {0, 0};
    for (unsigned i = 0; i < kWarpSize; ++i)
      for (unsigned half = 0; half < 2; ++half) {
        unsigned k = 2 * i + half;
        value[half] |= LaneMask(F(prepare<M>(a.at(k)), prepare<M>(b.at(k))))
                       << i;
      }
    value[0] = combine(context, op, value[0]);
    value[1] = combine(context, op, value[1]);
    writePredicate(context, op.dst[0], value[0], active);
    writePredicate(context, op.dst[1], value[1], active);
  }
};
template <auto F, unsigned M = kPlain>
inline constexpr Form comparison = {Comparison<F, M, decltype(+F)>::signature,
                                    &Comparison<F, M, decltype(+F)>::run};
template <auto F, unsigned M = kPlain>
inline constexpr Form packedComparison = {
    "p=ww", &PackedComparison<F, M, decltype(+F)>::run};

template <class T> LANE T one(bool condition) {
  return condition ? T(1.0f) : T(0.0f);
}

template <class T> LANE T choose(bool condition, T a, T b) {
  return condition ? a : b;
}

// clang-format off
#define COMPARE(T, ...) [](T a, T b) -> bool { return (__VA_ARGS__); }
#define SETP(CMP, N, T, ...)                                                                      \
    {"setp." CMP "." N, comparison<COMPARE(T, __VA_ARGS__)>, Opcode::Setp, kPredicate}
#define SETP_EQUAL(N, T) SETP("eq", N, T, a == b), SETP("ne", N, T, a != b)
#define SETP_SIGNED(N, T)                                                                         \
    SETP_EQUAL(N, T), SETP("lt", N, T, a < b), SETP("le", N, T, a <= b),                          \
    SETP("gt", N, T, a > b), SETP("ge", N, T, a >= b)
#define SETP_UNSIGNED(N, T)                                                                       \
    SETP_SIGNED(N, T), SETP("lo", N, T, a < b), SETP("ls", N, T, a <= b),                         \
    SETP("hi", N, T, a > b), SETP("hs", N, T, a >= b)

// Parentheses: g++ 12 takes a bare `>` for the end of the template arguments.
// ROW(comparison, body): x and y are f32 or f64 values, ordered comparisons are
// false and unordered ones true when one is a NaN.
#define FLOAT_COMPARISONS(ROW, N, T, W, M)                                                        \
    ROW("eq", N, T, W, M, x == y), ROW("ne", N, T, W, M, x < y || x > y),                         \
    ROW("lt", N, T, W, M, x < y), ROW("le", N, T, W, M, x <= y),                                  \
    ROW("gt", N, T, W, M, x > y), ROW("ge", N, T, W, M, x >= y),                                  \
    ROW("equ", N, T, W, M, !(x < y || x > y)), ROW("neu", N, T, W, M, x != y),                    \
    ROW("ltu", N, T, W, M, !(x >= y)), ROW("leu", N, T, W, M, !(x > y)),                          \
    ROW("gtu", N, T, W, M, !(x <= y)), ROW("geu", N, T, W, M, !(x < y)),                          \
    ROW("num", N, T, W, M, x == x && y == y), ROW("nan", N, T, W, M, x != x || y != y)

#define SETP_FLOAT(CMP, N, T, W, M, ...)                                                          \
    {"setp." CMP "." N, comparison<[](T a, T b) -> bool { W x = a, y = b; return (__VA_ARGS__); }, M>, \
     Opcode::Setp, kPredicate}
#define SETP_PACKED(CMP, N, T, W, M, ...)                                                         \
    {"setp." CMP "." N, packedComparison<[](T a, T b) -> bool { W x = a, y = b; return (__VA_ARGS__); }, M>, \
     Opcode::Setp, kPredicate}
#define SET_PACKED(CMP, N, T, W, M, ...)                                                          \
    {"set." CMP "." N, lane2<[](T a, T b) -> T {                                                  \
       W x = a, y = b; return one<T>(__VA_ARGS__); }, M>,                                         \
     Opcode::Set, kHalf}

#define SELP(N, T) {"selp." N, lane<[](T a, T b, bool c) -> T { return choose(c, a, b); }>, Opcode::Selp, kSelect}
#define SLCT(N, T)                                                                                \
    {"slct." N ".s32", lane<[](T a, T b, i32 c) -> T { return choose(c >= 0, a, b); }>, Opcode::Slct, kSelect}, \
    {"slct." N ".f32", lane<[](T a, T b, f32 c) -> T { return choose(c >= 0, a, b); }>, Opcode::Slct, kSelect}, \
    {"slct.ftz." N ".f32", lane<[](T a, T b, f32 c) -> T { return choose(c >= 0, a, b); }, kFtz>, Opcode::Slct, kSelect}

constexpr Semantics kTable[] = {
    SETP_EQUAL("b16", u16), SETP_EQUAL("b32", u32), SETP_EQUAL("b64", u64),
    SETP_SIGNED("s16", i16), SETP_SIGNED("s32", i32), SETP_SIGNED("s64", i64),
    SETP_UNSIGNED("u16", u16), SETP_UNSIGNED("u32", u32), SETP_UNSIGNED("u64", u64),
    FLOAT_COMPARISONS(SETP_FLOAT, "f32", f32, f32, 0),
    FLOAT_COMPARISONS(SETP_FLOAT, "ftz.f32", f32, f32, kFtz),
    FLOAT_COMPARISONS(SETP_FLOAT, "f64", f64, f64, 0),
    FLOAT_COMPARISONS(SETP_FLOAT, "f16", f16, f32, 0),
    FLOAT_COMPARISONS(SETP_FLOAT, "ftz.f16", f16, f32, kFtz),
    FLOAT_COMPARISONS(SETP_FLOAT, "bf16", bf16, f32, 0),
    FLOAT_COMPARISONS(SETP_PACKED, "f16x2", f16, f32, 0),
    FLOAT_COMPARISONS(SETP_PACKED, "bf16x2", bf16, f32, 0),
    FLOAT_COMPARISONS(SET_PACKED, "f16x2.f16x2", f16, f32, 0),
    FLOAT_COMPARISONS(SET_PACKED, "ftz.f16x2.f16x2", f16, f32, kFtz),
    FLOAT_COMPARISONS(SET_PACKED, "bf16x2.bf16x2", bf16, f32, 0),

    SELP("b16", u16), SELP("u16", u16), SELP("s16", u16), SELP("f16", u16), SELP("bf16", u16),
    SELP("b32", u32), SELP("u32", u32), SELP("s32", u32), SELP("f32", u32),
    SELP("b64", u64), SELP("u64", u64), SELP("s64", u64), SELP("f64", u64),
    SLCT("b16", u16), SLCT("u16", u16), SLCT("s16", u16), SLCT("b32", u32), SLCT("u32", u32),
    SLCT("s32", u32), SLCT("f32", u32), SLCT("b64", u64), SLCT("u64", u64), SLCT("s64", u64),
    SLCT("f64", u64),
};
// clang-format on

} // namespace

const Table kCompareTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
