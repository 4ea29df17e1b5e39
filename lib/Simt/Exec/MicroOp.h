//===- MicroOp.h - One op, and what it may touch --------------------------===//
//
// The layout of an op and of the registers that it names, the shapes of the
// matrix and bulk instructions, and the context in which handlers run.
//
// Registers. A warp has `Program::numRows` rows of 32 x u32 (128 bytes each;
//   the file is 64-byte aligned; row r starts at byte 128 * r).
//     .b32 .f32, packed x2      1 row, lane i in word i
//     .b8 .b16 .f16 .bf16       1 row, value zero-extended to 32 bits
//     .b64 .f64 .f32x2          2 consecutive rows seen as 32 x u64: lane i in
//                               bytes [8i, 8i+8) of the 256
//     .b128                     4 consecutive rows seen as 32 x 16 bytes
//   An operand names its first row. Allocation is by linear scan: a row holds
//   different PTX registers at different times.
// Predicates. A separate file of `Program::numPredicates` u32 lane masks.
// Constants. Immediates and symbol addresses are rows too, with the same layout
//   (64-bit ones take two), broadcast over the lanes, index >= kConstantBase,
//   owned by the Program, shared by all warps, never written.
//   `ExecContext::src(row)` hides the difference.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MICRO_OP_H
#define KPERFIR_SIMT_EXEC_MICRO_OP_H

#include "Simt/Exec/Opcode.h"

#include <cstddef>
#include <cstdint>

namespace kperfir::simt {

// Accessors are compiled into units for several instruction sets; a copy that
// is not inlined could be shared between them.
#define KPERFIR_SIMT_INLINE [[gnu::always_inline]] inline

inline constexpr unsigned kWarpSize = 32;

using LaneMask = uint32_t;
using RowIndex = uint16_t;
using PredicateIndex = uint16_t;

inline constexpr LaneMask kFullMask = 0xFFFFFFFFu;
inline constexpr RowIndex kConstantBase = 0x8000;
inline constexpr RowIndex kNoRow = 0xFFFF; // sink `_`, or operand absent
inline constexpr PredicateIndex kNoPredicate = 0xFFFF;
inline constexpr uint32_t kNoPc = 0xFFFFFFFFu;

// Generic addresses. Global memory is addressed by host address; the windows
// lie outside every canonical user address, so a space is known from the value.
// Shared: kSharedWindow + address. An address in shared memory has 32 bits: the
// offset, and above it 1 + the rank of the CTA in its cluster that mapa has
// named, or 0 for the CTA's own memory. cvta and isspacep are Register ops.
inline constexpr uint64_t kSharedWindow = 0x4000'0000'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x4001'0000'0000'0000;
inline constexpr uint64_t kParamWindow = 0x4002'0000'0000'0000;
inline constexpr uint64_t kWindowMask = 0xFFFF'0000'0000'0000;
inline constexpr unsigned kSharedRankShift = 24;
inline constexpr uint32_t kSharedOffsetMask = (1u << kSharedRankShift) - 1;

enum OpFlag : uint16_t {
  kGuardNegated = 1 << 0,
  kUniform = 1 << 1,
  kAddress64 = 1 << 2,
  kVolatile = 1 << 3,
  kAligned = 1 << 4,
  kParity = 1 << 5,
  kTranspose = 1 << 6,
  kSource32 = 1 << 7,
  kNoInc = 1 << 8,
  kPredSrcNegated = 1 << 9,
  kReadsClock = 1 << 10, // set ExecContext::clock and globaltimer first; log
                         // lane 0 of dst[0]
  kSynthetic = 1
      << 11, // helper of the next op with the same instruction: takes no time
  kMeetsProduct = 1
      << 12, // may use a register that an asynchronous product still uses
  kUnfenced = 1 << 13, // what it touches may get to a product without a fence
};

struct ExecContext;
struct MicroOp;
using Handler = void (*)(ExecContext &, const MicroOp &, LaneMask active);

struct MicroOp {
  Handler handler = nullptr;
  Opcode opcode = Opcode::Invalid;
  PredicateIndex guard = kNoPredicate;
  uint16_t flags = 0;
  OpKind kind = OpKind::Control;
  Type type = Type::None;
  RowIndex dst[2] = {kNoRow, kNoRow}; // row or predicate index, by opcode
  RowIndex src[4] = {kNoRow, kNoRow, kNoRow, kNoRow};
  int32_t imm = 0;
  uint8_t width = 1; // vector elements, bytes, matrices: by opcode
  Space space = Space::Generic;
  uint8_t sub = 0;        // sub-operation, by opcode
  uint8_t order = 0;      // MemSem | MemScope << 4
  uint32_t slotBegin = 0; // in Program::scoreboard
  uint8_t numReads = 0;
  uint8_t numWrites = 0;
  Pipe pipe = Pipe::None;
  LatencyClass latency = LatencyClass::Nop;
  uint32_t ext = 0; // pool index, reconvergence pc, ...: by opcode

