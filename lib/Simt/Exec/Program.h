//===- Program.h - A kernel as the SIMT machine executes it ---------------===//
//
// The contract between the lowering (Ptx/, Exec/Lower, Exec/Alu*) that produces
// programs and the engine (Exec/Machine, Memory, Matrix, Timing/) that runs
// them. Holds data and accessors only: no behaviour of any instruction.
// STABLE: fields are added, not changed. Include as "Simt/Exec/Program.h".
//
// Registers, predicates and constants: MicroOp.h.
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

#include "Simt/Exec/MicroOp.h"

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
