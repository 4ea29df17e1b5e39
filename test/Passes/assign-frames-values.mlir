// RUN: kperfir opt %s --pass kperf-assign-frames --split-input-file | filecheck %s

// Values lie behind the stamps, in the order of the marks. Two marks with scalar
// arithmetic between them share a stamp; the second value is stored once it is
// there, and the frame is closed after that.
// CHECK: "mark"{{.*}}name = "a", op = "kperf.mark", parent = -1 : i32, value = "i32"
// CHECK-SAME: name = "b", op = "kperf.mark", parent = -1 : i32, value = "u64"
// CHECK-LABEL: tt.func public @two
// CHECK: %[[F:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1, 3>
// CHECK-NEXT: kperf_gpu.stamp %[[F]][0] mark 0, mark 1
// CHECK-NEXT: kperf_gpu.store_value %[[F]][0], %{{.*}} : i32
// CHECK-NEXT: %[[L:.*]] = arith.extui
// CHECK-NEXT: kperf_gpu.store_value %[[F]][1], %[[L]] : i64
// CHECK-NEXT: kperf_gpu.close_frame
tt.func public @two(%i: i32) {
  kperf.mark "a"(%i : i32)
  %l = arith.extui %i : i32 to i64
  kperf.mark "b"(%l : i64) unsigned
  tt.return
}

// -----

// One name in different places, of different kinds or with different values, is
// several regions.
// CHECK: kind = "user"{{[^}]*}}name = "x"{{[^}]*}}parent = -1
// CHECK-SAME: kind = "user"{{[^}]*}}name = "x"{{[^}]*}}parent = 0
// CHECK-SAME: kind = "mark"{{[^}]*}}name = "x"{{[^}]*}}parent = 1
// CHECK-SAME: kind = "mark"{{[^}]*}}name = "x"{{[^}]*}}parent = 1{{[^}]*}}value = "f32"
// CHECK-SAME: kind = "mark"{{[^}]*}}name = "x"{{[^}]*}}parent = 0
// CHECK-LABEL: tt.func public @names
// CHECK: stamp %{{.*}}[0] start 0, start 1, mark 2, mark 3
// CHECK: stamp %{{.*}}[1] end 1, mark 4
// CHECK: stamp %{{.*}}[2] start 1
// CHECK: stamp %{{.*}}[3] end 1, end 0
tt.func public @names(%f: f32, %p: !tt.ptr<f32>) {
  kperf.record start "x"
  kperf.record start "x"
  kperf.mark "x"
  kperf.mark "x"(%f : f32)
  kperf.record end "x"
  kperf.mark "x"
  tt.store %p, %f : !tt.ptr<f32>
  kperf.record start "x"
  tt.store %p, %f : !tt.ptr<f32>
  kperf.record end "x"
  kperf.record end "x"
  tt.return
}

// -----

// What no path reaches is not recorded.
// CHECK-LABEL: tt.func public @unreachable
// CHECK-NOT: kperf.record
tt.func public @unreachable() {
  kperf.record start "a"
  kperf.record end "a"
  tt.return
^bb1:
  kperf.record end "b"
  tt.return
}
