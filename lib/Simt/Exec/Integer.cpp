//===- Integer.cpp - Integer arithmetic and bit fields --------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

// --- arithmetic --------------------------------------------------------------

constexpr Form kAdd16 = lane<BINARY(u16, a + b)>;
constexpr Form kAdd32 = lane<BINARY(u32, a + b)>;
constexpr Form kAdd64 = lane<BINARY(u64, a + b)>;
constexpr Form kAdd16x2 = lane2<BINARY(u16, a + b)>;
constexpr Form kSub16 = lane<BINARY(u16, a - b)>;
constexpr Form kSub32 = lane<BINARY(u32, a - b)>;
constexpr Form kSub64 = lane<BINARY(u64, a - b)>;
constexpr Form kMul16 = lane<BINARY(u16, u32(a) * u32(b))>;
constexpr Form kMul32 = lane<BINARY(u32, a *b)>;
constexpr Form kMul64 = lane<BINARY(u64, a *b)>;
constexpr Form kMad16 = lane<TERNARY(u16, u32(a) * u32(b) + u32(c))>;
constexpr Form kMad32 = lane<TERNARY(u32, a *b + c)>;
constexpr Form kMad64 = lane<TERNARY(u64, a *b + c)>;

LANE i32 saturate32(i64 value) {
  value = value < INT32_MIN ? i64(INT32_MIN) : value;
  return static_cast<i32>(value > INT32_MAX ? i64(INT32_MAX) : value);
}

LANE u32 mulHi(u32 a, u32 b) { return static_cast<u32>(u64(a) * b >> 32); }
LANE i32 mulHi(i32 a, i32 b) { return static_cast<i32>(i64(a) * b >> 32); }
LANE u64 mulHi(u64 a, u64 b) {
  return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64);
}
LANE i64 mulHi(i64 a, i64 b) {
  return static_cast<i64>(static_cast<__int128>(a) * b >> 64);
}

LANE u32 low24(u32 a) { return a & 0xFF'FFFF; }
LANE i32 low24(i32 a) {
  return static_cast<i32>(static_cast<u32>(a) << 8) >> 8;
}

/// Division by zero gives all ones, the remainder is then the dividend.
template <class T> LANE T quotient(T a, T b) {
  if (b == 0)
    return static_cast<T>(~T(0));
  if constexpr (static_cast<T>(-1) < T(0))
    if (b == static_cast<T>(-1))
      return static_cast<T>(-a);
  return static_cast<T>(a / b);
}
template <class T> LANE T remainder(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (static_cast<T>(-1) < T(0))
    if (b == static_cast<T>(-1))
      return 0;
  return static_cast<T>(a % b);
}

template <class T> LANE T distance(T a, T b) {
  return static_cast<T>(a > b ? a - b : b - a);
}

// --- carry: predicate 1 of the destinations, last source ---------------------

/// d = a + b (+ carry), carry out. Subtraction has borrows as carries.
template <class T, bool In, bool Out, bool Subtract>
void addCarry(ExecContext &context, const MicroOp &op, LaneMask active) {
  const T *a = reinterpret_cast<const T *>(context.src(op.src[0]));
  const T *b = reinterpret_cast<const T *>(context.src(op.src[1]));
  T *to = reinterpret_cast<T *>(context.dst(op.dst[0]));
  LaneMask in = In ? context.predicate(op.src[2]) : 0;
  LaneMask out = 0;
  T result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i) {
    T x = a[i], y = b[i], carry = in >> i & 1;
    T partial = Subtract ? x - y : x + y;
    result[i] = Subtract ? partial - carry : partial + carry;
    bool overflow = Subtract ? x < y || partial < carry
                             : partial < x || result[i] < partial;
    out |= static_cast<LaneMask>(overflow) << i;
  }
  blend<1>(to, result, active);
  if constexpr (Out)
    writePredicate(context, op.dst[1], out, active);
}

