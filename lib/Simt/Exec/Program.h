//===- Program.h - A kernel as the SIMT machine executes it ---------------===//
//
// The contract between the lowering (Ptx/, Exec/Lower, Exec/Alu*) that produces
// programs and the engine (Exec/Machine, Memory, Matrix, Timing/) that runs
// them. Holds data and accessors only: no behaviour of any instruction.
// STABLE: fields are added, not changed. Include as "Simt/Exec/Program.h".
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
// Control flow. `pc` indexes `Program::ops`; ops keep the order of the PTX
// text.
//   Reconvergence is by IMMEDIATE POST-DOMINATOR: each Bra and BrxIdx carries
//   the pc where its sides meet again (`reconvergence()`; kNoPc when they only
//   meet at the exit). The engine keeps an IPDOM stack per warp. A direct
//   branch that is `.uni` or unguarded never diverges (kUniform).
//   .func calls are inlined by the lowering; Ret always ends the thread.
//
// Who executes. OpKind::Register ops: call `op.handler(context, op, active)`.
//   All other kinds have a null handler and are dispatched on `op.opcode` by
//   the engine; operand conventions are at the Opcode enumerators.
//   `active` always has the guard applied already (`guardedMask`).
//
// Scoreboard. `slots(op)` lists what the op touches, as dense indices below
//   `Program::numScoreboardSlots`: registers first (slot = row), then
//   predicates (slot = numRows + predicate). First `numReads` entries (guard
//   included), then `numWrites`. A wide register is read through its first row
//   only and written through all its rows; constants do not appear.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_PROGRAM_H
#define KPERFIR_SIMT_EXEC_PROGRAM_H

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  U8,
  S8,
  B16,
  U16,
  S16,
  B32,
  U32,
  S32,
  B64,
  U64,
  S64,
  B128,
  F16,
  BF16,
  F16x2,
  BF16x2,
  F32,
  F32x2,
  F64,
  TF32,
  E4M3,
  E5M2,
  E4M3x2,
  E5M2x2,
  U16x2,
  S16x2,
  U4,
  S4,
  B1,
};

/// Bits of one value of `type`; 0 for None and Pred.
unsigned typeBits(Type type);
/// The PTX suffix without the dot ("bf16x2").
const char *typeName(Type type);

enum class Space : uint8_t {
  Generic,
  Global, // .const is Global as well
  Shared, // shared::cta
  SharedCluster,
  Local,
  Param, // only as a generic address taken by cvta.param
};

/// How the engine treats an op.
enum class OpKind : uint8_t {
  Register, // touches registers only: call the handler
  Control,  // Bra, BrxIdx, Ret, Exit, Trap, Brkpt, NanoSleep, Nop
  Memory,   // Ld, St, Atom, Red, Fence, prefetches
  Barrier,  // Bar*, BarWarpSync, Mbarrier*, barrier.cluster
  Async,    // cp.async and its groups
  Matrix,   // LdMatrix, StMatrix, Mma
  Bulk,     // Wgmma*, Bulk*, Tensormap*: what sm_90 does asynchronously
  Syscall,  // Printf, AssertFail
};

