//===- KPerf.cpp - The dialect kperf: what to measure ---------------------===//
//
// Registration and the checks that one operation can make by itself. Balance
// over paths is the work of `kperf-verify-balance`.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerf/KPerf.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "KPerf/KPerfDialect.cpp.inc"
#include "KPerf/KPerfEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "KPerf/KPerfAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "KPerf/KPerfOps.cpp.inc"

void kperf::KPerfDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "KPerf/KPerfAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "KPerf/KPerfOps.cpp.inc"
      >();
}

LogicalResult kperf::RecordOp::verify() {
  if (getRegion().empty())
    return emitOpError("needs the name of a region");
  if (getEdge() == Edge::Mark)
    return emitOpError("records a start or an end; for a mark use kperf.mark");
  if (getEdge() == Edge::End && getKind() == Kind::Iteration)
    return emitOpError("ends iteration \"")
           << getRegion() << "\"; an iteration ends with its loop";
  if (getEdge() == Edge::Gap && getKind() != Kind::Compute &&
      getKind() != Kind::Between)
    return emitOpError("begins gap \"")
           << getRegion() << "\" of kind " << stringifyKind(getKind())
           << "; what lies between two records is compute or between";
  return success();
}

LogicalResult kperf::MarkOp::verify() {
  if (getEvent().empty())
    return emitOpError("needs the name of an event");
  if (getIsUnsigned() && (!getValue() || !getValue().getType().isInteger()))
    return emitOpError("is unsigned without an integer to read so");
  return success();
}
