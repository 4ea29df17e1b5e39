//===- KPerfEnums.td - Edges and kinds, shared by both dialects -----------===//
//
// The spellings below are those of the layout JSON (docs/contracts.md, 3).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_DIALECT_KPERF_KPERFENUMS_TD
#define KPERFIR_LIB_DIALECT_KPERF_KPERFENUMS_TD

include "mlir/IR/EnumAttr.td"

def KPerf_Edge
    : I32EnumAttr<"Edge", "What happens to a region at a point in time",
                  [I32EnumAttrCase<"Start", 0, "start">,
                   I32EnumAttrCase<"End", 1, "end">,
                   I32EnumAttrCase<"Mark", 2, "mark">,
                   I32EnumAttrCase<"Gap", 3, "gap">]> {
  let cppNamespace = "::mlir::kperf";
  let genSpecializedAttr = 0;
}

def KPerf_Kind
    : I32EnumAttr<"Kind", "What a region of a kernel does",
                  [I32EnumAttrCase<"Kernel", 0, "kernel">,
                   I32EnumAttrCase<"Loop", 1, "loop">,
                   I32EnumAttrCase<"Iteration", 2, "iteration">,
                   I32EnumAttrCase<"Load", 3, "load">,
                   I32EnumAttrCase<"Store", 4, "store">,
                   I32EnumAttrCase<"AsyncCopy", 5, "async_copy">,
                   I32EnumAttrCase<"AsyncWait", 6, "async_wait">,
                   I32EnumAttrCase<"Dot", 7, "dot">,
                   I32EnumAttrCase<"Wgmma", 8, "wgmma">,
                   I32EnumAttrCase<"WgmmaWait", 9, "wgmma_wait">,
                   I32EnumAttrCase<"Tcgen05", 10, "tcgen05">,
                   I32EnumAttrCase<"Tma", 11, "tma">,
                   I32EnumAttrCase<"MbarrierWait", 12, "mbarrier_wait">,
                   I32EnumAttrCase<"LocalLoad", 13, "local_load">,
                   I32EnumAttrCase<"LocalStore", 14, "local_store">,
                   I32EnumAttrCase<"ConvertLayout", 15, "convert_layout">,
                   I32EnumAttrCase<"Reduce", 16, "reduce">,
                   I32EnumAttrCase<"Scan", 17, "scan">,
                   I32EnumAttrCase<"Atomic", 18, "atomic">,
                   I32EnumAttrCase<"Barrier", 19, "barrier">,
                   I32EnumAttrCase<"User", 20, "user">,
                   I32EnumAttrCase<"Mark", 21, "mark">,
                   I32EnumAttrCase<"Call", 22, "call">,
                   I32EnumAttrCase<"Prologue", 23, "prologue">,
                   I32EnumAttrCase<"Epilogue", 24, "epilogue">,
                   I32EnumAttrCase<"Compute", 25, "compute">,
                   I32EnumAttrCase<"Between", 26, "between">]> {
  let cppNamespace = "::mlir::kperf";
  let genSpecializedAttr = 0;
}

#endif // KPERFIR_LIB_DIALECT_KPERF_KPERFENUMS_TD