/// Opcode families. Register families exist for logs and statistics (their
/// handlers know everything); the others document their operands, with
///   address = src[0] (32-bit row, or 64-bit if kAddress64) + imm (signed);
///   pool    = Program::pool[ext + i].
enum class Opcode : uint16_t {
  Invalid,
  // --- Register --------------------------------------------------------------
  Mov,
  MovSpecial,
  LdParam,
  Cvta,
  IsSpaceP,
  Mapa,
  Pack,
  Unpack,
  Add,
  Sub,
  Mul,
  Mad,
  Mad24,
  Mul24,
  AddC,
  SubC,
  MadC,
  Sad,
  Div,
  Rem,
  Abs,
  Neg,
  Min,
  Max,
  Popc,
  Clz,
  Bfind,
  Fns,
  Brev,
  Bfe,
  Bfi,
  Bmsk,
  Szext,
  Dp4a,
  Dp2a,
  And,
  Or,
  Xor,
  Not,
  CNot,
  Lop3,
  Shl,
  Shr,
  Shf,
  Prmt,
  Fma,
  Rcp,
  Sqrt,
  Rsqrt,
  Sin,
  Cos,
  Lg2,
  Ex2,
  Tanh,
  CopySign,
  TestP,
  Cvt,
  Set,
  Setp,
  Selp,
  Slct,
  Shfl,
  Vote,
  Match,
  Redux,
  ActiveMask,
  Elect,
  CreatePolicy,
  // --- Control ---------------------------------------------------------------
  Bra,    // imm = target pc; ext = reconvergence pc; guard decides per lane
  BrxIdx, // src[0] = index; pool[0..width) is unused: targets are
          //   Program::branchTargets[imm .. imm + width) ; ext = reconvergence
          //   pc
  Ret,    // the active threads end (also PTX `exit`)
  Trap,
  Brkpt,
  NanoSleep, // src[0] = nanoseconds
  Nop, // costs an issue slot, does nothing (hints: griddepcontrol, setmaxnreg,
       // ...)
  // --- Memory ----------------------------------------------------------------
  Ld, // pool[0..width) = destination rows (kNoRow: sink); width == 1: dst[0] as
      // well
      //   type = element as stored; S8/S16 sign-extend when the register is
      //   wider (destBits() says how wide); kVolatile, sem, scope
  St, // pool[0..width) = value rows; width == 1: src[1] as well
  Atom, // dst[0] = old value (kNoRow: unused); sub = AtomicOp; src[1] =
        // operand;
        //   Cas: src[1] = compare, src[2] = new value. width > 1:
        //   pool[0..width) = destination rows, pool[width..2*width) = operand
        //   rows. sem, scope
  Red,  // as Atom without destination; width > 1: pool[0..width) = operand rows
  Fence,    // sem, scope; sub = 1: fence.proxy.* and other fences that order
            // nothing here
  Prefetch, // address; no effect, but the address may be checked
  // --- Barrier ---------------------------------------------------------------
  BarSync,     // src[0] = barrier id, src[1] = thread count or kNoRow; kAligned
  BarArrive,   // src[0] = barrier id, src[1] = thread count
  BarRed,      // as BarSync; sub = BarReduce; predicate in: predSrc(),
               // kPredSrcNegated;
               //   out: dst[0] row (Popc) or dst[0] predicate (And, Or)
  BarWarpSync, // src[0] = member mask
  ClusterArrive,
  ClusterWait,    // sem in sem
  MbarrierInit,   // address, src[1] = count
  MbarrierInval,  // address
  MbarrierArrive, // address, dst[0] = state or kNoRow, src[1] = count (kNoRow:
                  // 1);
                  //   sub: 0 plain, 1 .noComplete, 2 .expect_tx (src[1] =
                  //   bytes), 3 drop
  MbarrierExpectTx, // address, src[1] = bytes
  MbarrierTestWait, // address, dst[0] = predicate, src[1] = state, or parity if
                    // kParity
  MbarrierTryWait,  // the same; src[2] = suspend time hint or kNoRow
  MbarrierPendingCount, // dst[0], src[1] = state
  MbarrierCompleteTx,   // address, src[1] = bytes
  // --- Async -----------------------------------------------------------------
  CpAsync, // address = shared destination; source: src[1] (64-bit row unless
           //   kSource32) + int32_t(ext); width = cp-size; src[2] = src-size
           //   row or kNoRow; ignore-src predicate: predSrc() or kNoPredicate;
           //   sub = 1 for .cg, 0 for .ca
  CpAsyncCommitGroup,
  CpAsyncWaitGroup, // imm = pending groups allowed
  CpAsyncWaitAll,
  CpAsyncMbarrierArrive, // address; kNoInc
  // --- Matrix ----------------------------------------------------------------
  LdMatrix, // address; width = matrices (1, 2, 4); pool[0..width) = destination
            // rows; kTranspose;
            //   type B16 (m8n8) or B8 (m16n16, m8n16)
  StMatrix, // address; width; pool[0..width) = value rows; kTranspose
  Mma, // imm = index in Program::mmas; pool = D rows, A rows, B rows, C rows
  MovMatrix, // dst[0], src[0] (.trans)
  // --- Bulk: the asynchronous units of sm_90 ---------------------------------
  Wgmma, // imm = index in Program::wgmmas; pool = D rows, then A rows if A is
         // in registers; src[0] = descriptor of A, src[1] = descriptor of B;
         // predSrc() = scale-d or kNoPredicate
  WgmmaFence,
  WgmmaCommitGroup,
  WgmmaWaitGroup, // imm = pending groups allowed
  BulkCopy,       // imm = index in Program::bulkCopies; pool = BulkOperand rows
  BulkCommitGroup,
  BulkWaitGroup,    // imm = pending groups allowed; sub = 1: .read
  TensormapReplace, // address in shared memory; sub = TensormapField; width =
                    // dimension; src[1] = value
  TensormapCopy,    // address = global destination; src[1] = shared source
  // --- Syscall ---------------------------------------------------------------
  Printf,     // src[0] = format address, src[1] = arguments address (64-bit,
              // generic); dst[0] = result
  AssertFail, // src[0] = message, src[1] = file, src[2] = line (32-bit), src[3]
              // = function
};

