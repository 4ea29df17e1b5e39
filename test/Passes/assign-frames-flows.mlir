// RUN: kperfir opt %s --pass "kperf-insert-regions,kperf-assign-frames" --split-input-file | filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// Regions: 0 kernel, 1 prologue, 2 copy, 3 loop, 4 iteration, 5 copy, 6 wait. Each
// copy closes one group; the wait leaves one outstanding.
// CHECK: kperf.flows = [{issue = array<i32: 2, 1, 5, 1>, scope = -1 : i32, slots = 1 : i32, via = "commit_group", wait = array<i32: 6, 1>}]
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @pipelined(%p: tensor<128x!tt.ptr<f32>, #blocked>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
  %a = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable>
  %ga = ttg.async_commit_group tokens %a
  scf.for %i = %c0 to %n step %c1 : i32 {
    %b = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable>
    %gb = ttg.async_commit_group tokens %b
    %w = ttg.async_wait %gb {num = 1 : i32}
  }
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// The commit is not next to the copy: it has no region of its own, and groups
// cannot be counted.
// CHECK: tt.func public @pipelined
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @apart
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @apart(%p: tensor<128x!tt.ptr<f32>, #blocked>, %q: !tt.ptr<f32>) {
  %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
  %a = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable>
  %x = tt.load %q : !tt.ptr<f32>
  %ga = ttg.async_commit_group tokens %a
  %w = ttg.async_wait %ga {num = 0 : i32}
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// A load by one role, a wait by another: found through the captured barrier,
// which is one of two.
// CHECK: kperf.flows = [{issue = array<i32: [[LOAD:[0-9]+]], 1>, scope = 0 : i32, slots = 2 : i32, via = "mbarrier", wait = array<i32: [[WAIT:[0-9]+]], 1>}]
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @roles(%d: !tt.tensordesc<64x64xf16, #shared>) {
  %c0 = arith.constant 0 : i32
  %bars = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #shared1, #smem, mutable>
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttg.warp_specialize(%d, %bars, %m)
  default {
    %b = ttg.memdesc_index %bars[%c0] : !ttg.memdesc<2x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.wait_barrier %b, %c0 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttg.warp_yield
  }
  partition0(%e: !tt.tensordesc<64x64xf16, #shared>, %f: !ttg.memdesc<2x1xi64, #shared1, #smem, mutable>, %g: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) num_warps(1) {
    %z = arith.constant 0 : i32
    %true = arith.constant true
    %b = ttg.memdesc_index %f[%z] : !ttg.memdesc<2x1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.async_tma_copy_global_to_local %e[%z, %z] %g, %b, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttg.warp_return
  } : (!tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<2x1xi64, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) -> ()
  tt.return
}
}
