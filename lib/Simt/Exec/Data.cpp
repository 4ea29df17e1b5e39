//===- Data.cpp - Moving data between registers ---------------------------===//
//
// mov, packing and unpacking of vectors, special registers, kernel parameters,
// address space conversion. Rows whose mnemonic is not PTX (pack, unpack,
// mov.special, ld.param.b32.w) are chosen by the lowering from the operands.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

void movPredicate(ExecContext &context, const MicroOp &op, LaneMask active) {
  writePredicate(context, op.dst[0], context.predicate(op.src[0]), active);
}

void mov128(ExecContext &context, const MicroOp &op, LaneMask active) {
  const u64 *from = context.src64(op.src[0]);
  u64 *to = context.dst64(op.dst[0]);
  for (unsigned i = 0; i < 2 * kWarpSize; ++i)
    to[i] = active >> (i / 2) & 1 ? from[i] : to[i];
}

/// A register with N parts is an array of N parts per lane, in 32 bits at
/// least. `Word` is how a part lies in a register of its own.
template <class Part, unsigned N>
constexpr unsigned kStride = N * sizeof(Part) < 4 ? 4 / sizeof(Part) : N;

template <class Part, unsigned N, class Word>
void pack(ExecContext &context, const MicroOp &op, LaneMask active) {
  constexpr unsigned stride = kStride<Part, N>;
  alignas(64) Part parts[kWarpSize * stride];
  if constexpr (stride != N)
    __builtin_memset(parts, 0, sizeof parts);
  for (unsigned k = 0; k < N; ++k) {
    const Word *from = reinterpret_cast<const Word *>(context.src(op.src[k]));
    for (unsigned i = 0; i < kWarpSize; ++i)
      parts[i * stride + k] = static_cast<Part>(from[i]);
  }
  blend<stride>(reinterpret_cast<Part *>(context.dst(op.dst[0])), parts,
                active);
}
template <class Part, unsigned N, class Word>
void unpack(ExecContext &context, const MicroOp &op, LaneMask active) {
  constexpr unsigned stride = kStride<Part, N>;
  const Part *parts = reinterpret_cast<const Part *>(context.src(op.src[0]));
  for (unsigned k = 0; k < N; ++k) {
    RowIndex row = context.pool[op.ext + k];
    if (row == kNoRow)
      continue;
    Word *to = reinterpret_cast<Word *>(context.dst(row));
    if (active == kFullMask) [[likely]] {
#pragma GCC ivdep
      for (unsigned i = 0; i < kWarpSize; ++i)
        to[i] = parts[i * stride + k];
    } else {
      for (unsigned i = 0; i < kWarpSize; ++i)
        to[i] =
            active >> i & 1 ? static_cast<Word>(parts[i * stride + k]) : to[i];
    }
  }
}

// --- special registers -------------------------------------------------------

LANE u64 uniformSpecial(const ExecContext &context, SpecialRegister which) {
  const WarpSpecials &s = *context.specials;
  using S = SpecialRegister;
  switch (which) {
  case S::NtidX:
    return s.ntid[0];
  case S::NtidY:
    return s.ntid[1];
  case S::NtidZ:
    return s.ntid[2];
  case S::CtaidX:
    return s.ctaid[0];
  case S::CtaidY:
    return s.ctaid[1];
  case S::CtaidZ:
    return s.ctaid[2];
  case S::NctaidX:
    return s.nctaid[0];
  case S::NctaidY:
    return s.nctaid[1];
  case S::NctaidZ:
    return s.nctaid[2];
  case S::WarpId:
    return s.warpid;
  case S::NWarpId:
    return s.nwarpid;
  case S::SmId:
    return s.smid;
  case S::NSmId:
    return s.nsmid;
  case S::GridId:
    return s.gridid;
  case S::ClusterIdX:
    return s.clusterid[0];
  case S::ClusterIdY:
    return s.clusterid[1];
  case S::ClusterIdZ:
    return s.clusterid[2];
  case S::NClusterIdX:
    return s.nclusterid[0];
  case S::NClusterIdY:
    return s.nclusterid[1];
  case S::NClusterIdZ:
    return s.nclusterid[2];
  case S::ClusterCtaidX:
    return s.clusterCtaid[0];
  case S::ClusterCtaidY:
    return s.clusterCtaid[1];
  case S::ClusterCtaidZ:
    return s.clusterCtaid[2];
  case S::ClusterNctaidX:
    return s.clusterNctaid[0];
  case S::ClusterNctaidY:
    return s.clusterNctaid[1];
  case S::ClusterNctaidZ:
    return s.clusterNctaid[2];
  case S::ClusterCtaRank:
    return s.clusterCtarank;
  case S::ClusterNctaRank:
    return s.clusterNctarank;
  case S::DynamicSmemSize:
    return s.dynamicSmemBytes;
  case S::TotalSmemSize:
    return s.totalSmemBytes;
  case S::Clock:
    return context.clock & 0xFFFF'FFFFu;
  case S::ClockHi:
    return context.clock >> 32;
  case S::Clock64:
    return context.clock;
  case S::GlobalTimer:
    return context.globaltimer;
  case S::GlobalTimerLo:
    return context.globaltimer & 0xFFFF'FFFFu;
  case S::GlobalTimerHi:
    return context.globaltimer >> 32;
  default:
    return 0;
  }
}

