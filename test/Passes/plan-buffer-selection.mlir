// RUN: kperfir opt %s --pass "kperf-plan-buffer{first-cta=2 last-cta=9 sample-ctas=3 first-sm=1}" | filecheck %s --check-prefix CTAS
// RUN: kperfir opt %s --pass "kperf-plan-buffer{warps=1,5}" | filecheck %s --check-prefix WARPS
// RUN: kperfir opt %s --pass "kperf-plan-buffer{granularity=warp-group}" | filecheck %s --check-prefix GROUPS
// RUN: kperfir opt %s --pass "kperf-plan-buffer{granularity=cta}" | filecheck %s --check-prefix CTA
// RUN: kperfir opt %s --pass "kperf-plan-buffer{batch=4}" | filecheck %s --check-prefix BATCH
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{warps=8}" 2>&1 | filecheck %s --check-prefix NO-WARP
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{first-cta=9 last-cta=9}" 2>&1 | filecheck %s --check-prefix NO-CTA

// CTAS: \22ctas\22:[2,9,3]
// CTAS: first_cta = 2 : i32, first_sm = 1 : i32
// CTAS-SAME: last_cta = 9 : i32
// CTAS-SAME: sample_ctas = 3 : i32

// A bit for each warp: 2^1 + 2^5.
// WARPS: warps_high = 0 : i32, warps_low = 34 : i32

// Warps 0 and 4 of eight.
// GROUPS: warps_high = 0 : i32, warps_low = 17 : i32
// CTA: warps_high = 0 : i32, warps_low = 1 : i32

// Frames of three words are padded to four.
// BATCH: \22frame_align\22:4
// BATCH-SAME: \22max_frame_words\22:4
// BATCH-SAME: \22version\22:7
// BATCH-SAME: batch = 4 : i32

// NO-WARP: error: '8' is no warp of the 8 of a CTA (warps)
// NO-CTA: error: the first CTA or SM to record is not before the last
module attributes {"ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80", ttg.shared = 0 : i32, kperf.frames = [[[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>]]], kperf.regions = [{column = 3 : i32, file = "k.py", kind = "load", line = 4 : i32, name = "load k.py:4", op = "tt.load", parent = -1 : i32}]} {
  tt.func public @k() {
    kperf_gpu.init
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.stamp %f[1] end 0 : !kperf_gpu.frame<0, 2>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
    kperf_gpu.finalize
    tt.return
  }
}
