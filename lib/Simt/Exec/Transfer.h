//===- Transfer.h - Between registers and bytes of memory -----------------===//
//
// Moves the values of ld, st and their relatives; checks nothing. An access has
// op.width elements of typeBits(op.type) bits per lane.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_TRANSFER_H
#define KPERFIR_SIMT_EXEC_TRANSFER_H

#include "Simt/Exec/Program.h"

namespace kperfir::simt {

/// Bytes per lane of a ld, st, atom or red.
inline unsigned accessBytes(const MicroOp &op) {
  return typeBits(op.type) / 8 * op.width;
}

/// Lane i (in `lanes`) gets its elements from host address `address[i]`.
void loadLanes(ExecContext &context, const MicroOp &op, LaneMask lanes,
               const uint64_t *address);

/// The same for all lanes, lane i at `bytes + i * accessBytes(op)`.
void loadContiguous(ExecContext &context, const MicroOp &op,
                    const uint8_t *bytes);

/// Writes the elements of all lanes to `bytes`, lane i at i * accessBytes(op).
/// `rows` are the operand's rows (op.width of them).
void packLanes(const ExecContext &context, const MicroOp &op,
               const RowIndex *rows, uint8_t *bytes);

/// One lane's register value, `bits` wide (8 to 64).
uint64_t readRegister(const ExecContext &context, RowIndex row, unsigned lane,
                      unsigned bits);
void writeRegister(const ExecContext &context, RowIndex row, unsigned lane,
                   unsigned bits, uint64_t value);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_TRANSFER_H