  KPERFIR_SIMT_INLINE bool has(OpFlag flag) const {
    return (flags & flag) != 0;
  }
  KPERFIR_SIMT_INLINE MemSem sem() const {
    return static_cast<MemSem>(order & 15);
  }
  KPERFIR_SIMT_INLINE MemScope scope() const {
    return static_cast<MemScope>(order >> 4);
  }
  /// Bra, BrxIdx: pc where the sides meet, or kNoPc.
  KPERFIR_SIMT_INLINE uint32_t reconvergence() const { return ext; }
  /// Predicate operand of BarRed, CpAsync: kept in src[3].
  KPERFIR_SIMT_INLINE PredicateIndex predSrc() const { return src[3]; }
  /// Ld: bits of the destination registers (>= typeBits(type)).
  KPERFIR_SIMT_INLINE unsigned destBits() const { return sub; }
};
static_assert(sizeof(MicroOp) == 48);

/// Moves bits from registers, or constants, to registers.
inline bool isRegisterMove(const MicroOp &op) {
  return op.opcode == Opcode::Mov || op.opcode == Opcode::Pack ||
         op.opcode == Opcode::Unpack;
}

/// Special registers of one warp. The engine fills it at CTA start; the three
/// clocks are in ExecContext.
struct WarpSpecials {
  alignas(64) uint32_t tid[3][kWarpSize] = {};
  uint32_t ntid[3] = {1, 1, 1};
  uint32_t ctaid[3] = {};
  uint32_t nctaid[3] = {1, 1, 1};
  uint32_t clusterid[3] = {};
  uint32_t nclusterid[3] = {1, 1, 1};
  uint32_t clusterCtaid[3] = {};
  uint32_t clusterNctaid[3] = {1, 1, 1};
  uint32_t clusterCtarank = 0;
  uint32_t clusterNctarank = 1;
  uint32_t warpid = 0;
  uint32_t nwarpid = 1;
  uint32_t smid = 0;
  uint32_t nsmid = 1;
  uint64_t gridid = 0;
  uint32_t dynamicSmemBytes = 0;
  uint32_t totalSmemBytes = 0;
};

/// What a handler may touch. One per running warp (or re-pointed per warp).
struct ExecContext {
  /// [0] = the warp's register file; [1] = constants (use setRegisters and
  /// setConstants).
  uint32_t *rowBase[2] = {nullptr, nullptr};
  uint32_t *predicates = nullptr;
  const WarpSpecials *specials = nullptr;
  const uint8_t *params = nullptr; // kernel parameter block
  const RowIndex *pool = nullptr;  // Program::pool.data()
  uint64_t clock = 0;              // SM cycles, at issue of a kReadsClock op
  uint64_t globaltimer = 0;        // nanoseconds, the same

  void bind(const struct Program &program);

