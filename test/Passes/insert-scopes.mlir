// RUN: kperfir opt %s --pass kperf-insert-scopes --split-input-file | filecheck %s
// RUN: kperfir opt %s --pass kperf-insert-scopes --split-input-file --locations | filecheck %s --check-prefix LOC

// A scope is around the run of its operations; what only computes may be in
// between. Constants and scalar arithmetic begin and end nothing. Locations are
// as they would be without scopes, those of records the scope's own.
// LOC-NOT: kperf.scope|
// LOC: kperf.record start "outer"{{.*}} loc([[OUTER:#.*]])
// LOC: [[OUTER]] = loc("k.py":3:5)
// CHECK-LABEL: tt.func public @nested
// CHECK-NEXT: arith.constant
// CHECK-NEXT: kperf.record start "outer" of "scope"
// CHECK-NEXT: kperf.record start "a b" of "scope"
// CHECK-NEXT: tt.load
// CHECK-NEXT: math.exp
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf.record end "a b"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: scf.for
// CHECK-NEXT: kperf.record start "inner" of "scope"
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf.record end "inner"
// CHECK-NEXT: }
// CHECK-NEXT: kperf.record end "outer"
// CHECK-NEXT: tt.store
// CHECK-NEXT: tt.return
tt.func public @nested(%p: !tt.ptr<f32>, %n: i32) {
  %c1 = arith.constant 1 : i32 loc("kperf.scope|3:5:0:outer"("k.py":4:1))
  %x = tt.load %p : !tt.ptr<f32> loc("kperf.scope|3:5:0:outer|5:9:1:a%20b"("k.py":5:1))
  %y = math.exp %x : f32 loc("k.py":6:1)
  tt.store %p, %y : !tt.ptr<f32> loc("kperf.scope|3:5:0:outer|5:9:1:a%20b"("k.py":7:1))
  %m = arith.addi %n, %c1 : i32 loc("k.py":8:1)
  scf.for %i = %c1 to %m step %c1 : i32 {
    tt.store %p, %y : !tt.ptr<f32> loc("kperf.scope|3:5:0:outer|9:13:2:inner"("k.py":10:1))
  } loc("kperf.scope|3:5:0:outer"("k.py":9:1))
  tt.store %p, %y : !tt.ptr<f32> loc("k.py":11:1)
  tt.return
}

// -----

// Other work between two parts of a scope takes it apart, and so does a second
// run through the same `with`: unrolled (1, 2), by another call, by a call that is
// repeated (0, 1), or by one and the same call in a function that is called twice.
// CHECK-LABEL: tt.func public @apart
// CHECK-COUNT-9: kperf.record start "s"
// CHECK-NOT: kperf.record start
tt.func public @apart(%p: !tt.ptr<f32>, %y: f32) {
  tt.store %p, %y : !tt.ptr<f32> loc("kperf.scope|3:5:0:s"("k.py":4:1))
  tt.store %p, %y : !tt.ptr<f32> loc("k.py":9:1)
  tt.store %p, %y : !tt.ptr<f32> loc("kperf.scope|3:5:0:s"("k.py":4:1))
  tt.store %p, %y : !tt.ptr<f32> loc("kperf.scope|3:5:1:s"("k.py":4:1))
  tt.store %p, %y : !tt.ptr<f32> loc(callsite("kperf.scope|3:5:1:s"("k.py":4:1) at "k.py":20:1))
  tt.store %p, %y : !tt.ptr<f32> loc(callsite("kperf.scope|3:5:1:s"("k.py":4:1) at "k.py":21:1))
  tt.store %p, %y : !tt.ptr<f32> loc(callsite("kperf.scope|3:5:1:s"("k.py":4:1) at "kperf.scope|call 0"("k.py":22:1)))
  tt.store %p, %y : !tt.ptr<f32> loc(callsite("kperf.scope|3:5:1:s"("k.py":4:1) at "kperf.scope|call 1"("k.py":22:1)))
  tt.store %p, %y : !tt.ptr<f32> loc(callsite(callsite("kperf.scope|3:5:1:s"("k.py":4:1) at "k.py":23:1) at "k.py":30:1))
  tt.store %p, %y : !tt.ptr<f32> loc(callsite(callsite("kperf.scope|3:5:1:s"("k.py":4:1) at "k.py":23:1) at "k.py":31:1))
  tt.return
}

// -----

// The scopes around a call are around what was inlined; a partition's warps have
// nothing open, so they begin the scopes around it themselves.
// CHECK-LABEL: tt.func public @calls
// CHECK: kperf.record start "call"
// CHECK-NEXT: kperf.record start "body"
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf.record end "body"
// CHECK-NEXT: ttg.warp_specialize
// CHECK: default {
// CHECK-NEXT: ttg.warp_yield
// CHECK: partition0
// CHECK-NEXT: kperf.record start "call"
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf.record end "call"
// CHECK-NEXT: ttg.warp_return
// CHECK: kperf.record end "call"
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @calls(%p: !tt.ptr<f32>, %y: f32) {
    tt.store %p, %y : !tt.ptr<f32> loc(callsite("kperf.scope|3:5:0:body"("k.py":4:1) at "kperf.scope|19:1:0:call"("k.py":20:1)))
    ttg.warp_specialize(%p, %y)
    default {
      ttg.warp_yield
    }
    partition0(%q: !tt.ptr<f32>, %z: f32) num_warps(1) {
      tt.store %q, %z : !tt.ptr<f32> loc("kperf.scope|19:1:0:call"("k.py":22:1))
      ttg.warp_return
    } : (!tt.ptr<f32>, f32) -> () loc("kperf.scope|19:1:0:call"("k.py":21:1))
    tt.return
  }
}

// -----

// Marks, with and without a value. Inline assembly of the user's stays.
// CHECK-LABEL: tt.func public @marks
// CHECK-NEXT: kperf.mark "tile done"(%{{.*}} : i32)
// CHECK-NEXT: kperf.mark "bytes"(%{{.*}} : i32) unsigned
// CHECK-NEXT: kperf.mark "end"
// CHECK-NEXT: tt.elementwise_inline_asm "// kperf"
tt.func public @marks(%i: i32) {
  %0 = tt.elementwise_inline_asm "// kperf.mark|i|tile%20done" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %i : i32 -> i32
  %1 = tt.elementwise_inline_asm "// kperf.mark|u|bytes" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %i : i32 -> i32
  %2 = tt.elementwise_inline_asm "// kperf.mark|i|end" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  %3 = tt.elementwise_inline_asm "// kperf" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %i : i32 -> i32
  tt.return
}

// -----

// The number of a call goes, scopes or not.
// LOC-LABEL: tt.func public @numbered
// LOC-NOT: kperf.scope|
// LOC: loc("k.py":22:1)
tt.func public @numbered(%p: !tt.ptr<f32>, %y: f32) {
  tt.store %p, %y : !tt.ptr<f32> loc("kperf.scope|call 0"("k.py":22:1))
  tt.return
}
