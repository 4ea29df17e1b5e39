// RUN: kperfir opt %s --pass kperf-plan-buffer --split-input-file | filecheck %s
// RUN: kperfir opt %s --pass "kperf-plan-buffer{buffer-bytes=1024 strategy=ring}" --split-input-file | filecheck %s --check-prefix RING
// RUN: kperfir opt %s --pass "kperf-plan-buffer{buffer=global}" --split-input-file | filecheck %s --check-prefix GLOBAL
// RUN: kperfir opt %s --pass "kperf-plan-buffer{shared-limit-bytes=300}" --split-input-file | filecheck %s --check-prefix SMALL
// RUN: kperfir opt %s --pass "kperf-plan-buffer{words-per-warp=600}" --split-input-file | filecheck %s --check-prefix WORDS
// RUN: kperfir opt %s --pass "kperf-plan-buffer{words-per-warp=600 shared-limit-bytes=8192}" --split-input-file | filecheck %s --check-prefix WORDS-OUTSIDE

// Four warps get 2048 bytes each, so 512 words, a header of 4 words, and 16
// bytes for zeros. The kernel's 100 bytes of shared memory are followed by ours
// at 112, behind which is the start anchor: 112 + 4 * 2080 + 16 = 8448. In global
// memory there are 64 bytes for the CTA's header and no zeros.
// CHECK: kperf.layout = "{\22buffer\22:\22shared\22,\22cta_bytes\22:8320,\22frame_align\22:2,\22frames\22:[{\22id\22:0,\22stamps\22:{{\[\[\[}}\22start\22,0]],{{\[\[}}\22end\22,0],[\22mark\22,1]]]}],\22hash\22:{{[0-9]+}},\22kernel\22:\22k\22,\22max_frame_words\22:4,\22regions\22:
// CHECK-SAME: \22roles\22:[{\22first_warp\22:0,\22name\22:\22default\22,\22warps\22:4}],\22strategy\22:\22saturate\22,\22tag\22:\22first\22,\22target\22:\22cuda:80\22,\22total_warps\22:4,\22version\22:7,\22warp_size\22:32,\22words_per_warp\22:512}"
// CHECK-SAME: offset = 112 : i32
// CHECK-SAME: ttg.shared = 8448 : i32
// CHECK-LABEL: tt.func public @k
// CHECK-NEXT: %[[S:.*]] = ttg.global_scratch_alloc {alignment = 32 : i32, nbytes = 8320 : i32, third_party_allocation} : !tt.ptr<i8>
// CHECK-NEXT: kperf_gpu.init(%[[S]] : !tt.ptr<i8>)
// CHECK: kperf_gpu.finalize(%[[S]] : !tt.ptr<i8>)

// 1024 bytes of records for the CTA: 64 words for each warp.
// RING: \22cta_bytes\22:1152
// RING-SAME: \22max_frame_words\22:3
// RING-SAME: \22strategy\22:\22ring\22
// RING-SAME: \22version\22:2
// RING-SAME: \22words_per_warp\22:64
// RING-SAME: ring = 1 : i32
// RING-SAME: ttg.shared = 1280 : i32

// What is known to be needed, whole: in shared memory or elsewhere.
// WORDS: \22buffer\22:\22shared\22
// WORDS-SAME: \22words_per_warp\22:600
// WORDS-OUTSIDE: \22buffer\22:\22global\22
// WORDS-OUTSIDE-SAME: \22words_per_warp\22:600

// Nothing of ours is in shared memory.
// GLOBAL: \22buffer\22:\22global\22
// GLOBAL-SAME: global = 1 : i32
// GLOBAL-SAME: ttg.shared = 100 : i32

// 300 - 112 bytes less the anchor's 16 for four segments: 43 bytes each, of which
// 32 are no records; what is left is less than three frames (12 words), so the
// buffer is global.
// SMALL: \22buffer\22:\22global\22
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80", ttg.shared = 100 : i32, kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>, #kperf_gpu.event<mark 1>]]], kperf.regions = [{column = 3 : i32, file = "k.py", kind = "load", line = 4 : i32, name = "load k.py:4", op = "tt.load", parent = -1 : i32}, {column = 0 : i32, file = "", kind = "mark", line = 0 : i32, name = "m", op = "kperf.mark", parent = -1 : i32}]} {
  tt.func public @k() {
    kperf_gpu.init
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[1] end 0, mark 1 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
    kperf_gpu.finalize
    tt.return
  }
}

// -----

// A kernel without frames is not touched.
// CHECK: module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 100 : i32} {
module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 100 : i32} {
  tt.func public @untouched() {
    tt.return
  }
}

// -----

// The target's shared memory is never exceeded: of 65536 bytes 63536 are used,
// which leaves 2000: 16 for the anchor, and for each of 4 warps 32 and 116 words.
// CHECK: \22words_per_warp\22:116
// CHECK-SAME: ttg.shared = 65536 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942", ttg.shared = 63536 : i32, kperf.frames = [[[#kperf_gpu.event<mark 0>]]], kperf.regions = [{column = 0 : i32, file = "", kind = "mark", line = 0 : i32, name = "m", op = "kperf.mark", parent = -1 : i32}]} {
  tt.func public @nearly_full() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}

// -----

// Warps of partitions have roles and segments too. In global memory their way
// to the buffer is a pointer in shared memory.
// CHECK: \22roles\22:[{\22first_warp\22:0,\22name\22:\22default\22,\22warps\22:4},{\22first_warp\22:4,\22name\22:\22partition0\22,\22warps\22:2}]
// CHECK-SAME: \22total_warps\22:8
// CHECK-SAME: hands_over = 1 : i32
// GLOBAL: offset = 64 : i32
// GLOBAL-SAME: shared_bytes = 16 : i32
// GLOBAL-SAME: ttg.shared = 80 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.total-num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90", ttg.shared = 50 : i32, kperf.frames = [[[#kperf_gpu.event<mark 0>]]], kperf.regions = [{column = 0 : i32, file = "", kind = "mark", line = 0 : i32, name = "m", op = "kperf.mark", parent = -1 : i32}]} {
  tt.func public @partitions() {
    kperf_gpu.init
    ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 4>}
    default {
      ttg.warp_yield
    }
    partition0() num_warps(2) {
      kperf_gpu.attach
      kperf_gpu.detach
      ttg.warp_return
    } : () -> ()
    kperf_gpu.finalize
    tt.return
  }
}
