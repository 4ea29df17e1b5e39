// RUN: kperfir opt %s --pass kperf-insert-regions --split-input-file | filecheck %s

// What is before a loop and behind it has regions of its own, in the kernel and
// in an iteration that holds a loop; not where nothing is recorded there.
// CHECK-LABEL: tt.func public @persistent
// CHECK-NEXT: start "persistent" kind kernel
// CHECK-NEXT: start "prologue k.py:2" kind prologue of "tt.func"
// CHECK: start "load k.py:2"
// CHECK: end "load k.py:2"
// CHECK-NEXT: end "prologue k.py:2"
// CHECK-NEXT: start "loop k.py:3"
// CHECK: scf.for %
// CHECK-NEXT: start "iteration k.py:3"
// CHECK-NEXT: start "loop k.py:4"
// CHECK-NEXT: scf.for %
// CHECK: start "iteration k.py:4"
// CHECK-NOT: prologue
// CHECK: end "loop k.py:4"
// CHECK-NEXT: start "epilogue k.py:6" kind epilogue of "scf.for"
// CHECK-NEXT: start "store k.py:6"
// CHECK: end "store k.py:6"
// CHECK-NEXT: end "epilogue k.py:6"
// CHECK: end "loop k.py:3"
// CHECK-NEXT: end "persistent"
tt.func public @persistent(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %p : !tt.ptr<f32> loc("k.py":2:3)
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %y = tt.load %p : !tt.ptr<f32> loc("k.py":5:3)
    } loc("k.py":4:1)
    tt.store %p, %x : !tt.ptr<f32> loc("k.py":6:3)
  } loc("k.py":3:1)
  tt.return
}

// -----

// A region of the user's that goes from before the loop to behind it bounds
// both ends.
// CHECK-LABEL: tt.func public @scope
// CHECK: start "prologue k.py:1"
// CHECK: end "load k.py:1"
// CHECK-NEXT: end "prologue k.py:1"
// CHECK-NEXT: start "mine"
// CHECK-NEXT: start "load k.py:2"
// CHECK: scf.for %
// CHECK: end "mine"
// CHECK-NEXT: start "epilogue k.py:5"
// CHECK: end "epilogue k.py:5"
tt.func public @scope(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %p : !tt.ptr<f32> loc("k.py":1:3)
  kperf.record start "mine"
  %y = tt.load %p : !tt.ptr<f32> loc("k.py":2:3)
  scf.for %i = %c0 to %n step %c1 : i32 {
    %z = tt.load %p : !tt.ptr<f32> loc("k.py":4:3)
  } loc("k.py":3:1)
  kperf.record end "mine"
  tt.store %p, %x : !tt.ptr<f32> loc("k.py":5:3)
  tt.return
}

// -----

// A way out before the loop: the prologue would not end on it, so there is none.
// CHECK-LABEL: tt.func public @early
// CHECK-NOT: prologue
// CHECK: start "epilogue k.py:4"
// CHECK: end "epilogue k.py:4"
// CHECK-NEXT: end "early"
// CHECK-NEXT: tt.return
tt.func public @early(%p: !tt.ptr<f32>, %n: i32, %done: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %p : !tt.ptr<f32> loc("k.py":1:3)
  cf.cond_br %done, ^out, ^work
^out:
  tt.return
^work:
  scf.for %i = %c0 to %n step %c1 : i32 {
    %z = tt.load %p : !tt.ptr<f32> loc("k.py":3:3)
  } loc("k.py":2:1)
  tt.store %p, %x : !tt.ptr<f32> loc("k.py":4:3)
  tt.return
}
