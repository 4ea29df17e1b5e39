//===- Atomic.h - The arithmetic of atom and red --------------------------===//

#ifndef KPERFIR_SIMT_EXEC_ATOMIC_H
#define KPERFIR_SIMT_EXEC_ATOMIC_H

#include "Simt/Exec/Program.h"

namespace kperfir::simt {

/// True for the combinations that PTX has.
bool isAtomicSupported(AtomicOp operation, Type type);

/// Combines one element in memory with `operand` (Cas: compares with `operand`,
/// stores `replacement`) and hands out what was there. All pointers have
/// typeBits(type) / 8 bytes.
void applyAtomic(AtomicOp operation, Type type, uint8_t *memory,
                 const uint8_t *operand, const uint8_t *replacement,
                 uint8_t *old);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_ATOMIC_H
