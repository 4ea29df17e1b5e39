// RUN: kperfir opt %s --pass "kperf-insert-frames{regions=loop:my%%20loop|load:fetch|mark:turn frames=2:before:start.0|3:before:start.1;3:after:end.1+mark.2@argument:2:0|2:after:end.0}" | filecheck %s

// Of stamps behind one operation, the one that was asked for first stands first.
// CHECK: kperf.record start "my loop" kind loop of "scf.for" {kperf.stamp = array<i32: 0, 0>}
// CHECK-NEXT: scf.for %[[I:.*]] =
// CHECK-NEXT: kperf.record start "fetch" kind load of "tt.load" {kperf.stamp = array<i32: 1, 0>}
// CHECK-NEXT: tt.load
// CHECK-NEXT: kperf.record end "fetch" kind load {kperf.stamp = array<i32: 1, 1>}
// CHECK-NEXT: kperf.mark "turn"(%[[I]] : i32) {kperf.stamp = array<i32: 1, 1>}
// CHECK-NEXT: arith.addi
// CHECK-NEXT: }
// CHECK-NEXT: kperf.record end "my loop" kind loop {kperf.stamp = array<i32: 2, 0>}
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %j = arith.addi %i, %c1 : i32
  }
  tt.return
}
