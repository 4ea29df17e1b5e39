// RUN: kperfir opt %s --pass "convert-kperf-gpu-to-llvm{target=amd}" | filecheck %s

// Waves of 64. A frame that does not fit, or is not lane 0's, goes to an address
// outside of LDS, decided once for all of its stores.
// CHECK-LABEL: llvm.func @stamp
// CHECK: rocdl.workitem.id.x
// CHECK: llvm.mlir.constant(6 : i32)
// CHECK: s_memrealtime
// CHECK: llvm.icmp "sle"
// CHECK: %[[PLACE:.*]] = llvm.select
// CHECK: %[[CLOCK:.*]] = llvm.inline_asm has_side_effects{{.*}} "s_memtime $0\0A\09s_waitcnt lgkmcnt(0)", "=s,~{memory}"
// CHECK: %[[LOW:.*]] = llvm.trunc %[[CLOCK]]
// CHECK: "ds_write_b32 $0, $1 offset:0", "v,v,~{memory}" %[[PLACE]], %[[LOW]]
// CHECK: "ds_write_b32 $0, $1 offset:4", "v,v,~{memory}" %[[PLACE]]
// CHECK-NOT: s_barrier
// CHECK: llvm.return
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @stamp(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
