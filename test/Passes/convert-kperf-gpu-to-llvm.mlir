// RUN: kperfir opt %s --pass convert-kperf-gpu-to-llvm --split-input-file | filecheck %s

// One block: the segment of a warp is at 112 + warp * 272 (68 words), lane 0 may
// store while the cursor is at most 244 bytes behind the header's 16, that is
// (64 words - 3) * 4, and the frame moves it by 12.
// CHECK-LABEL: llvm.func @one_block
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[WARP:.*]] = llvm.lshr %[[TID]]
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq"
// CHECK: llvm.mlir.addressof @global_smem
// CHECK: llvm.mlir.constant(112 : i32)
// The CTA has room if its index is less than 2^(code - 1), of the address's low
// five bits; without them it is where the records go.
// CHECK: %[[ARGUMENT:.*]] = llvm.ptrtoint %arg0
// CHECK: %[[LOW:.*]] = llvm.trunc %[[ARGUMENT]]
// CHECK: %[[CODE:.*]] = llvm.and %[[LOW]]
// CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint
// CHECK: %[[SCRATCH:.*]] = llvm.sub %[[ADDRESS]]
// CHECK: %[[SHL:.*]] = llvm.shl %{{.*}}, %[[CODE]]
// CHECK: %[[ROOM:.*]] = llvm.lshr %[[SHL]]
// CHECK: %[[SAMPLED:.*]] = llvm.icmp "ult" %{{.*}}, %[[ROOM]]
// CHECK: llvm.mlir.constant(272 : i32)
// CHECK: %[[OWNER:.*]] = llvm.and %[[FIRST]], %[[SAMPLED]]
// CHECK: llvm.mlir.constant(244 : i32)
// CHECK: %[[LIMIT:.*]] = llvm.select %[[OWNER]], {{.*}} : i1, i32
// The header's four words are cleared, in lane 0.
// CHECK-COUNT-4: "@$1 st.shared.b32 [$0+{{[0-9]+}}], $2; // kperf", "r,b,r,~{memory}" %{{.*}}, %[[FIRST]]
// The start anchor, in the first thread.
// CHECK: llvm.cond_br
// CHECK: %clock64
// CHECK: %globaltimer
// CHECK: %smid
// CHECK: "st.global.b32 [$0+20], $1; // kperf", "l,r,~{memory}" %[[SCRATCH]]
// CHECK: "st.global.b64 [$0+24], $1; // kperf"
// CHECK: "st.global.b64 [$0+32], $1; // kperf"
// CHECK: %[[FITS:.*]] = llvm.icmp "sle" %[[CURSOR:.*]], %[[LIMIT]]
// CHECK: mov.u32 now, %clock; // kperf stamp 7.0{{.*}}@$1 st.shared.b32 [$0+0], now; // kperf{{.*}}"r,b,~{memory}" %[[CURSOR]], %[[FITS]]
// CHECK: st.shared.b32 [$0+4], now
// The tag of frame 7: 0x4B500007.
// CHECK: %[[TAG:.*]] = llvm.mlir.constant(1263534087 : i32)
// CHECK: "@$1 st.shared.b32 [$0+8], $2; // kperf", "r,b,r,~{memory}" %[[CURSOR]], %[[FITS]], %[[TAG]]
// CHECK: llvm.mlir.constant(12 : i32)
// CHECK: llvm.select %[[FITS]]
// No barrier of the CTA: only the warp's lanes are waited for.
// CHECK-NOT: bar.sync
// CHECK-NOT: nvvm.barrier
// CHECK: bar.warp.sync 0xffffffff
// CHECK-NOT: bar.sync
// The copy, word by word, and the end anchor; the magic word comes last.
// CHECK: llvm.cond_br %[[SAMPLED]]
// CHECK: "ld.shared.b32 $0, [$1+0]; // kperf"
// CHECK: "st.global.b32 [$0+0], $1; // kperf"
// CHECK: "st.global.b32 [$0+4], $1; // kperf"
// CHECK: "st.global.b64 [$0+40], $1; // kperf"
// CHECK: "st.global.b64 [$0+48], $1; // kperf"
// CHECK: llvm.mlir.constant(1263552049 : i32)
// CHECK: "st.global.b32 [$0+0], $1; // kperf"
// CHECK: llvm.return
// CHECK-NOT: kperf_gpu
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 3 : i32, offset = 112 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
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
// CHECK: llvm.icmp "sle" %[[C1]]
// CHECK: %[[COUNT:.*]] = llvm.add %[[R1]]
// CHECK: %[[NEXT:.*]] = llvm.select {{.*}}, %[[C1]]
// CHECK: llvm.cond_br %{{.*}}, ^[[LOOP]](%{{.*}}, %[[NEXT]], %[[COUNT]] : i32, i32, i32), ^[[EXIT:bb[0-9]+]](%[[NEXT]], %[[COUNT]] : i32, i32)
// CHECK: ^[[EXIT]](%[[C2:.*]]: i32, %[[R2:.*]]: i32):
// CHECK: llvm.switch %{{.*}} : i32, ^[[ONE:bb[0-9]+]](%[[C2]], %[[R2]] : i32, i32) [
// CHECK-NEXT: 1: ^[[ONE]](%[[C2]], %[[R2]] : i32, i32),
// CHECK-NEXT: 2: ^{{bb[0-9]+}}(%{{.*}}, %[[C2]], %[[R2]] : i32, i32, i32)
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
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
// CHECK-COUNT-8: "@$1 st.shared.b32 [$0+{{[0-9]+}}], $2; // kperf"
// CHECK: ttg.warp_specialize
// CHECK: partition0
// CHECK: nvvm.read.ptx.sreg.tid.x
// A cursor of -1 says that the CTA is not recorded.
// CHECK: %[[CURSOR:.*]] = llvm.inline_asm {{.*}}"ld.shared.b32 $0, [$1+0]; // kperf"
// CHECK: %[[SAMPLED:.*]] = llvm.icmp "sge" %[[CURSOR]]
// CHECK: "mov.b32 $0, 0; // kperf\0A\09@$2 ld.shared.b32 $0, [$1+0]; // kperf", {{.*}}, %[[SAMPLED]]
// CHECK: "mov.b32 $0, 0; // kperf\0A\09@$2 ld.shared.b32 $0, [$1+4]; // kperf", {{.*}}, %[[SAMPLED]]
// CHECK: mov.u32 now, %clock;
// CHECK: "@$1 st.shared.b32 [$0+0], $2; // kperf"
// CHECK: "@$1 st.shared.b32 [$0+4], $2; // kperf"
// CHECK: ttg.warp_return
// CHECK: bar.warp.sync
// CHECK-NOT: bar.sync
module attributes {"ttg.num-warps" = 4 : i32, kperf.plan = {global = 0 : i32, hands_over = 1 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 8 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
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
