//===- KPerfGPU.h - The dialect kperf_gpu: how to measure -----------------===//
//
// C++ side of KPerfGPU.td.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_DIALECT_KPERFGPU_KPERFGPU_H
#define KPERFIR_LIB_DIALECT_KPERFGPU_KPERFGPU_H

#include "Dialect/KPerf/KPerf.h"

#include "KPerfGPU/KPerfGPUDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "KPerfGPU/KPerfGPUAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "KPerfGPU/KPerfGPUTypes.h.inc"

#define GET_OP_CLASSES
#include "KPerfGPU/KPerfGPUOps.h.inc"

#endif // KPERFIR_LIB_DIALECT_KPERFGPU_KPERFGPU_H
