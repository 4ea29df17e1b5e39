// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm | filecheck %s
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{batch=3}" 2>&1 | filecheck %s --check-prefix INVALID

// Four words at once: the frame is the tag, 0x4B500000, stamps in words 1 to 5,
// and an i64 in words 6 and 7. The value is known before the last stamps are.
// CHECK: %[[TAG:.*]] = llvm.mlir.constant(1263534080 : i32)
// CHECK: %[[C0:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 0.0"
// CHECK: %[[C1:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 0.1"
// CHECK: %[[LOW:.*]] = llvm.trunc
// CHECK: %[[HIGH:.*]] = llvm.trunc
// CHECK: %[[C2:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 0.2"
// CHECK-NEXT: "@$1 st.shared.v4.b32 [$0+0], {$2, $3, $4, $5}; // kperf", "r,b,r,r,r,r,~{memory}" %[[DATA:.*]], %[[FIRST:.*]], %[[TAG]], %[[C0]], %[[C1]], %[[C2]]
// CHECK: %[[C3:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 0.3"
// CHECK: %[[C4:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 0.4"
// CHECK: "@$1 st.shared.v4.b32 [$0+16], {$2, $3, $4, $5}; // kperf"{{.*}} %[[DATA]], %[[FIRST]], %[[C3]], %[[C4]], %[[LOW]], %[[HIGH]]
// A frame of one stamp and its tag is padded to four words. It begins 32 bytes
// behind the other.
// CHECK: %[[TAG1:.*]] = llvm.mlir.constant(1263534081 : i32)
// CHECK: %[[D0:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 1.0"
// CHECK: "@$1 st.shared.v4.b32 [$0+32], {$2, $3, $4, $5}; // kperf"{{.*}} %[[DATA]], %[[FIRST]], %[[TAG1]], %[[D0]], %
// CHECK: llvm.mlir.constant(48 : i32)
// INVALID: error: {{.*}}batch
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {batch = 4 : i32, frame_align = 4 : i32, global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 8 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @k(%s: !llvm.ptr<1>, %l: i64) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.stamp %f[1] start 1 : !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.store_value %f[0], %l : i64 in !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.stamp %f[2] mark 2 : !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.stamp %f[3] end 1 : !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.stamp %f[4] start 3 : !kperf_gpu.frame<0, 5, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 5, 2>
    %g = kperf_gpu.open_frame : !kperf_gpu.frame<1, 1>
    kperf_gpu.stamp %g[0] end 0 : !kperf_gpu.frame<1, 1>
    kperf_gpu.close_frame %g : !kperf_gpu.frame<1, 1>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
