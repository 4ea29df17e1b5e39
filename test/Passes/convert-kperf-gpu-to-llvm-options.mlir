// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm --split-input-file | filecheck %s

// A ring in global memory, of every third CTA.
// The CTA's number modulo 3 decides whether it is recorded at all.
// CHECK-LABEL: llvm.func @ring
// CHECK: llvm.urem
// Nothing is in shared memory. Where the first frame begins is known; in the loop
// the cursor is an offset from the segment's base.
// CHECK-NOT: st.shared
// CHECK: st.global.b32 [$0+0], $2;
// CHECK: ^bb1(%[[CURSOR:.*]]: i32, %
// CHECK: %[[WIDE:.*]] = llvm.zext %[[CURSOR]]
// CHECK: %[[ADDRESS:.*]] = llvm.add %{{.*}}, %[[WIDE]] : i64
// CHECK: st.global.b32 [$0+0], $2;{{.*}}"l,b,r,~{memory}" %[[ADDRESS]]
// Where the next frame would not fit, the lap ends: noted in the header, and the
// cursor starts again at 0.
// CHECK: %[[LAPPED:.*]] = llvm.icmp "sgt"
// CHECK: ld.global.b32 laps, [$0+12];{{.*}}st.global.b32 [$0+12], laps;{{.*}}st.global.b32 [$0+8], $2;
// CHECK: llvm.select %[[LAPPED]]
// CHECK-NOT: ld.shared
// CHECK: llvm.return
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 1 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 1 : i32, sample_ctas = 3 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.func @ring(%s: !llvm.ptr<1>, %c: i1) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %e = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %e[0] mark 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %e : !kperf_gpu.frame<0, 1>
    llvm.br ^loop
  ^loop:
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
    llvm.cond_br %c, ^loop, ^exit
  ^exit:
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// A frame of an iteration that may be left out: then it is not stored, and
// neither the cursor nor the count of records moves.
// CHECK: llvm.func @left_out(%{{.*}}, %[[WHEN:.*]]: i1)
// CHECK: %[[STORED:.*]] = llvm.and %{{.*}}, %[[WHEN]] : i1
// CHECK: st.shared{{.*}} %{{.*}}, %[[STORED]]
// CHECK: llvm.select %[[WHEN]]
// CHECK: llvm.select %[[WHEN]]
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @left_out(%s: !llvm.ptr<1>, %when: i1) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame when %when : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// The same in a ring.
// CHECK: llvm.func @left_out(%{{.*}}, %[[WHEN:.*]]: i1)
// CHECK: %[[STORED:.*]] = llvm.and %{{.*}}, %[[WHEN]] : i1
// CHECK: st.shared{{.*}} %{{.*}}, %[[STORED]]
// CHECK: llvm.select %[[WHEN]]
// CHECK: llvm.select %[[WHEN]]
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 1 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @left_out(%s: !llvm.ptr<1>, %when: i1) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame when %when : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
