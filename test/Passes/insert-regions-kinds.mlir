// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=load,loop}" | filecheck %s

// Only the kinds that were asked for.
// CHECK-LABEL: tt.func public @k
// CHECK-NOT: kind kernel
// CHECK: start "loop
// CHECK-NOT: kind iteration
// CHECK: start "load
// CHECK-NOT: kind store
// CHECK: tt.return
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    tt.store %p, %x : !tt.ptr<f32>
  }
  tt.return
}
