//===- SharedBanks.h - Bank conflicts of one shared-memory access ---------===//
//
// 32 banks of 4 bytes. An access is served in wavefronts: in each, every bank
// serves one word, to any number of lanes.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_TIMING_SHAREDBANKS_H
#define KPERFIR_SIMT_TIMING_SHAREDBANKS_H

#include "Simt/Exec/Program.h"

#include <cstdint>

namespace kperfir::simt {

/// Wavefronts of an access in which each lane of `mask` touches `bytes` (1 to
/// 32) at its offset. Lanes are served in groups that touch 128 bytes at most:
/// all for up to 4 bytes per lane, half-warps for 8, quarters for 16.
unsigned sharedWavefronts(const uint32_t *offsets, unsigned bytes,
                          LaneMask mask);

/// Wavefronts of ldmatrix and stmatrix: `matrices` groups of eight 16-byte
/// rows.
unsigned matrixWavefronts(const uint32_t *rowOffsets, unsigned matrices);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_SHAREDBANKS_H
