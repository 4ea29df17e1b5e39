// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=loop,iteration,load,async_copy,async_wait},kperf-assign-frames{first-iteration=1 last-iteration=9 iteration-step=4}" --split-input-file | filecheck %s

// Iterations 1 and 5 of the outer loop, and of the inner loop in these. The
// outer loop's number is its variable less what it begins with; the inner one's
// is a third of the variable. Both iterations end, and say which are recorded.
// CHECK: kperf.notes = ["loop k.py:1: recorded are iterations 1:9:4; the others are time of the loop's own", "loop k.py:2: recorded
// CHECK-SAME: kperf.regions = [{{.*}}{column = 1 : i32, file = "k.py", first = 1 : i32, kind = "iteration", last = 9 : i32, line = 1 : i32, {{.*}}step = 4 : i32}
// CHECK: scf.for %[[I:.*]] = %[[BEGIN:.*]] to
// CHECK-NEXT: %[[NUMBER:.*]] = arith.subi %[[I]], %[[BEGIN]] : i32
// CHECK-NEXT: %[[FIRST:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[SINCE:.*]] = arith.subi %[[NUMBER]], %[[FIRST]] : i32
// CHECK-NEXT: %[[COUNT:.*]] = arith.constant 8 : i32
// CHECK-NEXT: %[[WITHIN:.*]] = arith.cmpi ult, %[[SINCE]], %[[COUNT]] : i32
// CHECK: %[[REST:.*]] = arith.remui %[[SINCE]]
// CHECK: %[[HIT:.*]] = arith.cmpi eq, %[[REST]]
// CHECK: %[[OUTER:.*]] = arith.andi %[[WITHIN]], %[[HIT]] : i1
// CHECK: %[[F:.*]] = kperf_gpu.open_frame when %[[OUTER]] : !kperf_gpu.frame<1, 1>
// CHECK-NEXT: kperf_gpu.stamp %[[F]][0] start 1, start 2
// CHECK: scf.for %[[J:.*]] =
// CHECK: arith.divui %[[J]]
// CHECK: arith.andi %[[OUTER]]
// CHECK: kperf_gpu.open_frame when
// CHECK: scf.if
// CHECK: kperf_gpu.open_frame when
// CHECK: }
// CHECK: kperf_gpu.stamp %{{.*}} end 2, end 1 :
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @nested(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c3 = arith.constant 3 : i32
    scf.for %i = %n to %n step %c1 : i32 {
      scf.for %j = %c0 to %n step %c3 : i32 {
        scf.if %c {
          %x = tt.load %p : !tt.ptr<f32>
        }
      } loc("k.py":2:1)
    } loc("k.py":1:1)
    tt.return
  }
}

// -----

// These record each iteration: a loop that does not count, one whose step is not
// known, and one in which roles begin. No iteration of theirs ends by itself.
// CHECK: kperf.notes = ["loop k.py:1: each iteration is recorded: the loop does not count", "loop k.py:2: each iteration is recorded: its step is not a constant"]
// CHECK-NOT: step =
// CHECK-NOT: open_frame when
// CHECK: tt.return
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @others(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
    scf.while : () -> () {
      scf.condition(%c)
    } do {
      %x = tt.load %p : !tt.ptr<f32>
      scf.yield
    } loc("k.py":1:1)
    scf.for %i = %n to %n step %n : i32 {
      %x = tt.load %p : !tt.ptr<f32>
    } loc("k.py":2:1)
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// Copies of iterations that are left out are not counted: there is no flow.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @pipelined
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @pipelined(%p: tensor<128x!tt.ptr<f32>, #blocked>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
  scf.for %i = %c0 to %n step %c1 : i32 {
    %b = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable>
    %gb = ttg.async_commit_group tokens %b
    %w = ttg.async_wait %gb {num = 1 : i32}
  }
  tt.return
}
}
