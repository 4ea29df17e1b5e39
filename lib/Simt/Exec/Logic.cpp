//===- Logic.cpp - Bitwise logic, shifts, byte permutation ----------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

/// Predicate logic works on the masks.
template <auto F>
void predicateLogic(ExecContext &context, const MicroOp &op, LaneMask active) {
  LaneMask a = context.predicate(op.src[0]);
  LaneMask b = op.src[1] == kNoRow ? 0 : context.predicate(op.src[1]);
  writePredicate(context, op.dst[0], F(a, b), active);
}
#define MASKS(...)                                                             \
  predicateLogic<[](LaneMask a, LaneMask b) -> LaneMask { return __VA_ARGS__; }>

constexpr Form kAndP = {"p=pp", MASKS(a & b)};
constexpr Form kOrP = {"p=pp", MASKS(a | b)};
constexpr Form kXorP = {"p=pp", MASKS(a ^ b)};
constexpr Form kNotP = {"p=p", MASKS((void(b), ~a))};

/// The shift count is clamped to the width: larger ones shift everything out.
template <class T> LANE T shiftLeft(T a, u32 b) {
  constexpr u32 width = 8 * sizeof(T);
  return b >= width ? T(0) : static_cast<T>(a << (b & (width - 1)));
}
template <class T> LANE T shiftRight(T a, u32 b) {
  constexpr u32 width = 8 * sizeof(T);
  if constexpr (static_cast<T>(-1) < T(0))
    return static_cast<T>(a >> (b >= width ? width - 1 : b));
  else
    return b >= width ? T(0) : static_cast<T>(a >> (b & (width - 1)));
}

template <bool Left, bool Clamp> LANE u32 funnel(u32 low, u32 high, u32 count) {
  u32 n = Clamp ? (count > 32 ? 32 : count) : count & 31;
  u64 both = u64(high) << 32 | low;
  return Left ? static_cast<u32>(both << n >> 32) : static_cast<u32>(both >> n);
}

/// d = any function of three bits; bit 4a+2b+c of the table is its value.
void lop3(ExecContext &context, const MicroOp &op, LaneMask active) {
  const u32 *a = context.src(op.src[0]), *b = context.src(op.src[1]),
            *c = context.src(op.src[2]);
  u32 table = context.src(op.src[3])[0];
  u32 minterm[8];
  for (unsigned k = 0; k < 8; ++k)
    minterm[k] = table >> k & 1 ? ~0u : 0u;
  alignas(64) u32 result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i) {
    u32 x = a[i], y = b[i], z = c[i];
    u32 zero = ~x & ((~y & ((~z & minterm[0]) | (z & minterm[1]))) |
                     (y & ((~z & minterm[2]) | (z & minterm[3]))));
    u32 one = x & ((~y & ((~z & minterm[4]) | (z & minterm[5]))) |
                   (y & ((~z & minterm[6]) | (z & minterm[7]))));
    result[i] = zero | one;
  }
  blend<1>(context.dst(op.dst[0]), result, active);
}

/// Byte `selector` of {b, a}; bit 3 replicates the byte's sign.
LANE u32 permuteByte(u64 bytes, u32 selector) {
  u32 byte = static_cast<u32>(bytes >> 8 * (selector & 7)) & 0xFF;
  return selector & 8 ? (byte & 0x80 ? 0xFFu : 0u) : byte;
}
LANE u32 permute(u32 a, u32 b, u32 selectors) {
  u64 bytes = u64(b) << 32 | a;
  return permuteByte(bytes, selectors) |
         permuteByte(bytes, selectors >> 4) << 8 |
         permuteByte(bytes, selectors >> 8) << 16 |
         permuteByte(bytes, selectors >> 12) << 24;
}

/// The selector of the special modes, for the low two bits of c (clamped as in
/// the PTX manual's tables).
LANE u32 select4(u32 c, u32 s0, u32 s1, u32 s2, u32 s3) {
  u32 n = c & 3;
  return n == 0 ? s0 : n == 1 ? s1 : n == 2 ? s2 : s3;
}

