//===- Passes.td - What each pass does ------------------------------------===//
//
// The documentation of the passes (docs/passes.md is generated from it) and
// their base classes. Options are described here and parsed by Options.h: they
// are texts, see there.
//
//===----------------------------------------------------------------------===//

include "mlir/Pass/PassBase.td"

def DropScopes : Pass<"kperf-drop-scopes", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createDropScopes({})";
  let summary = "Forget the scopes and marks of the user's source";
  let description = [{
    For a kernel that is not recorded after all: leaves what the same source
    without `kperfir.language` compiles to. See `kperf-insert-scopes`.

    Before:
    ```mlir
    %m = tt.elementwise_inline_asm "// kperf.mark|i|tile" {...} %i : i32 -> i32
    %x = tt.load %p : !tt.ptr<f32> loc("kperf.scope|3:9:0:load"("k.py":4:12))
    ```
    After:
    ```mlir
    %x = tt.load %p : !tt.ptr<f32> loc("k.py":4:12)
    ```
  }];
}

def KeepModule : Pass<"kperf-keep-module", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createKeepModule({})";
  let summary = "Keep a kernel as it is without records, and go back to it";
  let description = [{
    A compile that fails because of kperfir starts over from the kernel that was
    kept, in the same module, whatever became of that meanwhile.

    Options:
    * `action` (default `keep`): `keep` makes a copy and changes nothing;
      `restore` replaces the module by the copy; `forget` drops it.

    Where `keep` finds records already, it leaves the dialect that they are of,
    `kperf_gpu` or `proton`, in `kperf.records`:
    ```mlir
    module attributes {kperf.records = "proton"} {
    ```
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def InsertScopes : Pass<"kperf-insert-scopes", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createInsertScopes({})";
  let summary = "Put records around the scopes of the user's source";
  let description = [{
    Runs on TTGIR, before `kperf-insert-regions`. Up to here a scope is only part
    of the locations of the operations inside it (ScopeTags.h), and a mark is an
    inline assembly that does nothing: scopes change nothing in what Triton's
    passes do, and follow their operations through inlining, pipelining and warp
    specialisation.

    A scope is recorded around each run of its operations. If the compiler took
    it apart, as the pipeliner does with a load and its use, it is recorded where
    its parts are. Constants and scalar arithmetic begin and end no run.

    Before:
    ```mlir
    %x = tt.load %p : !tt.ptr<f32> loc("kperf.scope|3:9:0:load"("k.py":4:12))
    %m = tt.elementwise_inline_asm "// kperf.mark|i|tile" {...} %i : i32 -> i32
    ```
    After:
    ```mlir
    kperf.record start "load" of "scope" loc("k.py":3:9)
    %x = tt.load %p : !tt.ptr<f32> loc("k.py":4:12)
    kperf.record end "load" loc("k.py":3:9)
    kperf.mark "tile"(%i : i32)
    ```
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def ListLayouts : Pass<"kperf-list-layouts", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createListLayouts({})";
  let summary = "List the linear layouts of a kernel's accesses to memory";
  let description = [{
    Leaves on the module, as JSON in `kperf.layouts`, a pair for each load, store,
    copy and atomic, inner operations first: its name, and the layout of its tensor as
    a `#ttg.linear`, or an empty text where it has none. Changes nothing else;
    `kperf-plan-buffer` removes the list.

    After:
    ```mlir
    module attributes {kperf.layouts = "[[\"tt.load\",\"#ttg.linear<...>\"]]"} {
    ```
  }];
}

def ListOperations : Pass<"kperf-list-operations", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createListOperations({})";
  let summary = "List the operations of a kernel for a callback";
  let description = [{
    Leaves on the module, as JSON in `kperf.operations`, what `kperfir.passes`
    shows a callback of each operation of the kernel, in the order of the text:
    name, kind (what `kperf-insert-regions` would call it), source place, parent,
    loops around it, partition, results, operands, attributes. Changes nothing
    else.

    After:
    ```mlir
    module attributes {kperf.operations = "..."} {
    ```
  }];
}

def InsertAt : Pass<"kperf-insert-at", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createInsertAt({})";
  let summary = "Put records where a callback asked for them";
  let description = [{
    Numbers are those of the operations in `kperf-list-operations`, which this
    pass removes; names are escaped as in URLs.

    Options:
    * `regions` (default none): `first:last:kind:name`, separated by `|`. Of
      regions around the same operations, the first is the outermost.
    * `marks` (default none): `operation:before|after:name[:value]`, separated by
      `|`. A value is `result:<operation>:<n>`, `argument:<operation>:<n>` (0 is
      a loop's variable) or `parameter:<n>`.

    Before, with `regions=0:0:user:mine marks=1:before:n:parameter:1`:
    ```mlir
    tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
      %x = tt.load %p : !tt.ptr<f32>
      tt.return
    }
    ```
    After:
    ```mlir
    tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
      kperf.record start "mine" of "tt.load"
      %x = tt.load %p : !tt.ptr<f32>
      kperf.record end "mine"
      kperf.mark "n"(%n : i32)
      tt.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def InsertFrames : Pass<"kperf-insert-frames", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createInsertFrames({})";
  let summary = "Put stamps and frames where a callback chose them";
  let description = [{
    For those who choose which events share a stamp and which stamps a frame:
    records with a `kperf.stamp`, the numbers of their frame and of their stamp
    in it, from which `kperf-assign-frames` makes just these. A frame ends early
    where something else records between its stamps. Operations and values are
    named as for `kperf-insert-at`.

    Options:
    * `regions` (default none): `kind:name`, separated by `|`; numbered from 0.
    * `frames` (default none): separated by `|`; the stamps of a frame by `;`,
      each `operation:before|after:events`; events by `+`, each
      `start|end|mark.region[@value]`.

    Before, with `regions=load:mine frames=0:before:start.0;0:after:end.0`:
    ```mlir
    tt.func public @k(%p: !tt.ptr<f32>) {
      %x = tt.load %p : !tt.ptr<f32>
      tt.return
    }
    ```
    After:
    ```mlir
    tt.func public @k(%p: !tt.ptr<f32>) {
      kperf.record start "mine" kind load of "tt.load" {kperf.stamp = array<i32: 0, 0>}
      %x = tt.load %p : !tt.ptr<f32>
      kperf.record end "mine" kind load {kperf.stamp = array<i32: 0, 1>}
      tt.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def RunPolicy : Pass<"kperf-run-policy", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createRunPolicy({})";
  let summary = "Let a policy of another library put records into a kernel";
  let description = [{
    Loads a shared library that was built with `kperfir/include/kperfir/Policy.h`
    and calls one of its policies, which inserts `kperf.record` and `kperf.mark`
    where it likes. A library that was built for another version of that header
    or another Triton is refused.

    Options:
    * `library`: path of the shared library, escaped as in URLs.
    * `policy`: name of the policy in it.
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def InsertRegions : Pass<"kperf-insert-regions", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createInsertRegions({})";
  let summary = "Put records around the operations of a kernel";
  let description = [{
    Runs on TTGIR, while loops are still `scf.for`. Records the kernel, its
    loops and their iterations, and each operation that takes part in moving
    data, computing on tiles or waiting. A run of waits, and a copy with the
    commit that follows it, is one region; so are neighbours of one kind among
    local_load, local_store, convert_layout and compute. What lowers to no instruction is left
    alone.

    A region is named after its kind and source line (`load mm.py:12`); a name
    that is taken gets a number (`load mm.py:12#2`). Lines come from Triton's
    locations; of a call into Triton's own library, the caller's.

    The warps of a partition of a warp-specialised kernel get the kernel's
    region too: it spans what the partition does.

    What comes before the first loop of a kernel, a partition or an iteration is
    a `prologue`, what comes after the last one an `epilogue`, where they record
    anything. A function that is not inlined is one region of kind `call`, and a
    note in the layout says so.

    Options:
    * `regions` (default `auto`): what to record, comma separated: kinds, and
      policies, which are sets of kinds. `minimal`: kernel, loop, prologue,
      epilogue, user, mark. `memory`: these and iteration, load, store,
      async_copy, async_wait, tma, mbarrier_wait, local_load, local_store,
      atomic. `mma`: `minimal` and iteration, dot, wgmma, wgmma_wait, tcgen05,
      async_wait, mbarrier_wait. `sync`: `minimal` and iteration, async_wait,
      wgmma_wait, mbarrier_wait, barrier, atomic. `auto`: all kinds but compute.
      `full`: all kinds; compute is arithmetic on tensors, which the compiler
      may move across a record. All but `minimal` have between, too: see
      `kperf-fill-gaps`.
    * `budget` (default 0, any number): records per iteration of a loop, not
      counting those of loops in it. Kinds are left out of the loop until it
      keeps to the budget: compute, convert_layout, local_store, local_load,
      barrier, reduce, scan, call, atomic, store, async_copy, tma, load,
      tcgen05, wgmma, dot, async_wait, wgmma_wait, mbarrier_wait, in this order.
      A note in the layout says which.

    Before:
    ```mlir
    tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
      scf.for %i = %c0 to %n step %c1 : i32 {
        %x = tt.load %p : !tt.ptr<f32>
      }
      tt.return
    }
    ```
    After:
    ```mlir
    tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
      kperf.record start "k" kind kernel of "tt.func"
      kperf.record start "loop k.py:3" kind loop of "scf.for"
      scf.for %i = %c0 to %n step %c1 : i32 {
        kperf.record start "iteration k.py:3" kind iteration of "scf.for"
        kperf.record start "load k.py:4" kind load of "tt.load"
        %x = tt.load %p : !tt.ptr<f32>
        kperf.record end "load k.py:4" kind load
      }
      kperf.record end "loop k.py:3" kind loop
      kperf.record end "k" kind kernel
      tt.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def VerifyBalance : Pass<"kperf-verify-balance", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createVerifyBalance({})";
  let summary = "Check that regions nest on every path";
  let description = [{
    Follows every path of the kernel and reports an end without a start, a start
    without an end, regions that overlap, and paths that meet with different
    regions open. Changes nothing.

    ```mlir
    kperf.record start "a"
    scf.if %c {
      kperf.record end "a"   // error: ends region "a" on some paths only
    }
    ```
  }];
}

def FillGaps : Pass<"kperf-fill-gaps", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createFillGaps({})";
  let summary = "Name what lies between two records";
  let description = [{
    Where the time between a record and the next one is in no region of an
    operation, but in one that holds others (kernel, loop, iteration, prologue,
    epilogue, user), makes it a region of its own. That takes no record: it
    begins with the time of the one record, and ends with that of the other,
    whichever that is on the path that control takes. So a gap reaches into
    branches and out of them, and ends where a loop or one of its iterations
    begins or ends; where those have no records, gaps around them are left out.
    What brings the values that a loop carries into place counts as arithmetic.

    The region is of kind `compute` if only arithmetic lies there, else
    `between`. Either may also be the wait for a value that is not there yet,
    such as a loaded one. It is named after the source line of which the most
    elements are computed. Where nothing lies that costs an instruction, and
    where a scope of the user's holds nothing else, nothing is added.

    Options:
    * `regions` (default `auto`): as for `kperf-insert-regions`; does nothing
      without the kind between, which all policies but `minimal` have.

    Before:
    ```mlir
    kperf.record start "iteration k.py:3" kind iteration of "scf.for"
    kperf.record start "load k.py:4" kind load of "tt.load"
    %x = tt.load %p : tensor<256x!tt.ptr<f32>>
    kperf.record end "load k.py:4" kind load
    %y = arith.addf %acc, %x : tensor<256xf32>
    scf.yield %y : tensor<256xf32>
    ```
    After:
    ```mlir
    kperf.record start "iteration k.py:3" kind iteration of "scf.for"
    kperf.record start "load k.py:4" kind load of "tt.load"
    %x = tt.load %p : tensor<256x!tt.ptr<f32>>
    kperf.record end "load k.py:4" kind load
    kperf.record gap "compute k.py:5" kind compute of "arith.addf"
    %y = arith.addf %acc, %x : tensor<256xf32>
    scf.yield %y : tensor<256xf32>
    ```
  }];
  let dependentDialects = ["::mlir::kperf::KPerfDialect"];
}

def AssignFrames : Pass<"kperf-assign-frames", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createAssignFrames({})";
  let summary = "Give regions ids, and records frames and slots";
  let description = [{
    Converts `kperf` to `kperf_gpu`. Records of one block with no operation
    between them that itself records form a frame. Records with nothing but
    constants, scalar arithmetic and views between them share one stamp: the end
    of one region is the start of the next.

    The regions and frames are left on the module as `kperf.regions` and
    `kperf.frames`, for `kperf-plan-buffer`.

    Options:
    * `max-slots` (default 64): a longer frame is cut in two, since the largest
      frame decides how much of the buffer's end stays unused.
    * `first-iteration`, `last-iteration`, `iteration-step` (default 0, 0, 1): of
      each `scf.for` with a constant step, iterations of these numbers are
      recorded; a last of 0 is no end. Frames inside open only in those; an
      iteration then ends where its code does.

    Before:
    ```mlir
    kperf.record start "load k.py:4" kind load of "tt.load"
    %x = tt.load %p : !tt.ptr<f32>
    kperf.record end "load k.py:4" kind load
    kperf.record start "store k.py:5" kind store of "tt.store"
    tt.store %q, %x : !tt.ptr<f32>
    kperf.record end "store k.py:5" kind store
    tt.return
    ```
    After:
    ```mlir
    kperf_gpu.init
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 3>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 3>
    %x = tt.load %p : !tt.ptr<f32>
    kperf_gpu.stamp %f[1] end 0, start 1 : !kperf_gpu.frame<0, 3>
    tt.store %q, %x : !tt.ptr<f32>
    kperf_gpu.stamp %f[2] end 1 : !kperf_gpu.frame<0, 3>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 3>
    kperf_gpu.finalize
    tt.return
    ```
  }];
  let dependentDialects = ["::mlir::kperf_gpu::KPerfGPUDialect"];
}

def PlanBuffer : Pass<"kperf-plan-buffer", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createPlanBuffer({})";
  let summary = "Size the profile buffer, place it and fix its layout";
  let description = [{
    Runs after Triton has allocated shared memory (`ttg.shared`). Decides how
    many words each warp may keep and where they are while the kernel runs:
    behind the kernel's own shared memory, never past what the target has, or
    directly in global memory. Allocates the CTA's share of the profile buffer
    and leaves on the module `kperf.layout`, the JSON that the decoder reads,
    and `kperf.plan`, which the lowering reads.

    Options:
    * `buffer-bytes` (default 0): bytes of records per CTA. 0 means 2048 for
      each warp, or two of the largest frames if that is more; with strategy
      flush 256 KiB, on AMD GPUs 1 MiB. A buffer asked for
      must hold one of the largest frames for each warp; with `saturate` one more,
      for what is not kept.
    * `words-per-warp` (default 0): instead of that, words of records of each
      warp, at least; in global memory if shared memory has no room for all. 0
      means that nothing is known.
    * `strategy` (default `saturate`): what is kept. `saturate`: the first
      records, `ring`: the last. `flush`: all, in global memory; each warp has two
      halves of a power of two of words, of which it fills one while the host
      takes the other. On AMD GPUs that is `saturate`. `aggregate`: none; each warp sums up the
      executions of each region, in 160 bytes, whatever `buffer-bytes` says. Not
      on AMD GPUs.
    * `buffer` (default `auto`): `shared`, `global`, or `auto`: shared, and
      global where shared memory has no room for two of the largest frames.
    * `batch` (default 1): words of a frame that one instruction stores: 1, 2 or 4;
      a tag that comes first is always stored with a clock.
      Clocks wait in registers for it, and frames are padded to a multiple. On
      AMD GPUs it is always 1.
    * `sample-ctas` (default 1): record every n-th CTA only.
    * `first-cta`, `last-cta` (default 0): record CTAs from the first up to but
      without the last, by linear id; a last of 0 is no end.
    * `first-sm`, `last-sm` (default 0): the same for SMs.
    * `warps` (default all): the warps that record, comma separated.
    * `granularity` (default `warp`): `warp`: all of these; `warp-group`: the
      first of each four of a role; `cta`: the first of each role.
    * `shared-limit-bytes` (default 0): shared memory of a CTA; 0 means the
      target's.

    Before:
    ```mlir
    module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 100 : i32,
                       kperf.regions = [...], kperf.frames = [...]} {
      tt.func public @k() {
        kperf_gpu.init
        // ...
        kperf_gpu.finalize
        tt.return
      }
    }
    ```
    After:
    ```mlir
    module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 8368 : i32,
                       kperf.layout = "{\22buffer\22:\22shared\22,...}",
                       kperf.plan = {offset = 112 : i32, ...}} {
      tt.func public @k() {
        %s = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 8320 : i32,
                                       third_party_allocation} : !tt.ptr<i8>
        kperf_gpu.init(%s : !tt.ptr<i8>)
        // ...
        kperf_gpu.finalize(%s : !tt.ptr<i8>)
        tt.return
      }
    }
    ```
  }];
}

def ConvertKPerfGPUToLLVM
    : Pass<"convert-kperf-gpu-to-llvm", "::mlir::ModuleOp"> {
  let constructor = "::mlir::kperf::createConvertKPerfGPUToLLVM({})";
  let summary = "Lower frames and stamps to the LLVM dialect";
  let description = [{
    Runs when the kernel is in the LLVM dialect but `ttg.warp_specialize` is not
    lowered yet, so that each region is still a control-flow graph of its own.
    Threads each warp's cursor and record count through that graph as block
    arguments; LLVM removes those that are not needed. A stamp becomes one
    volatile inline assembly: read the clock, store it if the frame fits. Where
    executions are summed up, it is one for the clock and one for each event.

    Option `target` (default `nvidia`): `nvidia` or `amd`.

    Before:
    ```mlir
    ^bb1:
      %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
      kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 1>
      kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
      llvm.br ^bb2
    ```
    After:
    ```mlir
    ^bb1(%cursor: i32, %records: i32):
      %now = llvm.inline_asm has_side_effects "mov.u32 $0, %clock;", "=r,~{memory}"
      llvm.inline_asm has_side_effects "@$1 st.shared.v2.b32 [$0+0], {$2, $3};",
        "r,b,r,r,~{memory}" %cursor, %first_lane, %tag, %now
      %past = llvm.add %cursor, %c8 : i32
      %next = llvm.intr.umin(%past, %limit)
      %count = llvm.add %records, %c1 : i32
      llvm.br ^bb2(%next, %count : i32, i32)
    ```
    With strategy flush one assembly more follows: the cursor of the next frame,
    which is `%next` while another frame fits the half that it is in; behind a
    branch, where a lap ends, the handshake with the host.
  }];
}
