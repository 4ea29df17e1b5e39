//===- AsyncCopy.h - Data of a cp.async -----------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_ASYNCCOPY_H
#define KPERFIR_SIMT_EXEC_ASYNCCOPY_H

#include "Simt/Exec/Memory.h"

#include <bit>
#include <cstring>

namespace kperfir::simt {

/// What a queued cp.async carries besides its source addresses.
struct AsyncOperands {
  uint32_t offset[kWarpSize];      // in shared memory
  uint32_t sourceBytes[kWarpSize]; // the rest is filled with zeros
};

/// Those of a queued request (RequestQueue::data).
inline AsyncOperands asyncOperands(const uint8_t *data) {
  AsyncOperands operands;
  std::memcpy(&operands, data, sizeof operands);
  return operands;
}

/// Those of `lanes` that read anything.
inline LaneMask readingLanes(const AsyncOperands &operands, LaneMask lanes) {
  LaneMask reading = 0;
  for (LaneMask rest = lanes; rest; rest &= rest - 1)
    if (operands.sourceBytes[std::countr_zero(rest)])
      reading |= rest & (~rest + 1);
  return reading;
}

/// Moves the data; who may read it is another matter
/// (SharedMemory::setWritten).
void copyToShared(SharedMemory &shared, const AsyncOperands &operands,
                  LaneMask lanes, unsigned bytes, const uint64_t *source);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_ASYNCCOPY_H
