// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass "kperf-plan-buffer{buffer-bytes=48 buffer=shared}"

// A frame of three words takes four of the segment, and as many are left for
// those that are not kept, in each of 4 warps.
// expected-error@+1 {{profile buffer of 48 bytes does not hold the largest frame (4 words) for each of 4 warps; need at least 128 (buffer-bytes)}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", ttg.shared = 0 : i32, kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>]]], kperf.regions = []} {
  tt.func public @buffer_too_small() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}

// -----

// expected-error@+1 {{the kernel uses 166912 of 166912 bytes of shared memory; a profile buffer needs 80 (use buffer=auto or buffer=global)}}
module attributes {"ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", ttg.shared = 166912 : i32, kperf.frames = [[[#kperf_gpu.event<mark 0>]]], kperf.regions = []} {
  tt.func public @shared_memory_full() {
    kperf_gpu.init
    kperf_gpu.finalize
    tt.return
  }
}
