//===- MatrixKernels.h - Vectorised parts of matrix instructions ----------===//
//
// Compiled once per instruction set (see Program.h, HostIsa).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MATRIXKERNELS_H
#define KPERFIR_SIMT_EXEC_MATRIXKERNELS_H

#include "Simt/Exec/Program.h"

namespace kperfir::simt {

/// Registers of one mma.sync: 32 lanes of 32 bits each, or of 64 for F64.
struct MmaOperands {
  const uint32_t *a[8];
  const uint32_t *b[8];
  const uint32_t *c[8];
  uint32_t *d[8];
};

using MmaKernel = void (*)(const MmaOperands &operands);

/// The implementation of a shape for the host, or null if there is none. The
/// same results on every instruction set.
MmaKernel findMmaKernel(const MmaShape &shape, HostIsa isa);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_MATRIXKERNELS_H
