// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm | filecheck %s
// RUN: kperfir opt %s --pass "convert-kperf-gpu-to-llvm{target=amd}" | filecheck %s --check-prefix AMD

// The tag and a stamp, then an f32 in word 2 and an i64 in words 3 and 4, the low
// one first; one word of nothing, the cursor 24 bytes further.
// CHECK: %[[FILL:.*]] = llvm.mlir.undef
// CHECK: "@$1 st.shared.v2.b32 [$0+0]
// CHECK: %[[BITS:.*]] = llvm.bitcast %{{.*}} : f32 to i32
// CHECK: "@$1 st.shared.b32 [$0+8], $2; // kperf"{{.*}}%[[BITS]]
// CHECK: %[[LOW:.*]] = llvm.trunc %[[WIDE:.*]] : i64 to i32
// CHECK: "@$1 st.shared.b32 [$0+12], $2; // kperf"{{.*}}%[[LOW]]
// CHECK: %[[SHIFTED:.*]] = llvm.lshr %[[WIDE]]
// CHECK: %[[HIGH:.*]] = llvm.trunc %[[SHIFTED]]
// CHECK: "@$1 st.shared.v2.b32 [$0+16], {$2, $3}; // kperf"{{.*}}%[[HIGH]], %[[FILL]]
// CHECK: llvm.mlir.constant(24 : i32)
// Clocks are read late there.
// AMD: ds_write_b32 $0, $1 offset:8
// AMD: ds_write_b32 $0, $1 offset:12
// AMD: ds_write_b32 $0, $1 offset:16
// AMD: ds_write_b32 $0, $1 offset:0
// AMD: ds_write_b32 $0, $1 offset:4
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {frame_align = 2 : i32, global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 6 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @k(%s: !llvm.ptr<1>, %x: f32, %l: i64) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.stamp %f[0] mark 0, mark 1 : !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.store_value %f[0], %x : f32 in !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.store_value %f[1], %l : i64 in !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
