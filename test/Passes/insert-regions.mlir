// RUN: kperfir opt %s --pass kperf-insert-regions --split-input-file | filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// The kernel, its loops, their iterations, and what moves data. Names say where
// in the source; an end of an iteration is not recorded.
// CHECK-LABEL: tt.func public @loop
// CHECK-NEXT: kperf.record start "loop" kind kernel of "tt.func"
// CHECK: kperf.record start "loop k.py:7" kind loop of "scf.for"
// CHECK-NEXT: scf.for
// CHECK-NEXT: kperf.record start "iteration k.py:7" kind iteration of "scf.for"
// CHECK-NEXT: kperf.record start "load k.py:8" kind load of "tt.load"
// CHECK-NEXT: tt.load
// CHECK-NEXT: kperf.record end "load k.py:8" kind load
// CHECK-NEXT: kperf.record start "store k.py:9" kind store of "tt.store"
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf.record end "store k.py:9" kind store
// CHECK-NEXT: }
// CHECK-NEXT: kperf.record end "loop k.py:7" kind loop
// CHECK-NEXT: kperf.record end "loop" kind kernel
// CHECK-NEXT: tt.return
tt.func public @loop(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32> loc("k.py":8:3)
    tt.store %p, %x : !tt.ptr<f32> loc("x"("k.py":9:3))
  } loc("k.py":7:1)
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// A run of waits is one region, a copy takes its commit along, an allocation
// without a value is none. The second copy on one line gets a number.
// CHECK-LABEL: tt.func public @runs
// CHECK: ttg.local_alloc
// CHECK-NEXT: kperf.record start "async_copy k.py:3"
// CHECK-NEXT: ttg.async_copy_global_to_local
// CHECK-NEXT: ttg.async_commit_group
// CHECK-NEXT: kperf.record end "async_copy k.py:3"
// CHECK-NEXT: kperf.record start "async_copy k.py:3#2"
// CHECK-NEXT: ttg.async_copy_global_to_local
// CHECK-NEXT: ttg.async_commit_group
// CHECK-NEXT: kperf.record end "async_copy k.py:3#2"
// CHECK-NEXT: kperf.record start "async_wait k.py:4"
// CHECK-NEXT: ttg.async_wait
// CHECK-NEXT: ttg.async_wait
// CHECK-NEXT: kperf.record end "async_wait k.py:4"
tt.func public @runs(%p: tensor<128x!tt.ptr<f32>, #blocked>) {
  %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
  %a = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable> loc("k.py":3:1)
  %ga = ttg.async_commit_group tokens %a
  %b = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable> loc("k.py":3:9)
  %gb = ttg.async_commit_group tokens %b
  %wa = ttg.async_wait %ga {num = 1 : i32} loc("k.py":4:1)
  %wb = ttg.async_wait %gb {num = 0 : i32} loc("k.py":5:1)
  tt.return
}
}

// -----

// A call into Triton's library is named after the line that calls it; a call of
// the user's own function after the line inside it.
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: tt.func public @inlined
// CHECK: kperf.record start "load user.py:20"
// CHECK: kperf.record start "load helper.py:5"
tt.func public @inlined(%p: !tt.ptr<f32>) {
  %x = tt.load %p : !tt.ptr<f32> loc(callsite("/x/triton/language/standard.py":9:1 at "/y/user.py":20:5))
  %y = tt.load %p : !tt.ptr<f32> loc(callsite("/y/helper.py":5:1 at "/y/user.py":21:5))
  tt.return
}
}

// -----

// Every return ends the kernel; a while's body is an iteration; a function that
// is called is left alone.
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: tt.func public @branches
// CHECK: scf.while
// CHECK: } do {
// CHECK-NEXT: bb0
// CHECK-NEXT: kperf.record start "iteration
// CHECK: kperf.record end "branches" kind kernel
// CHECK-NEXT: tt.return
// CHECK: kperf.record end "branches" kind kernel
// CHECK-NEXT: tt.return
// CHECK-LABEL: tt.func private @helper
// CHECK-NOT: kperf.record
tt.func public @branches(%c: i1, %p: !tt.ptr<f32>) {
  scf.while (%d = %c) : (i1) -> i1 {
    scf.condition(%d) %d : i1
  } do {
  ^bb0(%d: i1):
    scf.yield %d : i1
  }
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  tt.return
^bb2:
  tt.return
}
tt.func private @helper(%p: !tt.ptr<f32>) {
  %x = tt.load %p : !tt.ptr<f32>
  tt.return
}
}
