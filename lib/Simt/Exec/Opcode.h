//===- Opcode.h - What an op does, and on which values --------------------===//
//
// The enumerations of a MicroOp's fields: types, spaces, opcodes with their
// operands, memory order, pipes and latency classes.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_OPCODE_H
#define KPERFIR_SIMT_EXEC_OPCODE_H

#include <cstdint>

namespace kperfir::simt {

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
  St, // pool[0..width) = value rows; width == 1: src[1]; async: src[2] =
      // mbarrier
  Atom, // dst[0] = old value (kNoRow: unused); sub = AtomicOp; src[1] =
        // operand;
        //   Cas: src[1] = compare, src[2] = new value. width > 1:
        //   pool[0..width) = destination rows, pool[width..2*width) = operand
        //   rows. sem, scope
  Red, // as Atom without destination; width > 1: pool; async: src[2] = mbarrier
  Fence,    // sem, scope; sub = 2: fence.proxy.async; 1: others that order
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
/// Fence::sub of fence.proxy.async.
inline constexpr uint8_t kProxyFence = 2;
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

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_OPCODE_H