/// Family name for logs ("ld", "mma"). Full text: Program::instructions.
const char *opcodeName(Opcode opcode);

enum class AtomicOp : uint8_t {
  Add,
  Exch,
  Cas,
  Min,
  Max,
  Inc,
  Dec,
  And,
  Or,
  Xor
};
enum class BarReduce : uint8_t { Popc, And, Or };
enum class MemSem : uint8_t {
  Weak,
  Relaxed,
  Acquire,
  Release,
  AcqRel,
  SeqCst,
  Volatile
};
enum class MemScope : uint8_t { Cta, Cluster, Gpu, Sys };

/// Execution unit that the op occupies (timing).
enum class Pipe : uint8_t {
  Alu,
  Fma,
  Half,
  Fp64,
  Sfu,
  Lsu,
  Tensor,
  Branch,
  Async,
  None
};
inline constexpr unsigned kNumPipes = 10;

/// What the chip file gives (latency, slots) for. Ops that a real compiler
/// expands (div, sqrt.rn, 64-bit multiply) have a class of their own.
enum class LatencyClass : uint8_t {
  Alu,
  Alu64,
  IntMul,
  IntMulWide,
  IntMul64,
  IntDiv32,
  IntDiv64,
  Fma,
  Half,
  Fp64,
  Sfu,
  Ex2,
  DivApprox,
  DivFull,
  DivRn32,
  SqrtRn32,
  Div64Fp,
  Convert,
  ConvertHalf,
  Predicate,
  Select,
  Mov,
  Special,
  Clock,
  Shuffle,
  Vote,
  Match,
  Redux,
  Branch,
  Barrier,
  Fence,
  Load,
  Store,
  Atomic,
  LoadParam,
  LdMatrix,
  StMatrix,
  AsyncCopy,
  AsyncGroup,
  Mbarrier,
  Mma,
  Syscall,
  Nop,
  // From sm_90 on: chip files of older ones do not have them.
  Wgmma,
  BulkCopy,
  BulkGroup,
  Tensormap,
  Cluster,
};
inline constexpr unsigned kNumLatencyClasses =
    static_cast<unsigned>(LatencyClass::Cluster) + 1;
inline bool needsSm90(LatencyClass latency) {
  return latency > LatencyClass::Nop;
}
/// Key of the class in chip files ("int-div-32").
const char *latencyClassName(LatencyClass latency);
const char *pipeName(Pipe pipe);

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

/// Operands of a BulkCopy: places in its part of the pool, kNoRow when absent.
enum class BulkOperand : uint8_t {
  Shared,    // address: destination of a load, source of a store
  Map,       // tensor map, or the address in global memory without one
  Mbarrier,  // address
  Source,    // shared source of a copy between CTAs
  Bytes,     // without a tensor map
  CtaMask,   // .multicast::cluster
  Coordinate // and the four after it; of gather4 and scatter4: column, 4 rows
};
inline constexpr unsigned kBulkOperands =
    static_cast<unsigned>(BulkOperand::Coordinate) + 5;

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

/// One PTX instruction, for diagnostics and for logs.
struct Instruction {
  std::string text;     // one line, as written, guard included, no comment
  std::string mnemonic; // "ld.global.v4.b32"
  uint32_t ptxLine = 0;
  uint32_t file = 0; // index in Program::files; 0 = unknown (files[0] is "")
  uint32_t line = 0;
  uint32_t column = 0;
};

