// RUN: kperfir opt %s --pass "kperf-assign-frames{max-slots=2}" | filecheck %s

// Three stamps in frames of at most two.
// CHECK: !kperf_gpu.frame<0, 2>
// CHECK: !kperf_gpu.frame<1, 1>
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[0] mark 1
tt.func public @k(%p: !tt.ptr<f32>) {
  kperf.record start "a"
  %x = tt.load %p : !tt.ptr<f32>
  kperf.record end "a"
  %y = tt.load %p : !tt.ptr<f32>
  kperf.mark "b"
  tt.return
}
