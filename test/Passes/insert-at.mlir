// RUN: kperfir opt %s --pass "kperf-insert-at{regions=3:4:user:a%%20b|3:3:load:inner marks=4:before:i:argument:2:0|2:after:n:parameter:1|3:after:plain}" | filecheck %s

// Regions around the same operation nest in the order in which they were asked
// for; numbers are those of the text before anything was inserted.
// CHECK: scf.for %[[I:.*]] =
// CHECK-NEXT: kperf.record start "a b" of "tt.load"
// CHECK-NEXT: kperf.record start "inner" kind load of "tt.load"
// CHECK-NEXT: tt.load
// CHECK-NEXT: kperf.mark "plain"
// CHECK-NEXT: kperf.record end "inner" kind load
// CHECK-NEXT: kperf.mark "i"(%[[I]] : i32)
// CHECK-NEXT: arith.addi
// CHECK-NEXT: kperf.record end "a b"
// CHECK: }
// CHECK-NEXT: kperf.mark "n"(%{{.*}} : i32)
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %j = arith.addi %i, %c1 : i32
  }
  tt.return
}