LANE u32 laneSpecial(const WarpSpecials &s, SpecialRegister which, unsigned i) {
  using S = SpecialRegister;
  switch (which) {
  case S::TidX:
    return s.tid[0][i];
  case S::TidY:
    return s.tid[1][i];
  case S::TidZ:
    return s.tid[2][i];
  case S::LaneId:
    return i;
  case S::LaneMaskEq:
    return 1u << i;
  case S::LaneMaskLt:
    return (1u << i) - 1;
  case S::LaneMaskLe:
    return (2u << i) - 1;
  case S::LaneMaskGt:
    return ~((2u << i) - 1);
  default:
    return ~((1u << i) - 1); // LaneMaskGe
  }
}

LANE bool isPerLane(SpecialRegister which) {
  using S = SpecialRegister;
  return which <= S::TidZ || which == S::LaneId ||
         (which >= S::LaneMaskEq && which <= S::LaneMaskGe);
}

template <class Word>
void movSpecial(ExecContext &context, const MicroOp &op, LaneMask active) {
  auto which = static_cast<SpecialRegister>(op.sub);
  alignas(64) Word result[kWarpSize];
  if (isPerLane(which)) {
    for (unsigned i = 0; i < kWarpSize; ++i)
      result[i] = laneSpecial(*context.specials, which, i);
  } else {
    Word value = static_cast<Word>(uniformSpecial(context, which));
    for (unsigned i = 0; i < kWarpSize; ++i)
      result[i] = value;
  }
  blend<1>(reinterpret_cast<Word *>(context.dst(op.dst[0])), result, active);
}

// --- parameters --------------------------------------------------------------

/// Read a T from the parameter block and broadcast it, extended to To.
template <class T, class To>
void loadParam(ExecContext &context, const MicroOp &op, LaneMask active) {
  T value;
  __builtin_memcpy(&value, context.params + op.imm, sizeof value);
  typename Layout<To, 1>::Word words[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i)
    words[i] = Layout<To, 1>::store(static_cast<To>(value));
  blend<1>(
      reinterpret_cast<typename Layout<To, 1>::Word *>(context.dst(op.dst[0])),
      words, active);
}

// --- clusters ----------------------------------------------------------------

/// The same place in the shared memory of another CTA.
LANE u32 mapAddress(u32 address, u32 rank) {
  return (address & kSharedOffsetMask) | (rank + 1) << kSharedRankShift;
}

template <class Word>
void ctaRank(ExecContext &context, const MicroOp &op, LaneMask active) {
  auto *addresses = reinterpret_cast<const Word *>(context.src(op.src[0]));
  alignas(64) u32 result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i) {
    u32 rank = static_cast<u32>(addresses[i]) >> kSharedRankShift;
    result[i] = rank ? rank - 1 : context.specials->clusterCtarank;
  }
  blend<1>(context.dst(op.dst[0]), result, active);
}

LANE bool isWindow(u64 address, u64 window) {
  return (address & kWindowMask) == window;
}

// clang-format off
// To registers that are as wide as the parameter, or wider.
#define LOAD_PARAM(N, T, L, REGISTER)                                                             \
    {"ld.param." N "." L, {L "=", loadParam<T, REGISTER>}, Opcode::LdParam, kLoadParam}
#define LOAD_PARAM_64(N, T, D) LOAD_PARAM(N, T, "d", D)
#define LOAD_PARAM_32(N, T, W, D) LOAD_PARAM(N, T, "w", W), LOAD_PARAM_64(N, T, D)
#define LOAD_PARAM_16(N, T, H, W, D) LOAD_PARAM(N, T, "h", H), LOAD_PARAM_32(N, T, W, D)
#define MOV(N, T) {"mov." N, lane<UNARY(T, a)>, Opcode::Mov, kMov}
#define WINDOW(SPACE, BASE)                                                                       \
    {"cvta." SPACE ".u64", lane<UNARY(u64, a + (BASE))>, Opcode::Cvta, kInt64},                   \
    {"cvta.to." SPACE ".u64", lane<UNARY(u64, a & ~kWindowMask)>, Opcode::Cvta, kInt64},          \
    {"isspacep." SPACE, lane<[](u64 a) -> bool { return isWindow(a, BASE); }>, Opcode::IsSpaceP, kPredicate}