/// d = low or high half of a * b, + c (+ carry), carry out.
template <class T, class Wide, bool High, bool In, bool Out>
void madCarry(ExecContext &context, const MicroOp &op, LaneMask active) {
  const T *a = reinterpret_cast<const T *>(context.src(op.src[0]));
  const T *b = reinterpret_cast<const T *>(context.src(op.src[1]));
  const T *c = reinterpret_cast<const T *>(context.src(op.src[2]));
  T *to = reinterpret_cast<T *>(context.dst(op.dst[0]));
  LaneMask in = In ? context.predicate(op.src[3]) : 0;
  LaneMask out = 0;
  T result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i) {
    Wide product = static_cast<Wide>(a[i]) * static_cast<Wide>(b[i]);
    T half = static_cast<T>(High ? product >> (8 * sizeof(T)) : product);
    T partial = half + c[i], carry = in >> i & 1;
    result[i] = partial + carry;
    out |= static_cast<LaneMask>(partial < half || result[i] < partial) << i;
  }
  blend<1>(to, result, active);
  if constexpr (Out)
    writePredicate(context, op.dst[1], out, active);
}

// --- bit fields --------------------------------------------------------------

template <class T> LANE T lowMask(u32 bits) {
  constexpr u32 width = 8 * sizeof(T);
  return bits >= width ? ~T(0)
                       : static_cast<T>((T(1) << (bits & (width - 1))) - 1);
}
template <class T> LANE T shiftLeft(T a, u32 b) {
  constexpr u32 width = 8 * sizeof(T);
  return b >= width ? T(0) : static_cast<T>(a << (b & (width - 1)));
}
template <class T> LANE T shiftRight(T a, u32 b) {
  constexpr u32 width = 8 * sizeof(T);
  return b >= width ? T(0) : static_cast<T>(a >> (b & (width - 1)));
}

template <class T> LANE T extract(T a, u32 pos, u32 len) {
  return shiftRight(a, pos & 0xFF) & lowMask<T>(len & 0xFF);
}
/// Bits beyond the field or the register are copies of the field's last bit.
template <class T> LANE T extractSigned(T a, u32 pos, u32 len) {
  constexpr u32 width = 8 * sizeof(T);
  pos &= 0xFF, len &= 0xFF;
  u32 last = pos + len - 1 < width ? pos + len - 1 : width - 1;
  bool sign = len != 0 && (a >> (last & (width - 1)) & 1) != 0;
  u32 available = pos < width ? width - pos : 0;
  T mask = lowMask<T>(len < available ? len : available);
  return (shiftRight(a, pos) & mask) | (sign ? static_cast<T>(~mask) : T(0));
}
template <class T> LANE T insert(T a, T b, u32 pos, u32 len) {
  T mask = shiftLeft(lowMask<T>(len & 0xFF), pos & 0xFF);
  return (b & ~mask) | (shiftLeft(a, pos & 0xFF) & mask);
}

LANE u32 countLeadingZeros(u32 a) {
  return a ? static_cast<u32>(__builtin_clz(a)) : 32;
}
LANE u32 countLeadingZeros(u64 a) {
  return a ? static_cast<u32>(__builtin_clzll(a)) : 64;
}
LANE u32 reverse(u32 a) {
  a = (a >> 1 & 0x5555'5555) | (a & 0x5555'5555) << 1;
  a = (a >> 2 & 0x3333'3333) | (a & 0x3333'3333) << 2;
  a = (a >> 4 & 0x0F0F'0F0F) | (a & 0x0F0F'0F0F) << 4;
  return __builtin_bswap32(a);
}
LANE u64 reverse(u64 a) {
  return u64(reverse(static_cast<u32>(a))) << 32 |
         reverse(static_cast<u32>(a >> 32));
}

/// Position of the highest bit that differs from the sign; all ones if none.
template <class T, bool ShiftAmount, class Signed>
LANE u32 findHighest(Signed value) {
  T bits = static_cast<T>(value < 0 ? ~value : value);
  u32 zeros = countLeadingZeros(bits);
  constexpr u32 width = 8 * sizeof(T);
  return zeros == width ? ~0u : ShiftAmount ? zeros : width - 1 - zeros;
}