// clang-format off
#define LOGIC(NAME, OP, PREDICATE, ...)                                                           \
    {NAME ".pred", PREDICATE, Opcode::OP, kPredicate},                                            \
    {NAME ".b16", lane<__VA_ARGS__(u16, BODY)>, Opcode::OP, kInt},                                \
    {NAME ".b32", lane<__VA_ARGS__(u32, BODY)>, Opcode::OP, kInt},                                \
    {NAME ".b64", lane<__VA_ARGS__(u64, BODY)>, Opcode::OP, kInt64}
#define SHIFT(N, T, TIMING)                                                                       \
    {"shr." N, lane<[](T a, u32 b) -> T { return shiftRight(a, b); }>, Opcode::Shr, TIMING}
#define PRMT_MODE(N, ...)                                                                         \
    {"prmt.b32." N, lane<TERNARY(u32, permute(a, b, select4(c, __VA_ARGS__)))>, Opcode::Prmt, kInt}

constexpr Semantics kTable[] = {
#define BODY a & b
    LOGIC("and", And, kAndP, BINARY),
#undef BODY
#define BODY a | b
    LOGIC("or", Or, kOrP, BINARY),
#undef BODY
#define BODY a ^ b
    LOGIC("xor", Xor, kXorP, BINARY),
#undef BODY
#define BODY ~a
    LOGIC("not", Not, kNotP, UNARY),
#undef BODY
    {"cnot.b16", lane<UNARY(u16, a == 0)>, Opcode::CNot, kInt},
    {"cnot.b32", lane<UNARY(u32, a == 0)>, Opcode::CNot, kInt},
    {"cnot.b64", lane<UNARY(u64, a == 0)>, Opcode::CNot, kInt64},
    {"lop3.b32", {"w=wwww", lop3}, Opcode::Lop3, kInt},

    {"shl.b16", lane<[](u16 a, u32 b) -> u16 { return shiftLeft(a, b); }>, Opcode::Shl, kInt},
    {"shl.b32", lane<[](u32 a, u32 b) -> u32 { return shiftLeft(a, b); }>, Opcode::Shl, kInt},
    {"shl.b64", lane<[](u64 a, u32 b) -> u64 { return shiftLeft(a, b); }>, Opcode::Shl, kInt64},
    SHIFT("b16", u16, kInt), SHIFT("u16", u16, kInt), SHIFT("s16", i16, kInt),
    SHIFT("b32", u32, kInt), SHIFT("u32", u32, kInt), SHIFT("s32", i32, kInt),
    SHIFT("b64", u64, kInt64), SHIFT("u64", u64, kInt64), SHIFT("s64", i64, kInt64),
    {"shf.l.clamp.b32", lane<TERNARY(u32, funnel<true, true>(a, b, c))>, Opcode::Shf, kInt},
    {"shf.l.wrap.b32", lane<TERNARY(u32, funnel<true, false>(a, b, c))>, Opcode::Shf, kInt},
    {"shf.r.clamp.b32", lane<TERNARY(u32, funnel<false, true>(a, b, c))>, Opcode::Shf, kInt},
    {"shf.r.wrap.b32", lane<TERNARY(u32, funnel<false, false>(a, b, c))>, Opcode::Shf, kInt},

    {"prmt.b32", lane<TERNARY(u32, permute(a, b, c))>, Opcode::Prmt, kInt},
    PRMT_MODE("f4e", 0x3210, 0x4321, 0x5432, 0x6543),
    PRMT_MODE("b4e", 0x5670, 0x6701, 0x7012, 0x0123),
    PRMT_MODE("rc8", 0x0000, 0x1111, 0x2222, 0x3333),
    PRMT_MODE("ecl", 0x3210, 0x3211, 0x3222, 0x3333),
    PRMT_MODE("ecr", 0x0000, 0x1110, 0x2210, 0x3210),
    PRMT_MODE("rc16", 0x1010, 0x3232, 0x1010, 0x3232),
};
// clang-format on

} // namespace

const Table kLogicTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
