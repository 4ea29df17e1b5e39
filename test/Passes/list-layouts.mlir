// RUN: kperfir opt %s --pass kperf-list-layouts | filecheck %s

// Four numbers of a thread, 32 threads and four warps in a row; of a scalar
// there is nothing to say.
// CHECK: kperf.layouts = "[
// CHECK-SAME: [\22tt.load\22,\22\22],
// CHECK-SAME: [\22tt.load\22,\22#ttg.linear<{register = {{\[\[}}1], [2]], lane = {{\[\[}}4], [8], [16], [32], [64]], warp = {{\[\[}}128], [256]], block = []}>\22]]"
#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %s = tt.load %p : !tt.ptr<f32>
    %range = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked>
    %base = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #blocked>
    %pointers = tt.addptr %base, %range : tensor<512x!tt.ptr<f32>, #blocked>, tensor<512xi32, #blocked>
    %x = tt.load %pointers : tensor<512x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
