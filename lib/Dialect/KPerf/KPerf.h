//===- KPerf.h - The dialect kperf: what to measure -----------------------===//
//
// C++ side of KPerf.td.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_DIALECT_KPERF_KPERF_H
#define KPERFIR_LIB_DIALECT_KPERF_KPERF_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "KPerf/KPerfEnums.h.inc"

#include "KPerf/KPerfDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "KPerf/KPerfAttrs.h.inc"

#define GET_OP_CLASSES
#include "KPerf/KPerfOps.h.inc"

#endif // KPERFIR_LIB_DIALECT_KPERF_KPERF_H
