// RUN: kperfir opt %s --pass kperf-plan-buffer | filecheck %s

// A frame of one stamp and three words of values, and the tag: five words, and
// one that fills it up.
// CHECK: \22max_frame_words\22:6
// CHECK-SAME: \22value\22:\22i32\22
// CHECK-SAME: \22value\22:\22f64\22
// CHECK-SAME: \22version\22:7
#mark0 = #kperf_gpu.event<mark 0>
#mark1 = #kperf_gpu.event<mark 1>
module attributes {"ttg.num-warps" = 1 : i32, ttg.shared = 0 : i32, ttg.target = "cuda:80",
    kperf.frames = [[[#mark0, #mark1]]],
    kperf.regions = [
      {column = 1 : i32, file = "k.py", kind = "mark", line = 1 : i32, name = "a", op = "kperf.mark", parent = -1 : i32, value = "i32"},
      {column = 1 : i32, file = "k.py", kind = "mark", line = 2 : i32, name = "b", op = "kperf.mark", parent = -1 : i32, value = "f64"}]} {
  tt.func public @k(%i: i32, %d: f64) {
    kperf_gpu.init
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.stamp %f[0] mark 0, mark 1 : !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.store_value %f[0], %i : i32 in !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.store_value %f[1], %d : f64 in !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1, 3>
    kperf_gpu.finalize
    tt.return
  }
}
