// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=async_copy,async_wait},kperf-assign-frames" | filecheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
// A commit that is in no region at all leaves groups uncounted, like one that is
// in a region of others.
// CHECK-NOT: kperf.flows
// CHECK: tt.func public @outside
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @outside(%p: tensor<128x!tt.ptr<f32>, #blocked>, %q: !tt.ptr<f32>) {
  %m = ttg.local_alloc : () -> !ttg.memdesc<128xf32, #shared, #smem, mutable>
  %a = ttg.async_copy_global_to_local %p, %m : tensor<128x!tt.ptr<f32>, #blocked> -> <128xf32, #shared, #smem, mutable>
  %ga = ttg.async_commit_group tokens %a
  %x = tt.load %q : !tt.ptr<f32>
  %gb = ttg.async_commit_group
  %w = ttg.async_wait %gb {num = 1 : i32}
  tt.return
}
}
