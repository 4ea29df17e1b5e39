// RUN: kperfir opt %s --verify-diagnostics --pass "kperf-plan-buffer{buffer-bytes=2147483648 buffer=global}"

// expected-error@+1 {{profile buffer of 2147483648 bytes for each CTA is too large; at most 1073741824 (buffer-bytes)}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", ttg.shared = 0 : i32, kperf.frames = [[[#kperf_gpu.event<mark 0>]]], kperf.regions = []} {
  tt.func public @k() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}
