// RUN: kperfir opt %s --pass "kperf-insert-regions,kperf-assign-frames" --split-input-file | filecheck %s

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// What is behind the condition gets what the condition hands over, whatever the
// loop began with.
// CHECK: kperf.flows = [{issue = array<i32: [[LOAD:[0-9]+]], 1>, scope = {{[0-9]+}} : i32, slots = 1 : i32, via = "mbarrier", wait = array<i32: [[WAIT:[0-9]+]], 1>}]
// CHECK: tt.func public @carried_by_while
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @carried_by_while(%d: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %p: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %a, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %r:2 = scf.while (%i = %c0, %x = %a) : (i32, !ttg.memdesc<1xi64, #shared1, #smem, mutable>) -> (!ttg.memdesc<1xi64, #shared1, #smem, mutable>, i32) {
    %more = arith.cmpi slt, %i, %n : i32
    scf.condition(%more) %x, %i : !ttg.memdesc<1xi64, #shared1, #smem, mutable>, i32
  } do {
  ^bb0(%y: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %j: i32):
    ttng.wait_barrier %y, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    %next = arith.addi %j, %c1 : i32
    scf.yield %next, %y : i32, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  }
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// The loop swaps its barriers: which one an execution waits for is not known.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @swapped_by_while
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @swapped_by_while(%d: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %p: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %a, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %r:2 = scf.while (%x = %a, %y = %b) : (!ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>) -> (!ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>) {
    scf.condition(%p) %x, %y : !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  } do {
  ^bb0(%u: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %v: !ttg.memdesc<1xi64, #shared1, #smem, mutable>):
    ttng.wait_barrier %u, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    scf.yield %v, %u : !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  }
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// So does a loop that counts.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @swapped_by_for
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @swapped_by_for(%d: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %p: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %a, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (!ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>) : i32 {
    ttng.wait_barrier %x, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    scf.yield %y, %x : !ttg.memdesc<1xi64, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  }
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// A branch chooses the barrier of the wait; the issue is not complete where the
// other one is.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @either
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @either(%d: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %p: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %a, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %x = scf.if %p -> (!ttg.memdesc<1xi64, #shared1, #smem, mutable>) {
    scf.yield %a : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  } else {
    scf.yield %b : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  }
  ttng.wait_barrier %x, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// A load that is predicated off at the end of each inner loop: those behind it
// would belong to other waits than counting says.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @predicated
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @predicated(%d: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %p: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.for %j = %c0 to %n step %c1 : i32 {
      %more = arith.cmpi slt, %j, %c1 : i32
      ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %a, %more : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
      ttng.wait_barrier %a, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    }
  }
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// In one loop, what is predicated off is behind all others.
// CHECK: kperf.flows = [{{.*}}via = "mbarrier"
// CHECK: tt.func public @predicated_at_the_end
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @predicated_at_the_end(%d: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %p: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %a = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  scf.for %j = %c0 to %n step %c1 : i32 {
    %more = arith.cmpi slt, %j, %c1 : i32
    ttng.async_tma_copy_global_to_local %d[%c0, %c0] %m, %a, %more : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.wait_barrier %a, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  }
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// A function that is called closes groups, too, and has no records.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @calls
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @calls(%p: tensor<128x!tt.ptr<f32>, #blocked>) {
  %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
  %a = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable>
  %g = ttg.async_commit_group tokens %a
  tt.call @callee() : () -> ()
  %w = ttg.async_wait %g {num = 1 : i32}
  tt.return
}
tt.func private @callee() attributes {noinline = true} {
  %g = ttg.async_commit_group
  tt.return
}
}
