//===- VirtualOp.h - Micro-ops before register allocation -----------------===//
//
// A micro-op whose operands still are virtual registers. The lowering emits
// them, the register allocator writes the rows.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_VIRTUAL_OP_H
#define KPERFIR_SIMT_EXEC_VIRTUAL_OP_H

#include "Simt/Exec/Program.h"

namespace kperfir::simt {

/// Field of the MicroOp, or entry of its pool operands, that a row goes to.
enum class Slot : uint8_t { Dst0, Dst1, Src0, Src1, Src2, Src3, Guard, Pool };

struct Reference {
  uint32_t reg = 0; // virtual register
  Slot slot = Slot::Dst0;
  bool isDefinition = false;
  uint8_t poolIndex = 0; // within the op's pool entries
  /// Keeps the register alive, but is no field of the op and not waited for.
  bool isImplicit = false;
};

/// Rows a virtual register takes; 0 for a predicate.
struct VirtualRegister {
  uint8_t rows = 1;
};

struct VirtualOp {
  MicroOp op;
  uint32_t statement = 0; // of the flat kernel
  std::vector<Reference> references;
  std::vector<RowIndex> pool; // constants and sinks are in place already
};

/// Ops of one basic block: [begin, end).
struct VirtualBlock {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> successors;
};

struct Allocation {
  uint32_t numRows = 0;
  uint32_t numPredicates = 0;
  uint32_t pressure = 0; // most 32-bit registers alive at a time
};

/// Give the whole of registers that are taken apart only to be joined again a
/// register of its own, and drop the moves that it takes.
void joinHalves(std::vector<VirtualOp> &ops, std::vector<VirtualBlock> &blocks,
                std::vector<VirtualRegister> &registers, HostIsa isa);

/// Set kMeetsProduct where an op may use a register that a wgmma still uses.
void markProductHazards(std::vector<VirtualOp> &ops,
                        const std::vector<VirtualBlock> &blocks,
                        size_t registers);

/// Set kUnfenced where what an op touches may get to a product without a fence.
void markProductFences(std::vector<VirtualOp> &ops,
                       const std::vector<VirtualBlock> &blocks,
                       const std::vector<WgmmaShape> &shapes, size_t registers);

/// Give every virtual register rows by linear scan over its live interval, and
/// write them into the ops. A destination takes the very rows of a source of
/// equal size that dies there, if the op only touches registers; otherwise the
/// rows of destinations and sources are disjoint.
/// Throws simt::Error (Limit) when the rows do not fit RowIndex.
Allocation allocateRegisters(std::vector<VirtualOp> &ops,
                             const std::vector<VirtualBlock> &blocks,
                             const std::vector<VirtualRegister> &registers);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_VIRTUAL_OP_H
