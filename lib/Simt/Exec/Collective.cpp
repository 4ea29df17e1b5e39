//===- Collective.cpp - Instructions that combine the lanes of a warp -----===//
//
// shfl, vote, match, redux, elect, activemask. The participants are the active
// lanes named in the member mask, which must be the same in all of them.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Tables.h"

namespace kperfir::simt::KPERFIR_SIMT_ISA {
namespace {

using namespace timing;

LANE u32 firstActive(const u32 *row, LaneMask active) {
  return row[active ? __builtin_ctz(active) : 0];
}
LANE LaneMask members(const ExecContext &context, RowIndex mask,
                      LaneMask active) {
  return firstActive(context.src(mask), active) & active;
}

enum class Shuffle { Up, Down, Butterfly, Index };

/// Lane that lane `i` reads, and whether it is in the segment that the clamp
/// operand describes (bits 0-4: clamp, 8-12: segment mask).
template <Shuffle S> LANE u32 sourceLane(u32 i, u32 b, u32 c, bool &inSegment) {
  u32 segment = c >> 8 & 31, clamp = c & 31, offset = b & 31;
  u32 last = (i & segment) | (clamp & ~segment), first = i & segment;
  u32 j = S == Shuffle::Up      ? i - offset
          : S == Shuffle::Down  ? i + offset
          : S == Shuffle::Index ? first | (offset & ~segment)
                                : i ^ offset;
  inSegment = S == Shuffle::Up ? static_cast<i32>(j) >= static_cast<i32>(last)
                               : j <= last;
  return inSegment ? j : i;
}

/// The common case, a butterfly over the whole warp by a constant: four vector
/// permutations. False if `op` is something else.
LANE bool wholeButterfly(const ExecContext &context, const MicroOp &op,
                         u32 *result) {
#ifdef __AVX2__
  if (op.src[1] < kConstantBase || op.src[2] < kConstantBase ||
      op.dst[1] != kNoPredicate || (context.src(op.src[2])[0] & 0x1F1F) != 31)
    return false;
  const u32 *a = context.src(op.src[0]);
  u32 offset = context.src(op.src[1])[0] & 31;
  __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  lane =
      _mm256_xor_si256(lane, _mm256_set1_epi32(static_cast<i32>(offset & 7)));
  for (u32 k = 0; k < 4; ++k) {
    const u32 *from = a + 8 * (k ^ offset >> 3);
    __m256i part = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(from));
    part = _mm256_permutevar8x32_epi32(part, lane);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(result + 8 * k), part);
  }
  return true;
#else
  return false;
#endif
}

/// d|p = shfl a, b, c, members.
template <Shuffle S>
void shuffle(ExecContext &context, const MicroOp &op, LaneMask active) {
  const u32 *a = context.src(op.src[0]), *b = context.src(op.src[1]),
            *c = context.src(op.src[2]);
  alignas(64) u32 from[kWarpSize];
  alignas(64) u32 flags[kWarpSize];
  alignas(64) u32 result[kWarpSize];
  if (S == Shuffle::Butterfly && wholeButterfly(context, op, result)) {
    if (op.dst[0] != kNoRow)
      blend<1>(context.dst(op.dst[0]), result, active);
    return;
  }
  for (unsigned i = 0; i < kWarpSize; ++i) {
    bool inSegment;
    from[i] = sourceLane<S>(i, b[i], c[i], inSegment);
    flags[i] = inSegment ? ~0u : 0u;
  }
  for (unsigned i = 0; i < kWarpSize; ++i)
    result[i] = a[from[i] & 31];
  if (op.dst[0] != kNoRow)
    blend<1>(context.dst(op.dst[0]), result, active);
  if (op.dst[1] != kNoPredicate)
    writePredicate(context, op.dst[1], collect(flags), active);
}

enum class Vote { All, Any, Uniform, Ballot };

template <Vote V>
void vote(ExecContext &context, const MicroOp &op, LaneMask active) {
  LaneMask taking = members(context, op.src[1], active);
  LaneMask votes = context.predicate(op.src[0]) & taking;
  if constexpr (V == Vote::Ballot) {
    alignas(64) u32 result[kWarpSize];
    for (unsigned i = 0; i < kWarpSize; ++i)
      result[i] = votes;
    blend<1>(context.dst(op.dst[0]), result, active);
  } else {
    bool all = votes == taking, any = votes != 0;
    bool value = V == Vote::All ? all : V == Vote::Any ? any : all || !any;
    writePredicate(context, op.dst[0], value ? kFullMask : 0, active);
  }
}

/// d = the members that hold this lane's value.
template <class T>
void matchAny(ExecContext &context, const MicroOp &op, LaneMask active) {
  const T *a = reinterpret_cast<const T *>(context.src(op.src[0]));
  LaneMask taking = members(context, op.src[1], active);
  alignas(64) u32 result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i) {
    LaneMask same = 0;
    for (unsigned j = 0; j < kWarpSize; ++j)
      same |= static_cast<LaneMask>(a[j] == a[i]) << j;
    result[i] = same & taking;
  }
  blend<1>(context.dst(op.dst[0]), result, active);
}
/// d|p = all members if they hold one value, else 0.
template <class T>
void matchAll(ExecContext &context, const MicroOp &op, LaneMask active) {
  const T *a = reinterpret_cast<const T *>(context.src(op.src[0]));
  LaneMask taking = members(context, op.src[1], active);
  bool equal = true;
  for (unsigned i = 0; i < kWarpSize; ++i)
    equal &=
        !(taking >> i & 1) || a[i] == a[taking ? __builtin_ctz(taking) : 0];
  alignas(64) u32 result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i)
    result[i] = equal ? taking : 0;
  blend<1>(context.dst(op.dst[0]), result, active);
  writePredicate(context, op.dst[1], equal ? kFullMask : 0, active);
}

