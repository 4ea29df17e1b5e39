// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass "kperf-plan-buffer{strategy=flush buffer=shared}"

// expected-error@+1 {{strategy flush keeps its records in global memory (buffer)}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", ttg.shared = 0 : i32, kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>]]], kperf.regions = []} {
  tt.func public @k() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}
