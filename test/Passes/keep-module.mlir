// RUN: kperfir opt %s --split-input-file --locations --pass "kperf-keep-module, kperf-insert-regions, kperf-assign-frames, kperf-plan-buffer, kperf-keep-module{action=restore}" | filecheck %s
// RUN: kperfir opt %s --split-input-file --pass "kperf-keep-module, kperf-keep-module{action=forget}" | filecheck %s --check-prefix KEPT

// The kernel, its attributes and its locations are what they were.
// CHECK: module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 64 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-NEXT: tt.func public @k(%{{.*}}: !tt.ptr<f32> {{.*}}) {
// CHECK-NEXT: %[[X:.*]] = tt.load %{{.*}} : !tt.ptr<f32> loc(#[[LOAD:.*]])
// CHECK-NEXT: tt.store %{{.*}}, %[[X]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return
// CHECK: #[[LOAD]] = loc("k.py":4:12)
module attributes {"ttg.num-warps" = 4 : i32, ttg.shared = 64 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %x = tt.load %p : !tt.ptr<f32> loc("k.py":4:12)
    tt.store %p, %x : !tt.ptr<f32> loc("k.py":5:4)
    tt.return
  }
}

// -----

// A module that has records already says of which dialect they are.
// KEPT-LABEL: // -----
// KEPT: module attributes {{{.*}}kperf.records = "kperf_gpu"{{.*}}} {
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @instrumented() {
    kperf_gpu.init
    tt.return
  }
}
