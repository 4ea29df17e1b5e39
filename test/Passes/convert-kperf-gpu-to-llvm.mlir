// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm --split-input-file | filecheck %s

// One block: the segment of a warp is at 112 + warp * 288 (68 words, and 4 for
// zeros), lane 0 stores, and the cursor stops 240 bytes behind the header's 16,
// that is at (64 words - 4) * 4. The frame moves it by 16.
// CHECK-LABEL: llvm.func @one_block
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// Records are taken whether the CTA has room or not.
// CHECK-NOT: llvm.ptrtoint %arg0
// CHECK: llvm.mlir.addressof @global_smem
// CHECK: llvm.mlir.constant(112 : i32)
// CHECK: %[[WARP:.*]] = llvm.lshr %[[TID]]
// CHECK: llvm.mlir.constant(288 : i32)
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq"
// CHECK: %[[LEADER:.*]] = llvm.icmp "eq" %[[TID]]
// CHECK: %[[DATA:.*]] = llvm.add
// CHECK: %[[OWNER:.*]] = llvm.and %[[FIRST]]
// CHECK: llvm.mlir.constant(240 : i32)
// Nothing is cleared. The start anchor, in the first thread, is kept behind the
// segments: 4 * 288.
// CHECK-NOT: @$1 st.shared.v4
// CHECK: %clock64{{.*}}%globaltimer{{.*}}@$1 st.shared.b64 [$0+1152], clock;{{.*}}st.shared.b64 [$0+1160], timer;{{.*}} %{{.*}}, %[[LEADER]]
// The tag of frame 7, 0x4B500007, goes with the first clock. What fills the
// frame up goes with the last, and is nothing.
// CHECK: %[[FILL:.*]] = llvm.mlir.undef
// CHECK: %[[TAG:.*]] = llvm.mlir.constant(1263534087 : i32)
// CHECK: %[[C0:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 7.0"
// CHECK-NEXT: "@$1 st.shared.v2.b32 [$0+0], {$2, $3}; // kperf", "r,b,r,r,~{memory}" %[[DATA]], %[[OWNER]], %[[TAG]], %[[C0]]
// CHECK: %[[C1:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // kperf stamp 7.1"
// CHECK-NEXT: "@$1 st.shared.v2.b32 [$0+8], {$2, $3}; // kperf"{{.*}} %[[DATA]], %[[OWNER]], %[[C1]], %[[FILL]]
// Where it begins is known, so nothing is compared.
// CHECK: llvm.mlir.constant(16 : i32)
// CHECK-NEXT: %[[END:.*]] = llvm.add %[[DATA]]
// No barrier of the CTA: only the warp's lanes are waited for.
// CHECK-NOT: bar.sync
// CHECK-NOT: nvvm.barrier
// All lanes learn where lane 0 ended. The header, then zeros up to 16 bytes; the
// segment is found anew.
// CHECK: %[[ENDS:.*]] = llvm.inline_asm {{.*}}"shfl.sync.idx.b32 {{.*}} %[[END]] : (i32)
// CHECK: "mov.b32 $0, $1; // kperf", "=r,r" %[[TID]]
// CHECK: "@$1 st.shared.v4.b32 [$0+0], {$2, $3, $4, $5}; // kperf", "r,b,r,r,r,r,~{memory}" %{{[0-9]+}}, %[[LANE0:[0-9]+]], %
// CHECK-COUNT-3: "@$1 st.shared.b32 [$0+{{[0-9]+}}], $2; // kperf", "r,b,r,~{memory}" %[[END]], %[[LANE0]]
// CHECK: bar.warp.sync 0xffffffff
// CHECK-NOT: bar.sync
// CHECK: ld.shared.v4.b32 {$0, $1, $2, $3}, [$4+1152]{{.*}} %{{.*}}, %[[THREAD0:[0-9]+]] :
// CHECK: %[[INSIDE:.*]] = llvm.icmp "ult" %{{.*}}, %[[ENDS]]
// CHECK: ld.shared.v4.b32 {{.*}} %{{.*}}, %[[INSIDE]]
// Copied is what a CTA with room has: its index is less than 2^(code - 1).
// CHECK: %[[ROOM:.*]] = llvm.icmp "ult"
// CHECK: %[[WRITTEN:.*]] = llvm.and %[[THREAD0]], %[[ROOM]]
// CHECK: "@$1 st.global.v2.b32 [$0+16]{{.*}} %{{.*}}, %[[WRITTEN]]
// CHECK: %clock64{{.*}}%globaltimer{{.*}}@$1 st.global.b64 [$0+40], clock;{{.*}}st.global.b64 [$0+48], timer;{{.*}} %{{.*}}, %[[WRITTEN]]
// CHECK: llvm.mlir.constant(1263552049 : i32)
// CHECK: "@$1 st.global.v4.b32 [$0+0]
// CHECK: "@$1 st.global.v2.b32 [$0+24]
// CHECK: "@$1 st.global.v2.b32 [$0+32]
// The copy, 16 bytes per lane, in a loop that stays one.
// CHECK: "@$1 st.global.v4.b32 [$0+64]
// CHECK: "@$5 ld.shared.v4.b32
// CHECK: llvm.cond_br {{.*}}loop_annotation
// CHECK: llvm.return
// CHECK-NOT: kperf_gpu
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {frame_align = 2 : i32, global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 4 : i32, offset = 112 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @one_block(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<7, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<7, 2>
    kperf_gpu.stamp %f[1] end 0 : !kperf_gpu.frame<7, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<7, 2>
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// Every block but the entry gets the cursor and the count, behind the arguments
// it has; every branch passes them on, a switch to each of its cases.
// CHECK-LABEL: llvm.func @control_flow
// CHECK: llvm.br ^[[LOOP:bb[0-9]+]](%{{.*}}, %{{.*}}, %{{.*}} : i32, i32, i32)
// CHECK: ^[[LOOP]](%{{.*}}: i32, %[[C1:.*]]: i32, %[[R1:.*]]: i32):
// CHECK: st.shared{{.*}} %[[C1]]
// CHECK: %[[COUNT:.*]] = llvm.add %[[R1]]
// CHECK: %[[MOVED:.*]] = llvm.add %[[C1]]
// CHECK: %[[NEXT:.*]] = llvm.intr.umin(%[[MOVED]], %
// CHECK: llvm.cond_br %{{.*}}, ^[[LOOP]](%{{.*}}, %[[NEXT]], %[[COUNT]] : i32, i32, i32), ^[[EXIT:bb[0-9]+]](%[[NEXT]], %[[COUNT]] : i32, i32)
// CHECK: ^[[EXIT]](%[[C2:.*]]: i32, %[[R2:.*]]: i32):
// CHECK: llvm.switch %{{.*}} : i32, ^[[ONE:bb[0-9]+]](%[[C2]], %[[R2]] : i32, i32) [
// CHECK-NEXT: 1: ^[[ONE]](%[[C2]], %[[R2]] : i32, i32),
// CHECK-NEXT: 2: ^{{bb[0-9]+}}(%{{.*}}, %[[C2]], %[[R2]] : i32, i32, i32)
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {frame_align = 2 : i32, global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @control_flow(%s: !llvm.ptr<1>, %n: i32, %c: i1) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    llvm.br ^loop(%n : i32)
  ^loop(%i: i32):
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
    llvm.cond_br %c, ^loop(%i : i32), ^exit
  ^exit:
    llvm.switch %n : i32, ^one [
      1: ^one,
      2: ^two(%n : i32)
    ]
  ^one:
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  ^two(%m: i32):
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// Each region of a warp-specialised kernel is on its own: it finds its segment,
// takes the state from the header and leaves it there. The kernel's own warps
// clear all headers before, and copy all segments after: 4 + 4 warps.
// CHECK-LABEL: llvm.func @partitions
// CHECK-COUNT-2: "@$1 st.shared.v4.b32 [$0+0], {$2, $3, $4, $5}; // kperf"
// CHECK: ttg.warp_specialize
// CHECK: partition0
// CHECK: nvvm.read.ptx.sreg.tid.x
// A cursor of -1 says that the CTA is not recorded.
// CHECK: %[[CURSOR:.*]] = llvm.inline_asm {{.*}}"ld.shared.b32 $0, [$1+0]; // kperf"
// CHECK: %[[SAMPLED:.*]] = llvm.icmp "sge" %[[CURSOR]]
// CHECK: "mov.b32 $0, 0; // kperf\0A\09@$2 ld.shared.b32 $0, [$1+0]; // kperf", {{.*}}, %[[SAMPLED]]
// CHECK: "mov.b32 $0, 0; // kperf\0A\09@$2 ld.shared.b32 $0, [$1+4]; // kperf", {{.*}}, %[[SAMPLED]]
// CHECK: %clock;
// CHECK: "@$1 st.shared.v2.b32 [$0+0], {$2, $3}; // kperf"
// CHECK: ttg.warp_return
// CHECK: bar.warp.sync
// CHECK-NOT: bar.sync
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {frame_align = 2 : i32, global = 0 : i32, hands_over = 1 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 8 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @partitions(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 4>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(4) {
      kperf_gpu.attach
      %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
      kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1>
      kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
      kperf_gpu.detach
      ttg.warp_return
    } : () -> ()
    kperf_gpu.finalize(%s : !llvm.ptr<1>)
    llvm.return
  }
}