struct BasicBlock {
  uint32_t begin = 0, end = 0;      // pcs, [begin, end)
  uint32_t reconvergence = kNoPc;   // pc of the immediate post-dominator
  std::vector<uint32_t> successors; // block indices
};

struct Parameter {
  std::string name;
  std::string type; // "u64", "b8[128]", ...
  uint32_t bytes = 0;
  uint32_t align = 1;
  uint32_t offset = 0; // in the parameter block
};

/// A .shared variable at its place in the CTA's window.
struct SharedVariable {
  std::string name;
  uint32_t offset = 0;
  uint32_t bytes = 0; // 0: the dynamic one (extern)
};

/// Module-scope .global and .const variables, initialised, at a stable host
/// address (it is what the constants of the program hold). Persist over
/// launches, as on a GPU.
struct GlobalVariable {
  std::string name;
  uint8_t *data = nullptr;
  uint64_t bytes = 0;
  bool writable = true; // false for .const
};

/// Instruction sets that the register handlers are compiled for, each a
/// superset of the one before.
enum class HostIsa : uint8_t { Baseline, Avx2, Avx512 };

struct Program {
  std::string kernel;
  std::string target;              // "sm_80"
  HostIsa isa = HostIsa::Baseline; // of its handlers
  std::vector<MicroOp> ops;
  std::vector<uint32_t> instructionOf; // per op: index in instructions
  std::vector<Instruction> instructions;
  std::vector<std::string> files;      // [0] == ""
  std::vector<BasicBlock> blocks;      // in text order
  std::vector<RowIndex> pool;          // out-of-line operands
  std::vector<uint32_t> branchTargets; // BrxIdx
  std::vector<MmaShape> mmas;
  std::vector<WgmmaShape> wgmmas;
  std::vector<BulkCopyShape> bulkCopies;
  std::vector<uint16_t> scoreboard;

  uint32_t numRows = 0;
  uint32_t numPredicates = 0;
  uint32_t numScoreboardSlots = 0;
  uint32_t registers = 0; // estimate per thread, 32-bit, from the live ranges

  std::vector<Parameter> params;
  uint32_t paramBytes = 0;
  std::array<uint32_t, 3> reqntid = {0, 0, 0}; // 0: not given
  std::array<uint32_t, 3> maxntid = {0, 0, 0};
  uint32_t minNctaPerSm = 0;
  std::array<uint32_t, 3> clusterDim = {0, 0, 0};

  uint32_t sharedBytes = 0;        // static
  uint32_t dynamicSharedBegin = 0; // where extern .shared starts
  std::vector<SharedVariable> shared;
  uint32_t localBytes = 0; // per thread
  std::vector<GlobalVariable> globals;

  /// 64-byte aligned rows of 32 words: constants.
  uint32_t *constants = nullptr;
  uint32_t numConstantRows = 0;

  /// Keeps constants and globals alive (several kernels may share globals).
  std::vector<std::shared_ptr<void>> storage;

  std::span<const uint16_t> reads(const MicroOp &op) const {
    return {scoreboard.data() + op.slotBegin, op.numReads};
  }
  std::span<const uint16_t> writes(const MicroOp &op) const {
    return {scoreboard.data() + op.slotBegin + op.numReads, op.numWrites};
  }
  const Instruction &instructionAt(uint32_t pc) const {
    return instructions[instructionOf[pc]];
  }
};

inline void ExecContext::bind(const Program &program) {
  rowBase[1] = program.constants;
  pool = program.pool.data();
}

/// The best one that this CPU has.
HostIsa detectHostIsa();
const char *hostIsaName(HostIsa isa);
/// The one of that name, or none.
std::optional<HostIsa> hostIsaFromName(std::string_view name);

/// Parse `ptx` and lower its entry `kernel` (empty: the only one, or the
/// first). Throws simt::Error. Same text, same program.
std::shared_ptr<const Program> loadProgram(const std::string &ptx,
                                           const std::string &kernel = {},
                                           HostIsa isa = detectHostIsa());

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_PROGRAM_H