/// The offset-th set bit of `mask` from `base` on, upwards if offset > 0.
LANE u32 findNthSet(u32 mask, u32 base, i32 offset) {
  if (offset == 0)
    return base < 32 && (mask >> base & 1) ? base : ~0u;
  i32 step = offset > 0 ? 1 : -1;
  u32 wanted = static_cast<u32>(offset > 0 ? offset : -offset);
  for (i32 i = static_cast<i32>(base); i >= 0 && i < 32; i += step)
    if ((mask >> i & 1) && --wanted == 0)
      return static_cast<u32>(i);
  return ~0u;
}

template <bool Clamp> LANE u32 bitMask(u32 a, u32 b) {
  u32 sum = (a & 31) + (b & 31);
  u32 from = Clamp && a >= 32 ? 0 : ~0u << (a & 31);
  u32 beyond =
      sum >= 32 || (Clamp && (a >= 32 || b >= 32)) ? 0 : ~0u << (sum & 31);
  return from & ~beyond;
}

template <bool Signed, bool Clamp> LANE u32 extend(u32 a, u32 b) {
  bool tooLarge = Clamp && b >= 32;
  u32 mask = tooLarge ? 0 : ~0u << (b & 31);
  bool sign =
      Signed && !tooLarge && (b & 31) != 0 && (a >> ((b - 1) & 31) & 1) != 0;
  return (a & ~mask) | (sign ? mask : 0);
}

template <class A, class B> LANE u32 dot4(u32 a, u32 b, u32 c) {
  for (unsigned i = 0; i < 32; i += 8)
    c += static_cast<u32>(i32(static_cast<A>(a >> i)) *
                          i32(static_cast<B>(b >> i)));
  return c;
}
template <class A, class A8, class B8, unsigned High>
LANE u32 dot2(u32 a, u32 b, u32 c) {
  for (unsigned i = 0; i < 2; ++i)
    c += static_cast<u32>(i32(static_cast<A>(a >> 16 * i)) *
                          i32(static_cast<B8>(b >> (16 * High + 8 * i))));
  return c;
}

#define FOR_INT(ROW)                                                           \
  ROW("u16", u16, kInt), ROW("s16", i16, kInt), ROW("u32", u32, kInt),         \
      ROW("s32", i32, kInt), ROW("u64", u64, kInt64), ROW("s64", i64, kInt64)

#define MIN(N, T, TIMING)                                                      \
  {"min." N, lane<BINARY(T, a < b ? a : b)>, Opcode::Min, TIMING}
#define MAX(N, T, TIMING)                                                      \
  {"max." N, lane<BINARY(T, a > b ? a : b)>, Opcode::Max, TIMING}
#define SAD(N, T, TIMING)                                                      \
  {"sad." N, lane<TERNARY(T, distance(a, b) + c)>, Opcode::Sad, TIMING}
#define DIV(N, T, TIMING)                                                      \
  {"div." N, lane<BINARY(T, quotient(a, b))>, Opcode::Div, TIMING}
#define REM(N, T, TIMING)                                                      \
  {"rem." N, lane<BINARY(T, remainder(a, b))>, Opcode::Rem, TIMING}
#define MULWIDE(N, T, W)                                                       \
  {"mul.wide." N,                                                              \
   lane<[](T a, T b) -> W { return static_cast<W>(W(a) * W(b)); }>,            \
   Opcode::Mul, kIntMulWide}
#define MADWIDE(N, T, W)                                                       \
  {"mad.wide." N,                                                              \
   lane<[](T a, T b, W c) -> W { return static_cast<W>(W(a) * W(b) + c); }>,   \
   Opcode::Mad, kIntMulWide}

