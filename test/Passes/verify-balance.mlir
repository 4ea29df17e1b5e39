// RUN: kperfir opt %s --pass kperf-verify-balance --split-input-file | filecheck %s

// Regions that nest on every path are left as they are: over loops, branches,
// early returns, and with iterations that nothing ends.
// CHECK-LABEL: tt.func public @balanced
// CHECK-COUNT-8: kperf.record
tt.func public @balanced(%c: i1, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  kperf.record start "a"
  scf.for %i = %c0 to %n step %c1 : i32 {
    kperf.record start "i" kind iteration
    scf.if %c {
      kperf.record start "b"
      kperf.record end "b"
    }
  }
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  kperf.record end "a"
  tt.return
^bb2:
  kperf.record start "d"
  kperf.record end "d"
  kperf.record end "a"
  tt.return
}

// -----

// The warps of a partition have a stack of their own.
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: tt.func public @partitions
tt.func public @partitions() {
  kperf.record start "k"
  ttg.warp_specialize()
  default {
    kperf.record start "d"
    kperf.record end "d"
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    // CHECK: partition0
    // CHECK-NEXT: kperf.record start "k"
    kperf.record start "k"
    kperf.record end "k"
    ttg.warp_return
  } : () -> ()
  kperf.record end "k"
  tt.return
}
}

// -----

// A user's scope may hold another one of its name.
// CHECK-LABEL: @same_name
tt.func public @same_name() {
  kperf.record start "a"
  kperf.record start "a"
  kperf.record end "a"
  kperf.record end "a"
  tt.return
}
