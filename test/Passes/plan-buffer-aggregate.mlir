// RUN: kperfir opt %s --pass "kperf-plan-buffer{strategy=aggregate buffer-bytes=64 batch=4}" --split-input-file | filecheck %s
// RUN: kperfir opt %s --pass "kperf-plan-buffer{strategy=aggregate shared-limit-bytes=1400}" --split-input-file | filecheck %s --check-prefix SMALL

// A block of 40 words for each of two regions, whatever was asked for: the
// segments of 4 warps take 4 * 4 * (4 + 80 + 4) bytes behind the kernel's 112, and
// the start anchor 16.
// Flows need single executions; how regions nest is left for the lowering.
// CHECK: \22cta_bytes\22:1408
// CHECK-NOT: flows
// CHECK-NOT: frame_align
// CHECK-SAME: \22strategy\22:\22aggregate\22
// CHECK-SAME: \22version\22:5
// CHECK-SAME: \22words_per_warp\22:80
// CHECK-SAME: aggregate = 1 : i32
// CHECK-SAME: kperf.regions = [{{.*}}parent = -1
// CHECK-SAME: ttg.shared = 1536 : i32

// 1400 - 112 bytes do not hold them: global memory does.
// SMALL: \22buffer\22:\22global\22
// SMALL-SAME: ttg.shared = 100 : i32
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80", ttg.shared = 100 : i32, kperf.flows = [{issue = array<i32: 0, 1>, scope = -1 : i32, slots = 1 : i32, via = "commit_group", wait = array<i32: 0, 0>}], kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>, #kperf_gpu.event<mark 1>]]], kperf.regions = [{column = 3 : i32, file = "k.py", kind = "load", line = 4 : i32, name = "load k.py:4", op = "tt.load", parent = -1 : i32}, {column = 0 : i32, file = "", kind = "mark", line = 0 : i32, name = "m", op = "kperf.mark", parent = -1 : i32}]} {
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
