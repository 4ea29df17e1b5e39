// RUN: kperfir opt %s --pass "kperf-plan-buffer{strategy=aggregate}" --split-input-file --verify-diagnostics

// expected-error@+1 {{strategy aggregate is not there for AMD GPUs (strategy)}}
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942", kperf.frames = [[[#kperf_gpu.event<mark 0>]]], kperf.regions = [{column = 0 : i32, file = "", kind = "mark", line = 0 : i32, name = "m", op = "kperf.mark", parent = -1 : i32}]} {
  tt.func public @k() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}
