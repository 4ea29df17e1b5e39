//===- KPerfGPU.td - How to measure ---------------------------------------===//
//
// Level 2: frames of stamps with static slots, and where a warp's state begins,
// is handed over and ends. `convert-kperf-gpu-to-llvm` threads the cursor and
// the record count, which are not values here, through the control flow.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_DIALECT_KPERFGPU_KPERFGPU_TD
#define KPERFIR_LIB_DIALECT_KPERFGPU_KPERFGPU_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Dialect/KPerf/KPerfEnums.td"

def KPerfGPU_Dialect : Dialect {
  let name = "kperf_gpu";
  let cppNamespace = "::mlir::kperf_gpu";
  let summary = "How times are kept inside a kernel";
  let description = [{
    Each warp owns a segment of the profile buffer. A *stamp* is one clock word
    in it, a *frame* is a run of stamps with static slots and a tag
    (docs/contracts.md, 1). Operations name frames and slots; where in the
    segment a frame lands is known only to the lowering.

    A warp's state is born in `init`, dies in `finalize`, and passes through the
    segment header where a region of a warp-specialised kernel begins (`attach`)
    and ends (`detach`).
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class KPerfGPU_Op<string mnemonic, list<Trait> traits = []>
    : Op<KPerfGPU_Dialect, mnemonic, traits>;

def KPerfGPU_EventAttr : AttrDef<KPerfGPU_Dialect, "Event"> {
  let mnemonic = "event";
  let summary = "An edge of a region, by the region's id";
  let parameters = (ins EnumParameter<KPerf_Edge>:$edge, "uint32_t":$region);
  let assemblyFormat = "`<` $edge $region `>`";
}

def KPerfGPU_EventArrayAttr
    : TypedArrayAttrBase<KPerfGPU_EventAttr, "events of one stamp">;

def KPerfGPU_FrameType : TypeDef<KPerfGPU_Dialect, "Frame"> {
  let mnemonic = "frame";
  let summary = "An open frame: its id, its slots, the words of its values";
  let description = [{
    A value of this type stands for the place in the warp's segment where the
    frame begins, if it fits.

    Example: `!kperf_gpu.frame<3, 5>` is frame 3, with slots 0 to 4;
    `!kperf_gpu.frame<3, 5, 2>` has two words behind them for values of marks.
  }];
  let parameters = (ins "uint32_t":$id, "uint32_t":$slots,
                    DefaultValuedParameter<"uint32_t", "0">:$valueWords);
  let assemblyFormat = "`<` $id `,` $slots (`,` $valueWords^)? `>`";
  let genVerifyDecl = 1;
}

def KPerfGPU_InitOp : KPerfGPU_Op<"init", [MemoryEffects<[MemWrite]>]> {
  let summary = "Begin the recording of a CTA";
  let description = [{
    Makes the segments of all warps of the CTA empty and writes the start anchor
    (clock, global timer, SM, CTA id). Stands in the entry block of the kernel,
    before every other operation of this dialect. `scratch`, the CTA's share of
    the profile buffer, is added by `kperf-plan-buffer`.

    Example:
    ```mlir
    kperf_gpu.init
    kperf_gpu.init(%scratch : !tt.ptr<i8>)
    ```
  }];
  let arguments = (ins Optional<AnyType>:$scratch);
  let assemblyFormat = "(`(` $scratch^ `:` type($scratch) `)`)? attr-dict";
  let hasVerifier = 1;
}

def KPerfGPU_FinalizeOp : KPerfGPU_Op<"finalize", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "End the recording of a CTA";
  let description = [{
    Copies the segments to the CTA's share of the profile buffer, writes the end
    anchor and, last, the magic word. Stands before each return of a kernel.

    Example:
    ```mlir
    kperf_gpu.finalize(%scratch : !tt.ptr<i8>)
    tt.return
    ```
  }];
  let arguments = (ins Optional<AnyType>:$scratch);
  let assemblyFormat = "(`(` $scratch^ `:` type($scratch) `)`)? attr-dict";
}

def KPerfGPU_AttachOp : KPerfGPU_Op<"attach", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Take a warp's state over from its segment header";
  let description = [{
    First operation of a region of a warp-specialised kernel that records, and
    after the `ttg.warp_specialize` whose default region recorded.

    Example:
    ```mlir
    partition0() num_warps(1) {
      kperf_gpu.attach
      // frames
      kperf_gpu.detach
      ttg.warp_return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def KPerfGPU_DetachOp : KPerfGPU_Op<"detach", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Leave a warp's state in its segment header";
  let description = [{
    Counterpart of `kperf_gpu.attach`; see there for an example.
  }];
  let assemblyFormat = "attr-dict";
}

def KPerfGPU_OpenFrameOp : KPerfGPU_Op<"open_frame", [MemoryEffects<[MemWrite]>]> {
  let summary = "Begin a frame at the warp's cursor";
  let description = [{
    Every slot of the frame is stamped exactly once and in order, and the frame
    is closed exactly once, after the last stamp. Frames do not nest. The write
    effect keeps two frames with the same content apart.

    Where `when` is false, nothing of the frame is stored or counted: it is in
    an iteration of a loop that is left out.

    Example:
    ```mlir
    %frame = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %frame[0] start 1 : !kperf_gpu.frame<0, 2>
    %x = tt.load %ptr : tensor<256x!tt.ptr<f32>>
    kperf_gpu.stamp %frame[1] end 1 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %frame : !kperf_gpu.frame<0, 2>

    %sampled = kperf_gpu.open_frame when %even : !kperf_gpu.frame<1, 1>
    ```
  }];
  let arguments = (ins Optional<I1>:$when);
  let results = (outs KPerfGPU_FrameType:$frame);
  let assemblyFormat = "(`when` $when^)? attr-dict `:` qualified(type($frame))";
  let hasVerifier = 1;
}

def KPerfGPU_StampOp : KPerfGPU_Op<"stamp", [MemoryEffects<[MemWrite]>]> {
  let summary = "Store the clock into a slot of an open frame";
  let description = [{
    One clock word stands for all of `events`, in order. The store happens in
    one lane of the warp, and only if the frame fits.

    Example:
    ```mlir
    kperf_gpu.stamp %frame[2] end 3, start 4 : !kperf_gpu.frame<0, 5>
    ```
  }];
  let arguments = (ins KPerfGPU_FrameType:$frame, I32Attr:$slot,
                   KPerfGPU_EventArrayAttr:$events);
  let assemblyFormat = [{
    $frame `[` custom<Slot>($slot) `]` custom<Events>($events) attr-dict `:` qualified(type($frame))
  }];
  let hasVerifier = 1;
}

def KPerfGPU_Value : AnyTypeOf<[I32, I64, F32, F64], "an i32, i64, f32 or f64">;

def KPerfGPU_StoreValueOp : KPerfGPU_Op<"store_value", [MemoryEffects<[MemWrite]>]> {
  let summary = "Store what a mark carries behind the slots of an open frame";
  let description = [{
    `word` counts the frame's words for values; an i64 or f64 takes two, the
    low one first. Stored like a stamp, in one lane and if the frame fits.

    Example:
    ```mlir
    kperf_gpu.stamp %frame[0] mark 7 : !kperf_gpu.frame<0, 1, 1>
    kperf_gpu.store_value %frame[0], %tile : i32 in !kperf_gpu.frame<0, 1, 1>
    ```
  }];
  let arguments = (ins KPerfGPU_FrameType:$frame, I32Attr:$word,
                   KPerfGPU_Value:$value);
  let assemblyFormat = [{
    $frame `[` custom<Slot>($word) `]` `,` $value attr-dict `:` type($value) `in` qualified(type($frame))
  }];
  let extraClassDeclaration = [{
    /// Words that a value of `type` takes.
    static uint32_t countWords(::mlir::Type type);
  }];
}

def KPerfGPU_CloseFrameOp : KPerfGPU_Op<"close_frame", [MemoryEffects<[MemWrite]>]> {
  let summary = "Tag a frame and move the warp's cursor past it";
  let description = [{
    Counts the frame's stamps as executed, whether or not it fitted.

    Example:
    ```mlir
    kperf_gpu.close_frame %frame : !kperf_gpu.frame<0, 2>
    ```
  }];
  let arguments = (ins KPerfGPU_FrameType:$frame);
  let assemblyFormat = "$frame attr-dict `:` qualified(type($frame))";
}

#endif // KPERFIR_LIB_DIALECT_KPERFGPU_KPERFGPU_TD