constexpr Semantics kTable[] = {
    // clang-format off
    {"add.u16", kAdd16, Opcode::Add, kInt},
    {"add.s16", kAdd16, Opcode::Add, kInt},
    {"add.u32", kAdd32, Opcode::Add, kInt},
    {"add.s32", kAdd32, Opcode::Add, kInt},
    {"add.u64", kAdd64, Opcode::Add, kInt64},
    {"add.s64", kAdd64, Opcode::Add, kInt64},
    {"add.u16x2", kAdd16x2, Opcode::Add, kInt},
    {"add.s16x2", kAdd16x2, Opcode::Add, kInt},
    {"add.sat.s32", lane<BINARY(i32, saturate32(i64(a) + b))>, Opcode::Add, kInt},
    {"sub.u16", kSub16, Opcode::Sub, kInt},
    {"sub.s16", kSub16, Opcode::Sub, kInt},
    {"sub.u32", kSub32, Opcode::Sub, kInt},
    {"sub.s32", kSub32, Opcode::Sub, kInt},
    {"sub.u64", kSub64, Opcode::Sub, kInt64},
    {"sub.s64", kSub64, Opcode::Sub, kInt64},
    {"sub.sat.s32", lane<BINARY(i32, saturate32(i64(a) - b))>, Opcode::Sub, kInt},

    {"mul.lo.u16", kMul16, Opcode::Mul, kIntMul},
    {"mul.lo.s16", kMul16, Opcode::Mul, kIntMul},
    {"mul.lo.u32", kMul32, Opcode::Mul, kIntMul},
    {"mul.lo.s32", kMul32, Opcode::Mul, kIntMul},
    {"mul.lo.u64", kMul64, Opcode::Mul, kIntMul64},
    {"mul.lo.s64", kMul64, Opcode::Mul, kIntMul64},
    {"mul.hi.u16", lane<BINARY(u16, u32(a) * u32(b) >> 16)>, Opcode::Mul, kIntMul},
    {"mul.hi.s16", lane<BINARY(i16, i32(a) * i32(b) >> 16)>, Opcode::Mul, kIntMul},
    {"mul.hi.u32", lane<BINARY(u32, mulHi(a, b))>, Opcode::Mul, kIntMulWide},
    {"mul.hi.s32", lane<BINARY(i32, mulHi(a, b))>, Opcode::Mul, kIntMulWide},
    {"mul.hi.u64", lane<BINARY(u64, mulHi(a, b))>, Opcode::Mul, kIntMul64},
    {"mul.hi.s64", lane<BINARY(i64, mulHi(a, b))>, Opcode::Mul, kIntMul64},
    MULWIDE("u16", u16, u32), MULWIDE("s16", i16, i32),
    MULWIDE("u32", u32, u64), MULWIDE("s32", i32, i64),

    {"mad.lo.u16", kMad16, Opcode::Mad, kIntMul},
    {"mad.lo.s16", kMad16, Opcode::Mad, kIntMul},
    {"mad.lo.u32", kMad32, Opcode::Mad, kIntMul},
    {"mad.lo.s32", kMad32, Opcode::Mad, kIntMul},
    {"mad.lo.u64", kMad64, Opcode::Mad, kIntMul64},
    {"mad.lo.s64", kMad64, Opcode::Mad, kIntMul64},
    {"mad.hi.u16", lane<TERNARY(u16, (u32(a) * u32(b) >> 16) + c)>, Opcode::Mad, kIntMul},
    {"mad.hi.s16", lane<TERNARY(i16, (i32(a) * i32(b) >> 16) + c)>, Opcode::Mad, kIntMul},
    {"mad.hi.u32", lane<TERNARY(u32, mulHi(a, b) + c)>, Opcode::Mad, kIntMulWide},
    {"mad.hi.s32", lane<TERNARY(i32, mulHi(a, b) + c)>, Opcode::Mad, kIntMulWide},
    {"mad.hi.sat.s32", lane<TERNARY(i32, saturate32(i64(mulHi(a, b)) + c))>, Opcode::Mad, kIntMulWide},
    {"mad.hi.u64", lane<TERNARY(u64, mulHi(a, b) + c)>, Opcode::Mad, kIntMul64},
    {"mad.hi.s64", lane<TERNARY(i64, mulHi(a, b) + c)>, Opcode::Mad, kIntMul64},
    MADWIDE("u16", u16, u32), MADWIDE("s16", i16, i32),
    MADWIDE("u32", u32, u64), MADWIDE("s32", i32, i64),

    {"mul24.lo.u32", lane<BINARY(u32, low24(a) * low24(b))>, Opcode::Mul24, kIntMul},
    {"mul24.lo.s32", lane<BINARY(i32, i64(low24(a)) * low24(b))>, Opcode::Mul24, kIntMul},
    {"mul24.hi.u32", lane<BINARY(u32, u64(low24(a)) * low24(b) >> 16)>, Opcode::Mul24, kIntMul},
    {"mul24.hi.s32", lane<BINARY(i32, i64(low24(a)) * low24(b) >> 16)>, Opcode::Mul24, kIntMul},
    {"mad24.lo.u32", lane<TERNARY(u32, low24(a) * low24(b) + c)>, Opcode::Mad24, kIntMul},
    {"mad24.lo.s32", lane<TERNARY(i32, i64(low24(a)) * low24(b) + c)>, Opcode::Mad24, kIntMul},
    {"mad24.hi.u32", lane<TERNARY(u32, (u64(low24(a)) * low24(b) >> 16) + c)>, Opcode::Mad24, kIntMul},
    {"mad24.hi.s32", lane<TERNARY(i32, (i64(low24(a)) * low24(b) >> 16) + c)>, Opcode::Mad24, kIntMul},

#define CARRY_ADD(N, T, LETTER, TIMING)                                                           \
    {"add.cc." N, {LETTER "p=" LETTER LETTER, addCarry<T, false, true, false>}, Opcode::Add, TIMING},  \
    {"addc." N, {LETTER "=" LETTER LETTER "p", addCarry<T, true, false, false>}, Opcode::AddC, TIMING}, \
    {"addc.cc." N, {LETTER "p=" LETTER LETTER "p", addCarry<T, true, true, false>}, Opcode::AddC, TIMING}, \
    {"sub.cc." N, {LETTER "p=" LETTER LETTER, addCarry<T, false, true, true>}, Opcode::Sub, TIMING},   \
    {"subc." N, {LETTER "=" LETTER LETTER "p", addCarry<T, true, false, true>}, Opcode::SubC, TIMING}, \
    {"subc.cc." N, {LETTER "p=" LETTER LETTER "p", addCarry<T, true, true, true>}, Opcode::SubC, TIMING}
    CARRY_ADD("u32", u32, "w", kInt), CARRY_ADD("s32", u32, "w", kInt),
    CARRY_ADD("u64", u64, "d", kInt64), CARRY_ADD("s64", u64, "d", kInt64),
#define CARRY_MAD(N, T, W, U, UW, LETTER, TIMING)                                                 \
    {"mad.lo.cc." N, {LETTER "p=" LETTER LETTER LETTER, madCarry<U, UW, false, false, true>}, Opcode::Mad, TIMING},   \
    {"madc.lo." N, {LETTER "=" LETTER LETTER LETTER "p", madCarry<U, UW, false, true, false>}, Opcode::MadC, TIMING}, \
    {"madc.lo.cc." N, {LETTER "p=" LETTER LETTER LETTER "p", madCarry<U, UW, false, true, true>}, Opcode::MadC, TIMING}
    CARRY_MAD("u32", u32, u64, u32, u64, "w", kIntMulWide), CARRY_MAD("s32", i32, i64, u32, u64, "w", kIntMulWide),
    CARRY_MAD("u64", u64, unsigned __int128, u64, unsigned __int128, "d", kIntMul64),
    CARRY_MAD("s64", i64, __int128, u64, unsigned __int128, "d", kIntMul64),
#define CARRY_MAD_HI(N, U, UW, LETTER, TIMING)                                                    \
    {"mad.hi.cc." N, {LETTER "p=" LETTER LETTER LETTER, madCarry<U, UW, true, false, true>}, Opcode::Mad, TIMING},   \
    {"madc.hi." N, {LETTER "=" LETTER LETTER LETTER "p", madCarry<U, UW, true, true, false>}, Opcode::MadC, TIMING}, \
    {"madc.hi.cc." N, {LETTER "p=" LETTER LETTER LETTER "p", madCarry<U, UW, true, true, true>}, Opcode::MadC, TIMING}
    CARRY_MAD_HI("u32", u32, u64, "w", kIntMulWide),
    CARRY_MAD_HI("u64", u64, unsigned __int128, "d", kIntMul64),

    FOR_INT(SAD), FOR_INT(DIV), FOR_INT(REM), FOR_INT(MIN), FOR_INT(MAX),
    {"abs.s16", lane<UNARY(i16, a < 0 ? -a : a)>, Opcode::Abs, kInt},
    {"abs.s32", lane<UNARY(i32, a < 0 ? -a : a)>, Opcode::Abs, kInt},
    {"abs.s64", lane<UNARY(i64, a < 0 ? -a : a)>, Opcode::Abs, kInt64},
    {"neg.s16", lane<UNARY(i16, -a)>, Opcode::Neg, kInt},
    {"neg.s32", lane<UNARY(i32, -a)>, Opcode::Neg, kInt},
    {"neg.s64", lane<UNARY(i64, -a)>, Opcode::Neg, kInt64},
    {"min.u16x2", lane2<BINARY(u16, a < b ? a : b)>, Opcode::Min, kInt},
    {"min.s16x2", lane2<BINARY(i16, a < b ? a : b)>, Opcode::Min, kInt},
    {"max.u16x2", lane2<BINARY(u16, a > b ? a : b)>, Opcode::Max, kInt},
    {"max.s16x2", lane2<BINARY(i16, a > b ? a : b)>, Opcode::Max, kInt},
    {"min.relu.s32", lane<BINARY(i32, a < 0 || b < 0 ? 0 : a < b ? a : b)>, Opcode::Min, kInt},
    {"max.relu.s32", lane<BINARY(i32, a < 0 && b < 0 ? 0 : a > b ? a : b)>, Opcode::Max, kInt},
    {"min.relu.s16x2", lane2<BINARY(i16, a < 0 || b < 0 ? 0 : a < b ? a : b)>, Opcode::Min, kInt},
    {"max.relu.s16x2", lane2<BINARY(i16, a < 0 && b < 0 ? 0 : a > b ? a : b)>, Opcode::Max, kInt},

    {"popc.b32", lane<UNARY(u32, __builtin_popcount(a))>, Opcode::Popc, kBitCount},
    {"popc.b64", lane<[](u64 a) -> u32 { return static_cast<u32>(__builtin_popcountll(a)); }>, Opcode::Popc, kBitCount},
    {"clz.b32", lane<UNARY(u32, countLeadingZeros(a))>, Opcode::Clz, kBitCount},
    {"clz.b64", lane<[](u64 a) -> u32 { return countLeadingZeros(a); }>, Opcode::Clz, kBitCount},
    {"bfind.u32", lane<[](u32 a) -> u32 { return findHighest<u32, false>(i64(a)); }>, Opcode::Bfind, kBitCount},
    {"bfind.s32", lane<[](i32 a) -> u32 { return findHighest<u32, false>(a); }>, Opcode::Bfind, kBitCount},
    {"bfind.u64", lane<[](u64 a) -> u32 { u32 n = countLeadingZeros(a); return n == 64 ? ~0u : 63 - n; }>, Opcode::Bfind, kBitCount},
    {"bfind.s64", lane<[](i64 a) -> u32 { return findHighest<u64, false>(a); }>, Opcode::Bfind, kBitCount},
    {"bfind.shiftamt.u32", lane<[](u32 a) -> u32 { return findHighest<u32, true>(i64(a)); }>, Opcode::Bfind, kBitCount},
    {"bfind.shiftamt.s32", lane<[](i32 a) -> u32 { return findHighest<u32, true>(a); }>, Opcode::Bfind, kBitCount},
    {"bfind.shiftamt.u64", lane<[](u64 a) -> u32 { u32 n = countLeadingZeros(a); return n == 64 ? ~0u : n; }>, Opcode::Bfind, kBitCount},
    {"bfind.shiftamt.s64", lane<[](i64 a) -> u32 { return findHighest<u64, true>(a); }>, Opcode::Bfind, kBitCount},
    {"fns.b32", lane<[](u32 a, u32 b, i32 c) -> u32 { return findNthSet(a, b, c); }>, Opcode::Fns, kBitCount},
    {"brev.b32", lane<UNARY(u32, reverse(a))>, Opcode::Brev, kBitCount},
    {"brev.b64", lane<UNARY(u64, reverse(a))>, Opcode::Brev, kBitCount},
    {"bfe.u32", lane<TERNARY(u32, extract(a, b, c))>, Opcode::Bfe, kInt},
    {"bfe.s32", lane<TERNARY(u32, extractSigned(a, b, c))>, Opcode::Bfe, kInt},
    {"bfe.u64", lane<[](u64 a, u32 b, u32 c) -> u64 { return extract(a, b, c); }>, Opcode::Bfe, kInt64},
    {"bfe.s64", lane<[](u64 a, u32 b, u32 c) -> u64 { return extractSigned(a, b, c); }>, Opcode::Bfe, kInt64},
    {"bfi.b32", lane<[](u32 a, u32 b, u32 c, u32 d) -> u32 { return insert(a, b, c, d); }>, Opcode::Bfi, kInt},
    {"bfi.b64", lane<[](u64 a, u64 b, u32 c, u32 d) -> u64 { return insert(a, b, c, d); }>, Opcode::Bfi, kInt64},
    {"bmsk.clamp.b32", lane<BINARY(u32, bitMask<true>(a, b))>, Opcode::Bmsk, kInt},
    {"bmsk.wrap.b32", lane<BINARY(u32, bitMask<false>(a, b))>, Opcode::Bmsk, kInt},
    {"szext.clamp.u32", lane<BINARY(u32, extend<false, true>(a, b))>, Opcode::Szext, kInt},
    {"szext.clamp.s32", lane<BINARY(u32, extend<true, true>(a, b))>, Opcode::Szext, kInt},
    {"szext.wrap.u32", lane<BINARY(u32, extend<false, false>(a, b))>, Opcode::Szext, kInt},
    {"szext.wrap.s32", lane<BINARY(u32, extend<true, false>(a, b))>, Opcode::Szext, kInt},

    {"dp4a.u32.u32", lane<TERNARY(u32, dot4<u8, u8>(a, b, c))>, Opcode::Dp4a, kIntMul},
    {"dp4a.u32.s32", lane<TERNARY(u32, dot4<u8, i8>(a, b, c))>, Opcode::Dp4a, kIntMul},
    {"dp4a.s32.u32", lane<TERNARY(u32, dot4<i8, u8>(a, b, c))>, Opcode::Dp4a, kIntMul},
    {"dp4a.s32.s32", lane<TERNARY(u32, dot4<i8, i8>(a, b, c))>, Opcode::Dp4a, kIntMul},
#define DP2A(N, A, B)                                                                             \
    {"dp2a.lo." N, lane<TERNARY(u32, dot2<A, A, B, 0>(a, b, c))>, Opcode::Dp2a, kIntMul},         \
    {"dp2a.hi." N, lane<TERNARY(u32, dot2<A, A, B, 1>(a, b, c))>, Opcode::Dp2a, kIntMul}
    DP2A("u32.u32", u16, u8), DP2A("u32.s32", u16, i8), DP2A("s32.u32", i16, u8), DP2A("s32.s32", i16, i8),
    // clang-format on
};

} // namespace

const Table kIntegerTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