constexpr Semantics kTable[] = {
    {"mapa.shared::cluster.u32", lane<[](u32 a, u32 rank) -> u32 { return mapAddress(a, rank); }>, Opcode::Mapa, kInt},
    {"mapa.shared::cluster.u64", lane<[](u64 a, u32 rank) -> u64 { return mapAddress(static_cast<u32>(a), rank); }>, Opcode::Mapa, kInt64},
    {"mapa.u64", lane<[](u64 a, u32 rank) -> u64 { return kSharedWindow + mapAddress(static_cast<u32>(a), rank); }>, Opcode::Mapa, kInt64},
    {"getctarank.shared::cluster.u32", {"w=w", ctaRank<u32>}, Opcode::Mapa, kInt},
    {"getctarank.shared::cluster.u64", {"w=d", ctaRank<u64>}, Opcode::Mapa, kInt},
    {"getctarank.u64", {"w=d", ctaRank<u64>}, Opcode::Mapa, kInt},
    {"mov.pred", {"p=p", movPredicate}, Opcode::Mov, kMov},
    MOV("b16", u16), MOV("u16", u16), MOV("s16", u16), MOV("f16", u16), MOV("bf16", u16),
    MOV("b32", u32), MOV("u32", u32), MOV("s32", u32), MOV("f32", u32),
    MOV("b64", u64), MOV("u64", u64), MOV("s64", u64), MOV("f64", u64),
    {"mov.b128", {"q=q", mov128}, Opcode::Mov, kMov},
    {"pack.bb", {"h=bb", pack<u8, 2, u32>}, Opcode::Pack, kInt},
    {"pack.bbbb", {"w=bbbb", pack<u8, 4, u32>}, Opcode::Pack, kInt},
    {"pack.hh", {"w=hh", pack<u16, 2, u32>}, Opcode::Pack, kInt},
    {"pack.hhhh", {"d=hhhh", pack<u16, 4, u32>}, Opcode::Pack, kInt},
    {"pack.ww", {"d=ww", pack<u32, 2, u32>}, Opcode::Pack, kMov},
    {"pack.wwww", {"q=wwww", pack<u32, 4, u32>}, Opcode::Pack, kMov},
    {"pack.dd", {"q=dd", pack<u64, 2, u64>}, Opcode::Pack, kMov},
    {"unpack.bb", {"bb=h", unpack<u8, 2, u32>}, Opcode::Unpack, kInt},
    {"unpack.bbbb", {"bbbb=w", unpack<u8, 4, u32>}, Opcode::Unpack, kInt},
    {"unpack.hh", {"hh=w", unpack<u16, 2, u32>}, Opcode::Unpack, kInt},
    {"unpack.hhhh", {"hhhh=d", unpack<u16, 4, u32>}, Opcode::Unpack, kInt},
    {"unpack.ww", {"ww=d", unpack<u32, 2, u32>}, Opcode::Unpack, kMov},
    {"unpack.wwww", {"wwww=q", unpack<u32, 4, u32>}, Opcode::Unpack, kMov},
    {"unpack.dd", {"dd=q", unpack<u64, 2, u64>}, Opcode::Unpack, kMov},

    {"mov.special.w", {"w=", movSpecial<u32>}, Opcode::MovSpecial, kSpecial},
    {"mov.special.d", {"d=", movSpecial<u64>}, Opcode::MovSpecial, kSpecial},
    LOAD_PARAM_16("u8", u8, u16, u32, u64), LOAD_PARAM_16("s8", i8, i16, i32, i64),
    LOAD_PARAM_16("u16", u16, u16, u32, u64), LOAD_PARAM_16("s16", i16, i16, i32, i64),
    LOAD_PARAM_32("u32", u32, u32, u64), LOAD_PARAM_32("s32", i32, i32, i64),
    LOAD_PARAM_64("u64", u64, u64), LOAD_PARAM_64("s64", i64, i64),

    WINDOW("global", u64(0)), WINDOW("const", u64(0)), WINDOW("local", kLocalWindow),
    WINDOW("shared", kSharedWindow), WINDOW("shared::cta", kSharedWindow),
    WINDOW("shared::cluster", kSharedWindow), WINDOW("param", kParamWindow),
};
// clang-format on

} // namespace

const Table kDataTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
