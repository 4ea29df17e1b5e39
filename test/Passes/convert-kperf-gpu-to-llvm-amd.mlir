// RUN: kperfir opt %s --pass "convert-kperf-gpu-to-llvm{target=amd}" --split-input-file | filecheck %s

// CDNA: waves of 64. A frame that is not lane 0's goes to an address outside of LDS, decided once for all of its stores. Clocks are stored
// when the frame is closed: waiting for each would drain LDS accesses.
// CHECK-LABEL: llvm.func @stamp
// CHECK: rocdl.workitem.id.x
// CHECK: llvm.mlir.constant(6 : i32)
// CHECK: "llvm.amdgcn.s.memrealtime"
// The start anchor, then the tag.
// CHECK: ds_write_b32 $0, $1 offset:1164
// CHECK: %[[PLACE:.*]] = llvm.select
// CHECK-NEXT: llvm.mlir.constant(1263534080 : i32)
// CHECK-NEXT: "ds_write_b32 $0, $1 offset:0", "v,v,~{memory}" %[[PLACE]]
// CHECK-NEXT: %[[FIRST:.*]] = llvm.call_intrinsic "llvm.amdgcn.s.memtime"()
// CHECK-NEXT: %[[SECOND:.*]] = llvm.call_intrinsic "llvm.amdgcn.s.memtime"()
// CHECK-NEXT: %[[LOW:.*]] = llvm.trunc %[[FIRST]]
// CHECK-NEXT: "ds_write_b32 $0, $1 offset:4", "v,v,~{memory}" %[[PLACE]], %[[LOW]]
// CHECK-NEXT: llvm.trunc %[[SECOND]]
// CHECK-NEXT: "ds_write_b32 $0, $1 offset:8", "v,v,~{memory}" %[[PLACE]]
// CHECK-NOT: s_barrier
// CHECK: llvm.return
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @stamp(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[1] end 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// RDNA 3: waves of 32, no cycle counter that is long enough, other names.
// CHECK-LABEL: llvm.func @stamp
// CHECK: llvm.mlir.constant(5 : i32)
// CHECK: hwreg(HW_REG_HW_ID1, 10, 11)
// CHECK: off offset:20
// CHECK: %[[MASK:.*]] = llvm.call_intrinsic "llvm.amdgcn.ballot.i32"
// CHECK: off offset:0{{.*}} %[[MASK]]
// CHECK: llvm.call_intrinsic "llvm.readsteadycounter"()
// CHECK: "s_mov_b32 $0, exec_lo\0A\09s_and_b32 exec_lo, exec_lo, $1\0A\09global_store_b32 $2, $3, off offset:4\0A\09s_mov_b32 exec_lo, $0"{{.*}} %[[MASK]]
// CHECK: llvm.return
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1100", kperf.plan = {global = 1 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @stamp(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[1] end 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// RDNA 4: a 32-bit counter that is read at once, so it is stored at once.
// CHECK-LABEL: llvm.func @stamp
// CHECK: %[[NOW:.*]] = llvm.inline_asm has_side_effects {{.*}}"s_getreg_b32 $0, hwreg(HW_REG_SHADER_CYCLES_LO)"
// CHECK-NEXT: "ds_store_b32 $0, $1 offset:4", "v,v,~{memory}" %{{.*}}, %[[NOW]]
// CHECK: SHADER_CYCLES_LO
// CHECK-NEXT: "ds_store_b32 $0, $1 offset:8"
// CHECK: s_wait_dscnt
// CHECK: llvm.return
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1201", kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @stamp(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[1] end 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// Every second CTA: the size of the grid comes from the arguments that the
// runtime adds, behind those of the kernel.
// CHECK-LABEL: llvm.func @sampled
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.amdgcn.implicitarg.ptr"() : () -> !llvm.ptr<4>
// CHECK: llvm.urem
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 2 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @sampled(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
