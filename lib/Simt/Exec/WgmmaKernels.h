//===- WgmmaKernels.h - The product of one warp's part of a wgmma ---------===//
//
// Compiled once per instruction set (see Program.h, HostIsa).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_WGMMAKERNELS_H
#define KPERFIR_SIMT_EXEC_WGMMAKERNELS_H

#include "Simt/Exec/Program.h"

namespace kperfir::simt {

inline constexpr unsigned kWgmmaRows = 16;   // of A and D per warp
inline constexpr unsigned kWgmmaKBytes = 32; // of a row of A, a column of B
inline constexpr unsigned kWgmmaMaxN = 256;
inline constexpr unsigned kWgmmaMaxD = 128; // registers of D

/// Elements as they lie in memory or registers, k contiguous.
struct WgmmaOperands {
  alignas(64) uint8_t a[kWgmmaRows][kWgmmaKBytes];
  alignas(64) uint8_t b[kWgmmaMaxN][kWgmmaKBytes];
  uint32_t *d[kWgmmaMaxD];
  unsigned n = 0;
  bool accumulate = false;
  bool negate = false; // one of A and B is negated, not both
};

using WgmmaKernel = void (*)(const WgmmaOperands &operands);

/// The implementation for the host; the lowering has checked the types. The
/// same results on every instruction set.
WgmmaKernel findWgmmaKernel(const WgmmaShape &shape, HostIsa isa);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_WGMMAKERNELS_H
