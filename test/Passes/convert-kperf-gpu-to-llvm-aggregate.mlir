// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm --split-input-file | filecheck %s

// Region 0 is a loop, 1 its iterations, 2 a load in them: their sums are 0, 160
// and 320 bytes behind the header. All lanes clear the 120 words, 4 at once.
// CHECK-LABEL: llvm.func @loop
// CHECK: "@$1 st.shared.v4.b32 [$0+0]
// CHECK: bar.warp.sync
// The loop begins. No cursor is compared with a limit, and none is passed on:
// what the two arguments of blocks hold never changes.
// CHECK: mov.u32 $0, %clock; // kperf stamp 0.0
// CHECK: "{\0A\09@$1 st.shared.b32 [$0+4], $2; // kperf\0A\09}", "r,b,r,~{memory}"
// CHECK: ^[[LOOP:bb[0-9]+]](%{{.*}}: i32, %{{.*}}: i32):
// An iteration begins: the one before it ends, if there was one, and the clock
// is read again after that.
// CHECK: %[[NOW:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 1.0"
// CHECK: @$1 ld.shared.v4.b32 {open, begin, least, most}, [$0+160]; // kperf
// CHECK-SAME: setp.ne.and.u32 ends, open, 0, $1; // kperf
// CHECK-SAME: @ends ld.shared.v2.b64 {sum, squares}, [$0+176]; // kperf
// CHECK-SAME: @ends red.shared.add.u32 [bit+192], 1; // kperf
// CHECK-SAME: @ends st.shared.b32 [$0+160], 0; // kperf
// CHECK-SAME: %{{.*}}, %{{.*}}, %[[NOW]]
// CHECK: %[[LATER:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf", "=r,~{memory}"
// CHECK: st.shared.v2.b32 [$0+160], {open, $2}; // kperf{{.*}} %[[LATER]]
// CHECK: st.shared.b32 [$0+324], $2; // kperf{{.*}} %[[LATER]]
// The load ends; nothing is open but it, so nothing is asked.
// CHECK: mov.u32 $0, %clock; // kperf stamp 1.1
// CHECK: @$1 ld.shared.v4.b32 {open, begin, least, most}, [$0+320]; // kperf
// CHECK-NOT: setp
// CHECK-SAME: @$1 st.shared.v2.b32 [$0+328], {least, most}; // kperf
// CHECK-SAME: @$1 st.shared.v2.b64 [$0+336], {sum, squares}; // kperf
// The end of the loop ends the last iteration, then the loop.
// CHECK: mov.u32 $0, %clock; // kperf stamp 2.0
// CHECK: @$1 ld.shared.v4.b32 {open, begin, least, most}, [$0+160]; // kperf
// CHECK: @$1 ld.shared.v4.b32 {open, begin, least, most}, [$0+0]; // kperf
// A mark is counted, and its value is not kept.
// CHECK: @$1 st.shared.b32 [$0+488], -1; // kperf\0A\09@$1 red.shared.add.u32 [$0+512], 1; // kperf
// The warp's cursor is at the end of its sums: 160 words.
// CHECK: bar.warp.sync
// CHECK-NOT: kperf.regions
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {aggregate = 1 : i32, global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 112 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 160 : i32}, kperf.regions = [{kind = "loop", parent = -1 : i32}, {kind = "iteration", parent = 0 : i32}, {kind = "load", parent = 1 : i32}, {kind = "mark", parent = -1 : i32}]} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @loop(%s: !llvm.ptr<1>, %c: i1, %v: i32) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %a = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %a[0] start 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %a : !kperf_gpu.frame<0, 1>
    llvm.br ^body
  ^body:
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<1, 2>
    kperf_gpu.stamp %f[0] start 1, start 2 : !kperf_gpu.frame<1, 2>
    kperf_gpu.stamp %f[1] end 2 : !kperf_gpu.frame<1, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<1, 2>
    llvm.cond_br %c, ^body, ^exit
  ^exit:
    %e = kperf_gpu.open_frame : !kperf_gpu.frame<2, 1, 1>
    kperf_gpu.stamp %e[0] end 0, mark 3 : !kperf_gpu.frame<2, 1, 1>
    kperf_gpu.store_value %e[0], %v : i32 in !kperf_gpu.frame<2, 1, 1>
    kperf_gpu.close_frame %e : !kperf_gpu.frame<2, 1, 1>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// In global memory addresses are of 64 bits. Where iterations are left out they
// have an end, and a frame of one that is left out changes nothing.
// CHECK-LABEL: llvm.func @global
// CHECK: "@$1 st.global.v4.b32 [$0+0]
// CHECK: %[[ON:.*]] = llvm.and %{{.*}}, %arg1
// CHECK: @$1 st.global.b32 [$0+164], $2; // kperf{{.*}}"l,b,r,~{memory}" %{{.*}}, %[[ON]],
// CHECK: @$1 ld.global.v4.b32 {open, begin, least, most}, [$0+160]; // kperf
// CHECK-SAME: mad.wide.u32 wide, bit, 4, $0; // kperf
// CHECK-SAME: @$1 red.global.add.u32 [wide+192], 1; // kperf
// CHECK-SAME: "l,b,r,~{memory}" %{{.*}}, %[[ON]],
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {aggregate = 1 : i32, global = 1 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 80 : i32}, kperf.regions = [{kind = "loop", parent = -1 : i32}, {first = 0 : i32, kind = "iteration", last = 0 : i32, parent = 0 : i32, step = 2 : i32}]} {
  llvm.func @global(%s: !llvm.ptr<1>, %even: i1) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame when %even : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[0] start 1 : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[1] end 1 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
