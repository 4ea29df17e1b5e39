//===- Convert.cpp - cvt --------------------------------------------------===//
//
// Integer widths, integer and float, float widths, roundings to integers, fp8.
// Float to integer saturates; a NaN becomes 0, or the value with only the top
// bit set when a side has 64 bits, as the PTX manual says.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

template <class T> constexpr bool kIsSigned = static_cast<T>(-1) < T(0);
template <class T> constexpr unsigned kBits = 8 * sizeof(T);
template <class T>
constexpr T kTopBit = static_cast<T>(u64(1) << (kBits<T> - 1));
template <class T> constexpr T kSmallest = kIsSigned<T> ? kTopBit<T> : T(0);
template <class T> constexpr T kLargest = static_cast<T>(~kSmallest<T>);

// --- integer to integer ------------------------------------------------------

/// Clamp to the range of To. i64 and u64 do not fit each other: two steps.
template <class To, class From> LANE To clamp(From value) {
  if constexpr (kIsSigned<From>) {
    if constexpr (!kIsSigned<To>) {
      u64 positive = value < 0 ? u64(0) : static_cast<u64>(value);
      return positive > u64(kLargest<To>) ? kLargest<To>
                                          : static_cast<To>(positive);
    } else {
      i64 wide = value;
      wide = wide < i64(kSmallest<To>) ? i64(kSmallest<To>) : wide;
      return static_cast<To>(wide > i64(kLargest<To>) ? i64(kLargest<To>)
                                                      : wide);
    }
  } else {
    return u64(value) > u64(kLargest<To>) ? kLargest<To>
                                          : static_cast<To>(value);
  }
}

// --- float to integer --------------------------------------------------------

enum class Round { Nearest, Zero, Down, Up };

template <Round R> LANE f32 integral(f32 a) {
  return R == Round::Nearest ? __builtin_rintf(a)
         : R == Round::Zero  ? __builtin_truncf(a)
         : R == Round::Down  ? __builtin_floorf(a)
                             : __builtin_ceilf(a);
}
template <Round R> LANE f64 integral(f64 a) {
  return R == Round::Nearest ? __builtin_rint(a)
         : R == Round::Zero  ? __builtin_trunc(a)
         : R == Round::Down  ? __builtin_floor(a)
                             : __builtin_ceil(a);
}

template <class To, class F> LANE To saturatingCast(F value, bool isNanTopBit) {
  constexpr F beyond =
      static_cast<F>(u64(1) << (kBits<To> - 1)) * F(kIsSigned<To> ? 1 : 2);
  constexpr F lowest = kIsSigned<To> ? -beyond : F(0);
  bool inside = value > lowest && value < beyond;
  F safe = inside ? value : F(0);
  To result;
  if constexpr (sizeof(To) < 4)
    result = static_cast<To>(static_cast<i32>(safe));
  else
    result = static_cast<To>(safe);
  result = value >= beyond   ? kLargest<To>
           : value <= lowest ? kSmallest<To>
                             : result;
  To nan = isNanTopBit ? kTopBit<To> : To(0);
  return value != value ? nan : result;
}
template <class To, Round R, class From> LANE To toInteger(From value) {
  if constexpr (sizeof(From) == 8)
    return saturatingCast<To>(integral<R>(value), true);
  else
    return saturatingCast<To>(integral<R>(f32(value)), sizeof(To) == 8);
}

// --- integer to float --------------------------------------------------------

/// Rounded to odd at 53 bits, for a further rounding to 24 bits or fewer.
template <class T> LANE f64 toOddDouble(T value) {
  if constexpr (sizeof(T) < 8)
    return value;
  bool negative = value < 0;
  u64 m = negative ? 0 - static_cast<u64>(value) : static_cast<u64>(value);
  u64 sticky = (m & 0x7FF) != 0 && m >> 53 != 0 ? 0x800 : 0;
  m = m >> 53 != 0 ? (m & ~u64(0x7FF)) | sticky : m;
  f64 wide = static_cast<f64>(m);
  return negative ? -wide : wide;
}
LANE f32 toOddFloat(f64 value) {
  f32 narrow = static_cast<f32>(value);
  f64 back = narrow;
  u32 bits = bitCast<u32>(narrow);
  bits = __builtin_fabs(back) > __builtin_fabs(value) ? bits - 1 : bits;
  return bitCast<f32>(back < value || back > value ? bits | 1 : bits);
}
template <class T> LANE f16 toHalf(T value) {
  return f16(toOddFloat(toOddDouble(value)));
}
template <class T> LANE bf16 toBfloat(T value) {
  return bf16(toOddFloat(toOddDouble(value)));
}

