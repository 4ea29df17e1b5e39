//===- AsyncCopy.h - Data of a cp.async -----------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_ASYNCCOPY_H
#define KPERFIR_SIMT_EXEC_ASYNCCOPY_H

#include "Simt/Exec/Memory.h"

namespace kperfir::simt {

/// What a queued cp.async carries besides its source addresses.
struct AsyncOperands {
  uint32_t offset[kWarpSize];      // in shared memory
  uint32_t sourceBytes[kWarpSize]; // the rest is filled with zeros
};

/// Moves the data; who may read it is another matter
/// (SharedMemory::setWritten).
void copyToShared(SharedMemory &shared, const AsyncOperands &operands,
                  LaneMask lanes, unsigned bytes, const uint64_t *source);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_ASYNCCOPY_H
