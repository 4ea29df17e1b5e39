// RUN: kperfir opt %s --pass "kperf-plan-buffer{strategy=flush buffer-bytes=6000}" --split-input-file | filecheck %s
// RUN: kperfir opt %s --pass "kperf-plan-buffer{strategy=flush words-per-warp=4}" --split-input-file | filecheck %s --check-prefix LEAST

// 6000 bytes are 375 words for each of 4 warps: two halves of 128. In global
// memory, whatever shared memory has room for.
// CHECK: \22buffer\22:\22global\22
// CHECK-SAME: \22cta_bytes\22:4224
// CHECK-SAME: \22strategy\22:\22flush\22
// CHECK-SAME: \22version\22:{{[0-9]+}}
// CHECK-SAME: \22words_per_warp\22:256
// CHECK-SAME: flush = 1 : i32
// CHECK-SAME: global = 1 : i32
// CHECK-SAME: ttg.shared = 100 : i32

// A frame of three words and the two that describe a lap: halves of eight.
// LEAST: \22words_per_warp\22:16
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80", ttg.shared = 100 : i32, kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>]]], kperf.regions = [{column = 3 : i32, file = "k.py", kind = "load", line = 4 : i32, name = "load k.py:4", op = "tt.load", parent = -1 : i32}]} {
  tt.func public @k() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}

// -----

// AMD GPUs keep the first records that fit.
// CHECK: \22strategy\22:\22saturate\22
// CHECK-NOT: flush
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942", ttg.shared = 100 : i32, kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>]]], kperf.regions = [{column = 3 : i32, file = "k.py", kind = "load", line = 4 : i32, name = "load k.py:4", op = "tt.load", parent = -1 : i32}]} {
  tt.func public @k() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}
