// RUN: kperfir opt %s --pass kperf-fill-gaps --split-input-file | filecheck %s
// RUN: kperfir opt %s --pass "kperf-fill-gaps{regions=minimal}" --split-input-file | filecheck %s --check-prefix=MINIMAL
// MINIMAL-NOT: kperf.record gap

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {

// A gap begins with the record before it; of its lines it is named after the
// one that computes the most. Inside of an operation's region there is none,
// nor where constants and scalars alone lie between two records.
// CHECK-LABEL: tt.func public @lines
// CHECK-NEXT: start "k"
// CHECK-NEXT: gap "compute k.py:3" kind compute of "arith.addf"
// CHECK: kperf.record start "store k.py:5"
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf.record end "store k.py:5"
// CHECK-NEXT: arith.constant
// CHECK-NEXT: kperf.record end "k"
tt.func public @lines(%p: !tt.ptr<f32>, %f: f32, %v: tensor<128xf32, #blocked>) {
  kperf.record start "k" kind kernel
  %g = arith.addf %f, %f : f32 loc("k.py":2:1)
  %w = arith.addf %v, %v : tensor<128xf32, #blocked> loc("k.py":3:1)
  kperf.record start "store k.py:5" kind store
  tt.store %p, %g : !tt.ptr<f32> loc("k.py":5:1)
  kperf.record end "store k.py:5" kind store
  %c = arith.constant 0 : i32
  kperf.record end "k" kind kernel
  tt.return
}
}

// -----

// What reaches memory or other warps is not arithmetic. Names are taken once.
// CHECK-LABEL: tt.func public @kinds
// CHECK: gap "between k.py:2" kind between of "tt.store"
// CHECK: gap "between k.py:2#2" kind between of "tt.store"
tt.func public @kinds(%p: !tt.ptr<f32>, %f: f32) {
  kperf.record start "k" kind kernel
  tt.store %p, %f : !tt.ptr<f32> loc("k.py":2:1)
  kperf.mark "m"
  tt.store %p, %f : !tt.ptr<f32> loc("k.py":2:1)
  kperf.record end "k" kind kernel
  tt.return
}

// -----

// A gap goes on into branches and out of them, up to a record; in a loop up to
// the next iteration. The gap in front of the branch holds what both branches
// begin with; that of a branch what follows behind. To enter a loop takes
// instructions, too.
// CHECK-LABEL: tt.func public @branch
// CHECK: start "loop"
// CHECK-NEXT: gap "compute k.py:1" kind compute of "scf.for"
// CHECK: start "iteration"
// CHECK-NEXT: gap "compute k.py:4" kind compute of "arith.mulf"
// CHECK-NEXT: scf.if
// CHECK: end "load" kind load
// CHECK-NEXT: gap "compute k.py:9" kind compute of "arith.divf"
// CHECK: else
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: scf.yield
// CHECK: end "loop"
// CHECK-NEXT: end "k"
tt.func public @branch(%p: !tt.ptr<f32>, %n: i32, %b: i1, %f: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  kperf.record start "k" kind kernel
  kperf.record start "loop" kind loop
  scf.for %i = %c0 to %n step %c1 : i32 {
    kperf.record start "iteration" kind iteration
    %y = scf.if %b -> f32 {
      kperf.record start "load" kind load
      %x = tt.load %p : !tt.ptr<f32> loc("k.py":3:1)
      kperf.record end "load" kind load
      scf.yield %x : f32
    } else {
      %m = arith.mulf %f, %f : f32 loc("k.py":4:1)
      scf.yield %m : f32
    }
    %z = arith.divf %y, %f : f32 loc("k.py":9:1)
  } loc("k.py":1:1)
  kperf.record end "loop" kind loop
  kperf.record end "k" kind kernel
  tt.return
}

// -----

// Of a loop whose iterations are not recorded, nothing is said where control
// would pass its borders.
// CHECK-LABEL: tt.func public @borders
// CHECK-NOT: gap
tt.func public @borders(%p: !tt.ptr<f32>, %n: i32, %f: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  kperf.record start "k" kind kernel
  scf.for %i = %c0 to %n step %c1 : i32 {
    %z = arith.divf %f, %f : f32
    kperf.record start "load" kind load
    %x = tt.load %p : !tt.ptr<f32>
    kperf.record end "load" kind load
  }
  kperf.record end "k" kind kernel
  tt.return
}

// -----

// A scope that holds arithmetic alone has a name already; beside a region it
// does not.
// CHECK-LABEL: tt.func public @scope
// CHECK: start "whole"
// CHECK-NOT: gap
// CHECK: end "whole"
// CHECK: start "part"
// CHECK-NEXT: gap "compute k.py:3"
// CHECK-NEXT: tt.make_range
// CHECK-NEXT: start "load"
tt.func public @scope(%p: !tt.ptr<f32>, %f: f32) {
  kperf.record start "whole"
  %a = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32> loc("k.py":2:1)
  kperf.record end "whole"
  kperf.record start "part"
  %b = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32> loc("k.py":3:1)
  kperf.record start "load" kind load
  %x = tt.load %p : !tt.ptr<f32>
  kperf.record end "load" kind load
  kperf.record end "part"
  tt.return
}
