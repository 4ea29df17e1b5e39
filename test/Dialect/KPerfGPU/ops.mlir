// RUN: kperfir opt %s | filecheck %s
// RUN: kperfir opt %s > %t.mlir && kperfir opt %t.mlir | filecheck %s

// CHECK-LABEL: tt.func public @frames(
// CHECK-SAME: %[[S:.*]]: !tt.ptr<i8>)
tt.func public @frames(%scratch: !tt.ptr<i8>) {
  // CHECK: kperf_gpu.init(%[[S]] : !tt.ptr<i8>)
  kperf_gpu.init(%scratch : !tt.ptr<i8>)
  // CHECK: %[[F:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<3, 2>
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<3, 2>
  // CHECK: kperf_gpu.stamp %[[F]][0] start 0, start 1 : !kperf_gpu.frame<3, 2>
  kperf_gpu.stamp %f[0] start 0, start 1 : !kperf_gpu.frame<3, 2>
  // CHECK: kperf_gpu.stamp %[[F]][1] end 1, mark 2, end 0 : !kperf_gpu.frame<3, 2>
  kperf_gpu.stamp %f[1] end 1, mark 2, end 0 : !kperf_gpu.frame<3, 2>
  // CHECK: kperf_gpu.close_frame %[[F]] : !kperf_gpu.frame<3, 2>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<3, 2>
  // CHECK: kperf_gpu.detach
  kperf_gpu.detach
  // CHECK: kperf_gpu.attach
  kperf_gpu.attach
  // CHECK: kperf_gpu.finalize(%[[S]] : !tt.ptr<i8>)
  kperf_gpu.finalize(%scratch : !tt.ptr<i8>)
  tt.return
}

// CHECK-LABEL: tt.func private @values
tt.func private @values(%i: i32, %l: i64) {
  // CHECK: %[[F:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<4, 1, 3>
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<4, 1, 3>
  kperf_gpu.stamp %f[0] mark 1, mark 2 : !kperf_gpu.frame<4, 1, 3>
  // CHECK: kperf_gpu.store_value %[[F]][0], %{{.*}} : i32 in !kperf_gpu.frame<4, 1, 3>
  kperf_gpu.store_value %f[0], %i : i32 in !kperf_gpu.frame<4, 1, 3>
  // CHECK: kperf_gpu.store_value %[[F]][1], %{{.*}} : i64 in !kperf_gpu.frame<4, 1, 3>
  kperf_gpu.store_value %f[1], %l : i64 in !kperf_gpu.frame<4, 1, 3>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<4, 1, 3>
  tt.return
}

// The buffer is planned later.
// CHECK-LABEL: tt.func private @unplanned
tt.func private @unplanned() {
  // CHECK: kperf_gpu.init{{$}}
  kperf_gpu.init
  // CHECK: kperf_gpu.finalize{{$}}
  kperf_gpu.finalize
  tt.return
}

// Operations that become control flow later may split a frame's block: what
// holds across blocks is dominance alone.
// CHECK-LABEL: tt.func private @frame_over_blocks
tt.func private @frame_over_blocks(%c: i1) {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
  kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  cf.br ^bb2
^bb2:
  // CHECK: kperf_gpu.stamp %{{.*}}[1] end 0
  kperf_gpu.stamp %f[1] end 0 : !kperf_gpu.frame<0, 2>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
  tt.return
}