  KPERFIR_SIMT_INLINE const uint32_t *src(RowIndex row) const {
    return rowBase[row >> 15] + size_t(row & 0x7FFF) * kWarpSize;
  }
  KPERFIR_SIMT_INLINE const uint64_t *src64(RowIndex row) const {
    return reinterpret_cast<const uint64_t *>(src(row));
  }
  KPERFIR_SIMT_INLINE uint32_t *dst(RowIndex row) const {
    return rowBase[0] + size_t(row) * kWarpSize;
  }
  KPERFIR_SIMT_INLINE uint64_t *dst64(RowIndex row) const {
    return reinterpret_cast<uint64_t *>(dst(row));
  }

  KPERFIR_SIMT_INLINE LaneMask predicate(PredicateIndex index) const {
    return predicates[index];
  }

  /// Lanes of `mask` whose guard holds.
  KPERFIR_SIMT_INLINE LaneMask guardedMask(const MicroOp &op,
                                           LaneMask mask) const {
    if (op.guard == kNoPredicate)
      return mask;
    LaneMask guard = predicates[op.guard];
    return mask & (op.has(kGuardNegated) ? ~guard : guard);
  }
};

/// Shape of one mma.sync. The pool has numD + numA + numB + numC rows.
struct MmaShape {
  uint16_t m = 0, n = 0, k = 0;
  Type typeD = Type::None, typeA = Type::None, typeB = Type::None,
       typeC = Type::None;
  uint8_t numD = 0, numA = 0, numB = 0, numC = 0; // registers per thread
  bool satfinite = false;
};

/// Form of one wgmma.mma_async, m64 n k. The pool has numD + numA rows.
struct WgmmaShape {
  uint16_t n = 0, k = 0;
  Type typeD = Type::None, typeA = Type::None, typeB = Type::None;
  uint8_t numD = 0, numA = 0; // registers per thread; numA = 0: A is in memory
  bool negateA = false, negateB = false;
  bool transposeA = false, transposeB = false; // M or N is contiguous
  bool satfinite = false;
  bool scaleD = true; // what a constant scale-d says
};
/// Accumulators may go from one such product to the other without a fence.
inline bool haveSameAccumulators(const WgmmaShape &a, const WgmmaShape &b) {
  return a.n == b.n && a.k == b.k && a.typeD == b.typeD;
}

/// Operands of a BulkCopy: places in its part of the pool, kNoRow when absent.
enum class BulkOperand : uint8_t {
  Shared,      // address: destination of a load, source of a store
  Map,         // tensor map, or the address in global memory without one
  Mbarrier,    // address
  Source,      // shared source of a copy between CTAs
  Bytes,       // without a tensor map
  CtaMask,     // .multicast::cluster
  Coordinate0, // of gather4 and scatter4: the column, and four rows
  Coordinate1,
  Coordinate2,
  Coordinate3,
  Coordinate4
};
inline constexpr unsigned kBulkOperands =
    static_cast<unsigned>(BulkOperand::Coordinate4) + 1;

/// The operand that is coordinate `index`, less than 5.
constexpr BulkOperand coordinateOperand(size_t index) {
  return static_cast<BulkOperand>(
      static_cast<size_t>(BulkOperand::Coordinate0) + index);
}

/// Form of one cp.async.bulk or cp.reduce.async.bulk statement.
struct BulkCopyShape {
  enum class Direction : uint8_t { Load, Store, Reduce, ToCluster, Prefetch };
  Direction direction = Direction::Load;
  bool isTensor = false;
  bool usesRows = false; // gather4, scatter4
  uint8_t dimensions = 0;
  AtomicOp reduction = AtomicOp::Add;
  Type type = Type::None;    // Reduce without a tensor map
  uint16_t wideOperands = 0; // bit per BulkOperand: its row is 64 bits wide
  int32_t offset[kBulkOperands] = {}; // added to addresses
};

/// What tensormap.replace sets.
enum class TensormapField : uint8_t {
  GlobalAddress,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType,
  Interleave,
  Swizzle,
  Fill,
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_MICRO_OP_H