/// d = F over the members, in lane order.
template <auto F, class T> struct Reduction;
template <auto F, class T> struct Reduction<F, T (*)(T, T)> {
  static void run(ExecContext &context, const MicroOp &op, LaneMask active) {
    const T *a = reinterpret_cast<const T *>(context.src(op.src[0]));
    LaneMask taking = members(context, op.src[1], active);
    T total = a[taking ? __builtin_ctz(taking) : 0];
    for (LaneMask rest = taking & (taking - 1); rest; rest &= rest - 1)
      total = F(total, a[__builtin_ctz(rest)]);
    alignas(64) T result[kWarpSize];
    for (unsigned i = 0; i < kWarpSize; ++i)
      result[i] = total;
    blend<1>(reinterpret_cast<T *>(context.dst(op.dst[0])), result, active);
  }
};

template <bool Max, bool Abs, bool Nan> LANE f32 extreme(f32 a, f32 b) {
  if (Abs)
    a = __builtin_fabsf(a), b = __builtin_fabsf(b);
  if (isNan(a) || isNan(b))
    return Nan || (isNan(a) && isNan(b)) ? canonicalNan<f32>()
           : isNan(a)                    ? b
                                         : a;
  if (a == b)
    return bitCast<f32>(Max ? bitCast<u32>(a) & bitCast<u32>(b)
                            : bitCast<u32>(a) | bitCast<u32>(b));
  return (Max ? a > b : a < b) ? a : b;
}

void activeMask(ExecContext &context, const MicroOp &op, LaneMask active) {
  alignas(64) u32 result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i)
    result[i] = active;
  blend<1>(context.dst(op.dst[0]), result, active);
}

/// d|p: the lowest member, and whether this lane is it.
void elect(ExecContext &context, const MicroOp &op, LaneMask active) {
  LaneMask taking = members(context, op.src[0], active);
  u32 leader = taking ? static_cast<u32>(__builtin_ctz(taking)) : 0;
  alignas(64) u32 result[kWarpSize];
  for (unsigned i = 0; i < kWarpSize; ++i)
    result[i] = leader;
  if (op.dst[0] != kNoRow)
    blend<1>(context.dst(op.dst[0]), result, active);
  writePredicate(context, op.dst[1], 1u << leader, active);
}

// clang-format off
#define REDUX(NAME, T, ...)                                                                       \
    {"redux.sync." NAME, {"w=ww", Reduction<[](T a, T b) -> T { return (__VA_ARGS__); }, T (*)(T, T)>::run}, \
     Opcode::Redux, kRedux}
#define REDUX_F32(NAME, MAX)                                                                      \
    REDUX(NAME ".f32", f32, extreme<MAX, false, false>(a, b)),                                    \
    REDUX(NAME ".abs.f32", f32, extreme<MAX, true, false>(a, b)),                                 \
    REDUX(NAME ".NaN.f32", f32, extreme<MAX, false, true>(a, b)),                                 \
    REDUX(NAME ".abs.NaN.f32", f32, extreme<MAX, true, true>(a, b))

constexpr Semantics kTable[] = {
    {"shfl.sync.up.b32", {"wp=wwww", shuffle<Shuffle::Up>}, Opcode::Shfl, kShuffle},
    {"shfl.sync.down.b32", {"wp=wwww", shuffle<Shuffle::Down>}, Opcode::Shfl, kShuffle},
    {"shfl.sync.bfly.b32", {"wp=wwww", shuffle<Shuffle::Butterfly>}, Opcode::Shfl, kShuffle},
    {"shfl.sync.idx.b32", {"wp=wwww", shuffle<Shuffle::Index>}, Opcode::Shfl, kShuffle},
    {"vote.sync.all.pred", {"p=pw", vote<Vote::All>}, Opcode::Vote, kVote},
    {"vote.sync.any.pred", {"p=pw", vote<Vote::Any>}, Opcode::Vote, kVote},
    {"vote.sync.uni.pred", {"p=pw", vote<Vote::Uniform>}, Opcode::Vote, kVote},
    {"vote.sync.ballot.b32", {"w=pw", vote<Vote::Ballot>}, Opcode::Vote, kVote},
    {"match.any.sync.b32", {"w=ww", matchAny<u32>}, Opcode::Match, kMatch},
    {"match.any.sync.b64", {"w=dw", matchAny<u64>}, Opcode::Match, kMatch},
    {"match.all.sync.b32", {"wp=ww", matchAll<u32>}, Opcode::Match, kMatch},
    {"match.all.sync.b64", {"wp=dw", matchAll<u64>}, Opcode::Match, kMatch},
    REDUX("add.u32", u32, a + b), REDUX("add.s32", u32, a + b),
    REDUX("min.u32", u32, a < b ? a : b), REDUX("min.s32", i32, a < b ? a : b),
    REDUX("max.u32", u32, a > b ? a : b), REDUX("max.s32", i32, a > b ? a : b),
    REDUX("and.b32", u32, a & b), REDUX("or.b32", u32, a | b), REDUX("xor.b32", u32, a ^ b),
    REDUX_F32("min", false), REDUX_F32("max", true),
    {"activemask.b32", {"w=", activeMask}, Opcode::ActiveMask, kVote},
    {"elect.sync", {"wp=w", elect}, Opcode::Elect, kVote},
};
// clang-format on

} // namespace

const Table kCollectiveTable{kTable};

} // namespace kperfir::simt::KPERFIR_SIMT_ISA
