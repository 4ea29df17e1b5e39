// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm | filecheck %s

// Halves of 64 words. The header's other words are the host's.
// CHECK: "@$1 st.global.v2.b32 [$0+0], {$2, $3}; // kperf"
// Until paths meet it is known that the first frames fit.
// CHECK-NOT: goes_on
// CHECK: kperf stamp 0.0
// CHECK: ^[[LOOP:bb[0-9]+]]
// At the end of a frame of two words it is seen whether another one fits: up to
// 4 * (64 - 2 - 2) bytes of a half. All that is rare is behind a branch.
// CHECK: %[[HALF:.*]] = llvm.mlir.constant(256 : i32)
// CHECK-DAG: %[[MASK:.*]] = llvm.mlir.constant(255 : i32)
// CHECK-DAG: %[[LIMIT:.*]] = llvm.mlir.constant(240 : i32)
// CHECK-DAG: %[[TRAILER:.*]] = llvm.mlir.constant(248 : i32)
// CHECK-DAG: %[[BOTH:.*]] = llvm.mlir.constant(512 : i32)
// CHECK: %[[NEXT:.*]] = llvm.inline_asm has_side_effects "{
// CHECK-SAME: and.b32 used, $1, $4; // kperf
// CHECK-SAME: setp.le.u32 p, used, $5; // kperf\0A\09@p bra goes_on; // kperf
// The lap is handed over when all its records are there, and the other half
// written to only when the host has answered.
// CHECK-SAME: st.release.sys.global.b32 [entry], lap; // kperf
// CHECK-SAME: ld.acquire.sys.global.b32 word, [entry+4]; // kperf
// CHECK-SAME: nanosleep.u32
// CHECK-SAME: goes_on:\0A\09}", "=&r,r,l,n,n,n,n,n,~{memory}" %{{.*}}, %{{.*}}, %[[HALF]], %[[MASK]], %[[LIMIT]], %[[TRAILER]], %[[BOTH]] :
// CHECK: llvm.return
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {flush = 1 : i32, global = 1 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 128 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @k(%s: !llvm.ptr<1>, %c: i1) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %e = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %e[0] start 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %e : !kperf_gpu.frame<0, 1>
    llvm.br ^body
  ^body:
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<1, 1>
    kperf_gpu.stamp %f[0] start 1 : !kperf_gpu.frame<1, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<1, 1>
    llvm.cond_br %c, ^body, ^exit
  ^exit:
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