// --- float to float ----------------------------------------------------------

/// Drop the low bits of the result that to-nearest would have rounded.
LANE u32 floatToHalfTruncated(f32 value) {
  u32 bits = bitCast<u32>(value), magnitude = bits & 0x7FFF'FFFFu,
      sign = bits >> 16 & 0x8000u;
  u32 shift = 113 - (magnitude >> 23 < 113 ? magnitude >> 23
                                           : 113); // below 2^-14: subnormal
  u32 mantissa = (magnitude & 0x7F'FFFFu) | 0x80'0000u;
  u32 subnormal = shift > 24 ? 0 : mantissa >> 13 >> (shift > 11 ? 11 : shift);
  u32 normal = (magnitude - (112u << 23)) >> 13;
  u32 result = magnitude < 0x3880'0000u ? subnormal : normal;
  result = magnitude >= 0x4780'0000u ? 0x7BFFu : result;
  result = magnitude == 0x7F80'0000u ? 0x7C00u : result;
  return magnitude > 0x7F80'0000u ? 0x7FFFu : result | sign;
}
/// Towards +inf if Up, else towards -inf: truncation, one step away when
/// inexact.
template <bool Up> LANE u32 floatToHalfDirected(f32 value) {
  u32 result = floatToHalfTruncated(value);
  f32 back = halfToFloat(result);
  bool step = Up ? back < value : back > value;
  return step && (result & 0x7FFF) < 0x7C00 ? result + 1 : result;
}
LANE u32 floatToBfloatTruncated(f32 value) {
  return isNan(value) ? 0x7FFFu : bitCast<u32>(value) >> 16;
}
LANE f16 rawHalf(u32 bits) { return bitCast<f16>(static_cast<u16>(bits)); }
LANE bf16 rawBfloat(u32 bits) { return bitCast<bf16>(static_cast<u16>(bits)); }

/// Negative values and -0 become +0; NaN stays.
LANE f32 relu(f32 a) { return a > 0.0f || isNan(a) ? a : 0.0f; }
LANE f32 finiteHalf(f32 a) {
  f32 low = a > -65504.0f || isNan(a) ? a : -65504.0f;
  return low < 65504.0f || isNan(low) ? low : 65504.0f;
}
LANE f32 finiteBfloat(f32 a) {
  constexpr f32 largest = 3.3895313892515355e38f;
  f32 low = a > -largest || isNan(a) ? a : -largest;
  return low < largest || isNan(low) ? low : largest;
}

/// tf32 is an f32 with 10 bits of mantissa.
LANE f32 roundTf32Away(f32 a) {
  u32 bits = bitCast<u32>(a);
  u32 rounded = (bits + 0x1000u) & 0xFFFF'E000u;
  return bitCast<f32>((bits & 0x7F80'0000u) == 0x7F80'0000u ? bits : rounded);
}
LANE f32 roundTf32Nearest(f32 a) {
  u32 bits = bitCast<u32>(a);
  u32 rounded = (bits + 0xFFFu + (bits >> 13 & 1)) & 0xFFFF'E000u;
  return bitCast<f32>((bits & 0x7F80'0000u) == 0x7F80'0000u ? bits : rounded);
}
LANE f32 truncateTf32(f32 a) {
  return isNan(a) ? a : bitCast<f32>(bitCast<u32>(a) & 0xFFFF'E000u);
}

// --- fp8 ---------------------------------------------------------------------

struct E4M3 {
  static constexpr u32 mantissa = 3, bias = 7, largest = 0x7E; // 448
};
struct E5M2 {
  static constexpr u32 mantissa = 2, bias = 15, largest = 0x7B; // 57344
};

/// To nearest even, too large ones (infinity, too) to the largest; NaN is 0x7F.
template <class F> LANE u32 floatToFp8(f32 value) {
  constexpr u32 shift = 23 - F::mantissa;
  constexpr f32 magic =
      __builtin_bit_cast(f32, (127 + 23 + 1 - F::bias - F::mantissa) << 23);
  u32 bits = bitCast<u32>(value), magnitude = bits & 0x7FFF'FFFFu;
  u32 normal = (magnitude - ((127 - F::bias) << 23) +
                ((1u << (shift - 1)) - 1) + (magnitude >> shift & 1)) >>
               shift;
  u32 subnormal =
      bitCast<u32>(bitCast<f32>(magnitude) + magic) - bitCast<u32>(magic);
  u32 result = magnitude < ((128 - F::bias) << 23) ? subnormal : normal;
  result =
      result > F::largest || magnitude >= 0x7F80'0000u ? F::largest : result;
  return magnitude > 0x7F80'0000u ? 0x7Fu : result | (bits >> 24 & 0x80);
}
LANE f32 fp8ToFloat(u32 byte, E4M3) {
  u32 magnitude = byte & 0x7F;
  f32 value = bitCast<f32>(magnitude << 20) * 0x1p120f;
  value = magnitude == 0x7F ? canonicalNan<f32>() : value;
  return byte & 0x80 ? -value : value;
}
LANE f32 fp8ToFloat(u32 byte, E5M2) { return halfToFloat((byte & 0xFF) << 8); }

/// d = {a, b}: a in the upper half of the result.
template <class F, bool Relu> LANE u16 packFp8(f32 a, f32 b) {
  u32 high = floatToFp8<F>(Relu ? relu(a) : a),
      low = floatToFp8<F>(Relu ? relu(b) : b);
  return static_cast<u16>(high << 8 | low);
}
template <class F, bool Relu> LANE u32 unpackFp8(u16 pair) {
  f32 low = fp8ToFloat(pair & 0xFF, F{}), high = fp8ToFloat(pair >> 8, F{});
  return floatToHalf(Relu ? relu(high) : high) << 16 |
         floatToHalf(Relu ? relu(low) : low);
}
template <class F, bool Relu> LANE u16 packFp8Halves(u32 halves) {
  return packFp8<F, Relu>(halfToFloat(halves >> 16),
                          halfToFloat(halves & 0xFFFF));
}

/// cvt.pack: a and b saturated side by side, c shifted up to make room.
template <class T> LANE u32 packSaturated(i32 a, i32 b, u32 c) {
  constexpr u32 width = kBits<T>, mask = (1u << width) - 1;
  u32 pair = (static_cast<u32>(clamp<T>(a)) & mask) << width |
             (static_cast<u32>(clamp<T>(b)) & mask);
  return width == 16 ? pair : pair | c << 16;
}

// clang-format off
#define FROM_INT(ROW, N, T)                                                                       \
    ROW(N, T, "u8", u8), ROW(N, T, "s8", i8), ROW(N, T, "u16", u16), ROW(N, T, "s16", i16),       \
    ROW(N, T, "u32", u32), ROW(N, T, "s32", i32), ROW(N, T, "u64", u64), ROW(N, T, "s64", i64)
#define INT_TO_INT(TN, TO, FN, FROM)                                                              \
    {"cvt." TN "." FN, lane<[](FROM a) -> TO { return static_cast<TO>(a); }>, Opcode::Cvt, kInt}, \
    {"cvt.sat." TN "." FN, lane<[](FROM a) -> TO { return clamp<TO>(a); }, kOneLoop>, Opcode::Cvt, kInt}

#define TO_INT(R, RN, FN, FROM, TN, TO, MODE)                                                           \
    {"cvt." RN "." TN "." FN, lane<[](FROM a) -> TO { return toInteger<TO, Round::R>(a); }, (MODE) | kOneLoop>, Opcode::Cvt, kConvert}
#define TO_INT_ALL(R, RN, FN, FROM, MODE)                                                          \
    TO_INT(R, RN, FN, FROM, "u8", u8, MODE), TO_INT(R, RN, FN, FROM, "s8", i8, MODE),                         \
    TO_INT(R, RN, FN, FROM, "u16", u16, MODE), TO_INT(R, RN, FN, FROM, "s16", i16, MODE),                     \
    TO_INT(R, RN, FN, FROM, "u32", u32, MODE), TO_INT(R, RN, FN, FROM, "s32", i32, MODE),                     \
    TO_INT(R, RN, FN, FROM, "u64", u64, MODE), TO_INT(R, RN, FN, FROM, "s64", i64, MODE)
#define FLOAT_TO_INT(FTZ, FN, FROM, MODE)                                                         \
    TO_INT_ALL(Nearest, "rni" FTZ, FN, FROM, MODE), TO_INT_ALL(Zero, "rzi" FTZ, FN, FROM, MODE),  \
    TO_INT_ALL(Down, "rmi" FTZ, FN, FROM, MODE), TO_INT_ALL(Up, "rpi" FTZ, FN, FROM, MODE)

#define INT_TO_FLOAT(TN, TO, FN, FROM)                                                            \
    {"cvt.rn." TN "." FN, lane<[](FROM a) -> TO { return static_cast<TO>(a); }>, Opcode::Cvt, kConvert}, \
    {"cvt.rz." TN "." FN, lane<[](FROM a) -> TO { return static_cast<TO>(a); }, kToZero>, Opcode::Cvt, kConvert}, \
    {"cvt.rm." TN "." FN, lane<[](FROM a) -> TO { return static_cast<TO>(a); }, kDown>, Opcode::Cvt, kConvert}, \
    {"cvt.rp." TN "." FN, lane<[](FROM a) -> TO { return static_cast<TO>(a); }, kUp>, Opcode::Cvt, kConvert}
#define INT_TO_HALF(TN, TO, FN, FROM)                                                             \
    {"cvt.rn.f16." FN, lane<[](FROM a) -> f16 { return toHalf(a); }, kOneLoop>, Opcode::Cvt, kConvert},     \
    {"cvt.rn.bf16." FN, lane<[](FROM a) -> bf16 { return toBfloat(a); }, kOneLoop>, Opcode::Cvt, kConvert}

// A value and its variant with .sat; with .ftz too, where one side is f32.
// Conversions yield canonical NaNs.
#define SAT(NAME, TYPES, TO, FROM, MODE, TIMING, ...)                                             \
    {NAME TYPES, lane<[](FROM a) -> TO { return (__VA_ARGS__); }, (MODE) | kOneLoop | kArith>, Opcode::Cvt, TIMING}, \
    {NAME ".sat" TYPES, lane<[](FROM a) -> TO { return (__VA_ARGS__); }, (MODE) | kOneLoop | kArith | kSat>, Opcode::Cvt, TIMING}
#define FTZ_SAT(NAME, TYPES, TO, FROM, MODE, TIMING, ...)                                         \
    SAT(NAME, TYPES, TO, FROM, MODE, TIMING, __VA_ARGS__),                                        \
    SAT(NAME ".ftz", TYPES, TO, FROM, (MODE) | kFtzSingle, TIMING, __VA_ARGS__)
#define ROUND_TO_INTEGRAL(VARIANTS, N, T, W)                                                      \
    VARIANTS("cvt.rni", "." N "." N, T, T, 0, kConvert, T(integral<Round::Nearest>(W(a)))),       \
    VARIANTS("cvt.rzi", "." N "." N, T, T, 0, kConvert, T(integral<Round::Zero>(W(a)))),          \
    VARIANTS("cvt.rmi", "." N "." N, T, T, 0, kConvert, T(integral<Round::Down>(W(a)))),          \
    VARIANTS("cvt.rpi", "." N "." N, T, T, 0, kConvert, T(integral<Round::Up>(W(a))))

#define CVT(NAME, TO, FROM, TIMING, ...)                                                          \
    {"cvt." NAME, lane<[](FROM a) -> TO { return (__VA_ARGS__); }>, Opcode::Cvt, TIMING}
// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
#define CVT_PAIR(NAME, CONVERT, ADJUST)                                                           \
    {"cvt." NAME, lane<[](f32 a, f32 b) -> u32 { return CONVERT(ADJUST(a)) << 16 | CONVERT(ADJUST(b)); }>, \
     Opcode::Cvt, kConvertHalf}
#define FP8(N, F)                                                                                 \
    {"cvt.rn.satfinite." N "x2.f32", lane<[](f32 a, f32 b) -> u16 { return packFp8<F, false>(a, b); }, kOneLoop>, Opcode::Cvt, kConvertHalf},     \
    {"cvt.rn.satfinite.relu." N "x2.f32", lane<[](f32 a, f32 b) -> u16 { return packFp8<F, true>(a, b); }, kOneLoop>, Opcode::Cvt, kConvertHalf}, \
    {"cvt.rn.satfinite." N "x2.f16x2", lane<[](u32 a) -> u16 { return packFp8Halves<F, false>(a); }, kOneLoop>, Opcode::Cvt, kConvertHalf},       \
    {"cvt.rn.satfinite.relu." N "x2.f16x2", lane<[](u32 a) -> u16 { return packFp8Halves<F, true>(a); }, kOneLoop>, Opcode::Cvt, kConvertHalf},   \
    {"cvt.rn.f16x2." N "x2", lane<[](u16 a) -> u32 { return unpackFp8<F, false>(a); }, kOneLoop>, Opcode::Cvt, kConvertHalf},                     \
    {"cvt.rn.relu.f16x2." N "x2", lane<[](u16 a) -> u32 { return unpackFp8<F, true>(a); }, kOneLoop>, Opcode::Cvt, kConvertHalf}

constexpr Semantics kTable[] = {
    FROM_INT(INT_TO_INT, "u8", u8), FROM_INT(INT_TO_INT, "s8", i8),
    FROM_INT(INT_TO_INT, "u16", u16), FROM_INT(INT_TO_INT, "s16", i16),
    FROM_INT(INT_TO_INT, "u32", u32), FROM_INT(INT_TO_INT, "s32", i32),
    FROM_INT(INT_TO_INT, "u64", u64), FROM_INT(INT_TO_INT, "s64", i64),

    FLOAT_TO_INT("", "f32", f32, 0), FLOAT_TO_INT(".ftz", "f32", f32, kFtzSingle),
    FLOAT_TO_INT("", "f64", f64, 0), FLOAT_TO_INT("", "f16", f16, 0), FLOAT_TO_INT("", "bf16", bf16, 0),
    FROM_INT(INT_TO_FLOAT, "f32", f32), FROM_INT(INT_TO_FLOAT, "f64", f64), FROM_INT(INT_TO_HALF, "", f16),

    ROUND_TO_INTEGRAL(FTZ_SAT, "f32", f32, f32), ROUND_TO_INTEGRAL(SAT, "f16", f16, f32),
    ROUND_TO_INTEGRAL(SAT, "f64", f64, f64),
    FTZ_SAT("cvt", ".f32.f32", f32, f32, 0, kConvert, a),
    SAT("cvt", ".f64.f64", f64, f64, 0, kConvert, a),
    SAT("cvt", ".f16.f16", f16, f16, 0, kConvert, f16(f32(a))),

    FTZ_SAT("cvt", ".f32.f16", f32, f16, 0, kConvertHalf, f32(a)),
    FTZ_SAT("cvt", ".f32.bf16", f32, bf16, 0, kConvertHalf, f32(a)),
    FTZ_SAT("cvt.rn", ".f16.f32", f16, f32, 0, kConvertHalf, f16(a)),
    FTZ_SAT("cvt.rz", ".f16.f32", f16, f32, 0, kConvertHalf, rawHalf(floatToHalfTruncated(a))),
    FTZ_SAT("cvt.rm", ".f16.f32", f16, f32, 0, kConvertHalf, rawHalf(floatToHalfDirected<false>(a))),
    FTZ_SAT("cvt.rp", ".f16.f32", f16, f32, 0, kConvertHalf, rawHalf(floatToHalfDirected<true>(a))),
    CVT("rn.relu.f16.f32", f16, f32, kConvertHalf, f16(relu(a))),
    CVT("rn.satfinite.f16.f32", f16, f32, kConvertHalf, f16(finiteHalf(a))),
    CVT("rn.bf16.f32", bf16, f32, kConvertHalf, bf16(a)),
    CVT("rz.bf16.f32", bf16, f32, kConvertHalf, rawBfloat(floatToBfloatTruncated(a))),
    CVT("rn.relu.bf16.f32", bf16, f32, kConvertHalf, bf16(relu(a))),
    CVT("rn.satfinite.bf16.f32", bf16, f32, kConvertHalf, bf16(finiteBfloat(a))),
    CVT("rn.bf16.f16", bf16, f16, kConvertHalf, bf16(f32(a))),
    CVT("rn.f16.bf16", f16, bf16, kConvertHalf, f16(f32(a))),
    FTZ_SAT("cvt", ".f64.f32", f64, f32, 0, kConvert, f64(a)),
    CVT("f64.f16", f64, f16, kConvert, f64(isNan(a) ? canonicalNan<f64>() : f64(f32(a)))),
    CVT("f64.bf16", f64, bf16, kConvert, f64(isNan(a) ? canonicalNan<f64>() : f64(f32(a)))),
    FTZ_SAT("cvt.rn", ".f32.f64", f32, f64, 0, kConvert, f32(a)),
    FTZ_SAT("cvt.rz", ".f32.f64", f32, f64, kToZero, kConvert, f32(a)),
    FTZ_SAT("cvt.rm", ".f32.f64", f32, f64, kDown, kConvert, f32(a)),
    FTZ_SAT("cvt.rp", ".f32.f64", f32, f64, kUp, kConvert, f32(a)),
    CVT("rn.f16.f64", f16, f64, kConvert, f16(toOddFloat(a))),
    CVT("rn.bf16.f64", bf16, f64, kConvert, bf16(toOddFloat(a))),

    CVT("rna.tf32.f32", f32, f32, kConvertHalf, roundTf32Away(a)),
    CVT("rn.tf32.f32", f32, f32, kConvertHalf, roundTf32Nearest(a)),
    CVT("rz.tf32.f32", f32, f32, kConvertHalf, truncateTf32(a)),
    CVT("rn.relu.tf32.f32", f32, f32, kConvertHalf, roundTf32Nearest(relu(a))),
    CVT("rz.relu.tf32.f32", f32, f32, kConvertHalf, truncateTf32(relu(a))),

    CVT_PAIR("rn.f16x2.f32", floatToHalf, ), CVT_PAIR("rn.relu.f16x2.f32", floatToHalf, relu),
    CVT_PAIR("rz.f16x2.f32", floatToHalfTruncated, ), CVT_PAIR("rz.relu.f16x2.f32", floatToHalfTruncated, relu),
    CVT_PAIR("rn.satfinite.f16x2.f32", floatToHalf, finiteHalf),
    CVT_PAIR("rn.bf16x2.f32", floatToBfloat, ), CVT_PAIR("rn.relu.bf16x2.f32", floatToBfloat, relu),
    CVT_PAIR("rz.bf16x2.f32", floatToBfloatTruncated, ), CVT_PAIR("rz.relu.bf16x2.f32", floatToBfloatTruncated, relu),
    CVT_PAIR("rn.satfinite.bf16x2.f32", floatToBfloat, finiteBfloat),

    FP8("e4m3", E4M3), FP8("e5m2", E5M2),
    {"cvt.pack.sat.s16.s32", lane<[](i32 a, i32 b) -> u32 { return packSaturated<i16>(a, b, 0); }, kOneLoop>, Opcode::Cvt, kConvertHalf},
    {"cvt.pack.sat.u16.s32", lane<[](i32 a, i32 b) -> u32 { return packSaturated<u16>(a, b, 0); }, kOneLoop>, Opcode::Cvt, kConvertHalf},
    {"cvt.pack.sat.s8.s32.b32", lane<[](i32 a, i32 b, u32 c) -> u32 { return packSaturated<i8>(a, b, c); }, kOneLoop>, Opcode::Cvt, kConvertHalf},
    {"cvt.pack.sat.u8.s32.b32", lane<[](i32 a, i32 b, u32 c) -> u32 { return packSaturated<u8>(a, b, c); }, kOneLoop>, Opcode::Cvt, kConvertHalf},
};
// clang-format on

} // namespace

const Table kConvertTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
