//===- KPerf.td - What to measure -----------------------------------------===//
//
// Level 1: marks the borders of regions of a kernel. Knows neither target nor
// buffer. `kperf-assign-frames` turns it into kperf_gpu.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_DIALECT_KPERF_KPERF_TD
#define KPERFIR_LIB_DIALECT_KPERF_KPERF_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Dialect/KPerf/KPerfEnums.td"

def KPerf_Dialect : Dialect {
  let name = "kperf";
  let cppNamespace = "::mlir::kperf";
  let summary = "What to measure inside a kernel";
  let description = [{
    A *region* is a named part of a kernel. Its borders are `kperf.record`
    operations; nothing here says where or how the time is kept.

    Regions nest: on every path, the region that was started last is ended
    first. `kperf-verify-balance` reports where that does not hold. A region of
    kind `iteration` has no end: its next start, or the end of the loop around
    it, closes it. What a `gap` begins has none either: the next record that is
    executed, whichever it is, closes it.
  }];
  let useDefaultAttributePrinterParser = 1;
  let extraClassDeclaration = [{
    /// What `kperf-keep-module` keeps.
    ::mlir::OwningOpRef<::mlir::Operation *> keptModule;
  }];
}

class KPerf_Op<string mnemonic, list<Trait> traits = []>
    : Op<KPerf_Dialect, mnemonic, traits>;

def KPerf_EdgeAttr : EnumAttr<KPerf_Dialect, KPerf_Edge, "edge"> {
  let assemblyFormat = "$value";
}

def KPerf_KindAttr : EnumAttr<KPerf_Dialect, KPerf_Kind, "kind"> {
  let assemblyFormat = "$value";
}

def KPerf_RecordOp : KPerf_Op<"record", [MemoryEffects<[MemWrite]>]> {
  let summary = "Record the time at which control enters or leaves a region";
  let description = [{
    Records one time for each warp that executes it. The write effect keeps the
    operation in place: CSE must not merge two records, DCE must not drop one.

    `region` names the region within the module. `kind` says what it does and
    defaults to `user`; `origin`, if present, is the name of the operation that
    the region was put around. Those of the first start in program order, and
    its location, describe the region in the layout.

    A `gap` begins a region, too, but at no time of its own: it takes that of
    the record right before it, and is nothing without one. The region ends
    where the next record is executed, on every path.

    Example:
    ```mlir
    kperf.record start "load mm.py:12" kind load of "tt.load"
    %x = tt.load %ptr : tensor<256x!tt.ptr<f32>>
    kperf.record end "load mm.py:12" kind load
    ```
  }];
  let arguments = (ins KPerf_EdgeAttr:$edge, StrAttr:$region,
                   DefaultValuedAttr<KPerf_KindAttr, "::mlir::kperf::Kind::User">:$kind,
                   OptionalAttr<StrAttr>:$origin);
  let assemblyFormat = [{
    $edge $region (`kind` $kind^)? (`of` $origin^)? attr-dict
  }];
  let hasVerifier = 1;
}

def KPerf_Value : AnyTypeOf<[I32, I64, F32, F64], "an i32, i64, f32 or f64">;

def KPerf_MarkOp : KPerf_Op<"mark", [MemoryEffects<[MemWrite]>]> {
  let summary = "Record the time at which control passes a point, and a value";
  let description = [{
    Records one time for each warp that executes it, like `kperf.record`, but of
    an event without duration.

    `value`, if present, is recorded too: a loop variable, a program id, whatever
    scalar says which of many executions this one was. It is the warp's first
    lane's. `unsigned` says how to read an integer; nothing else depends on it.

    Example:
    ```mlir
    kperf.mark "epilogue"
    kperf.mark "tile"(%tile : i32)
    kperf.mark "address"(%offset : i64) unsigned
    ```
  }];
  let arguments = (ins StrAttr:$event, Optional<KPerf_Value>:$value,
                   UnitAttr:$isUnsigned);
  let assemblyFormat = [{
    $event (`(` $value^ `:` type($value) `)`)? (`unsigned` $isUnsigned^)? attr-dict
  }];
  let hasVerifier = 1;
}

#endif // KPERFIR_LIB_DIALECT_KPERF_KPERF_TD
