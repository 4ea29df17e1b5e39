// RUN: kperfir opt %s --pass kperf-assign-frames --split-input-file | filecheck %s

// Ids are dense, in program order of the first start; the end of one region and
// the start of the next share a stamp, over constants and scalars too.
// CHECK: kperf.frames = [{{\[}}[#kperf_gpu.event<start 0>], [#kperf_gpu.event<end 0>, #kperf_gpu.event<start 1>], [#kperf_gpu.event<end 1>]]]
// CHECK-SAME: kperf.regions = [
// CHECK-SAME: {column = 3 : i32, file = "k.py", kind = "load", line = 4 : i32, name = "load k.py:4", op = "tt.load", parent = -1 : i32}
// CHECK-SAME: {column = 5 : i32, file = "k.py", kind = "store", line = 5 : i32, name = "store k.py:5", op = "tt.store", parent = -1 : i32}
// CHECK-LABEL: tt.func public @shared_stamp
// CHECK-NEXT: kperf_gpu.init
// CHECK-NEXT: %[[F:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<0, 3>
// CHECK-NEXT: kperf_gpu.stamp %[[F]][0] start 0
// CHECK-NEXT: tt.load
// CHECK-NEXT: kperf_gpu.stamp %[[F]][1] end 0, start 1
// CHECK-NEXT: arith.constant
// CHECK-NEXT: arith.addi
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf_gpu.stamp %[[F]][2] end 1
// CHECK-NEXT: kperf_gpu.close_frame %[[F]]
// CHECK-NEXT: kperf_gpu.finalize
// CHECK-NEXT: tt.return
module {
  tt.func public @shared_stamp(%p: !tt.ptr<f32>, %n: i32) {
    kperf.record start "load k.py:4" kind load of "tt.load" loc("k.py":4:3)
    %x = tt.load %p : !tt.ptr<f32>
    kperf.record end "load k.py:4" kind load
    %c = arith.constant 1 : i32
    %m = arith.addi %n, %c : i32
    kperf.record start "store k.py:5" kind store of "tt.store" loc("k.py":5:5)
    tt.store %p, %x : !tt.ptr<f32>
    kperf.record end "store k.py:5" kind store
    tt.return
  }
}

// -----

// A tensor operation is work: it separates stamps. A region's own two borders
// never share one.
// CHECK-LABEL: tt.func public @work_between
// CHECK: kperf_gpu.stamp %{{.*}}[0] start 0 : !kperf_gpu.frame<0, 4>
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[1] end 0
// CHECK-NEXT: arith.addf
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[2] start 1
// CHECK: kperf_gpu.stamp %{{.*}}[3] end 1
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @work_between(%v: tensor<128xf32, #blocked>) {
    kperf.record start "a"
    kperf.record end "a"
    %w = arith.addf %v, %v : tensor<128xf32, #blocked>
    kperf.record start "b"
    kperf.record end "b"
    tt.return
  }
}

// -----

// What records inside ends a frame; what does not is passed over.
// CHECK-LABEL: tt.func public @control_flow
// CHECK: kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[0] start 0, start 1
// CHECK-NEXT: kperf_gpu.close_frame
// CHECK-NEXT: scf.for
// CHECK-NEXT: kperf_gpu.open_frame : !kperf_gpu.frame<1, 2>
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[0] start 2
// CHECK-NEXT: scf.if
// CHECK: }
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[1] mark 3
// CHECK-NEXT: kperf_gpu.close_frame
// CHECK-NEXT: }
// CHECK-NEXT: kperf_gpu.open_frame : !kperf_gpu.frame<2, 1>
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[0] end 1, end 0
// CHECK-NEXT: kperf_gpu.close_frame
module {
  tt.func public @control_flow(%c: i1, %n: i32, %p: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    kperf.record start "k" kind kernel
    kperf.record start "l" kind loop
    scf.for %i = %c0 to %n step %c1 : i32 {
      kperf.record start "i" kind iteration
      scf.if %c {
        %x = tt.load %p : !tt.ptr<f32>
        tt.store %p, %x : !tt.ptr<f32>
      }
      kperf.mark "m"
    }
    kperf.record end "l" kind loop
    kperf.record end "k" kind kernel
    tt.return
  }
}

// -----

// Every return finalizes. Both branches start region 0; it exists once.
// CHECK-LABEL: tt.func public @early_return
// CHECK-NEXT: kperf_gpu.init
// CHECK-COUNT-2: kperf_gpu.finalize
// CHECK-NOT: kperf_gpu.finalize
module {
  tt.func public @early_return(%c: i1) {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    kperf.record start "a"
    kperf.record end "a"
    tt.return
  ^bb2:
    kperf.record start "a"
    kperf.record end "a"
    tt.return
  }
}

// -----

// State passes through the headers where warps change: around a default region
// that records and inside each partition that does.
// CHECK-LABEL: tt.func public @warp_specialized
// CHECK: kperf_gpu.detach
// CHECK-NEXT: ttg.warp_specialize
// CHECK-NEXT: default {
// CHECK-NEXT: kperf_gpu.attach
// CHECK: kperf_gpu.close_frame
// CHECK-NEXT: kperf_gpu.detach
// CHECK-NEXT: ttg.warp_yield
// CHECK: partition0
// CHECK-NEXT: kperf_gpu.attach
// CHECK: kperf_gpu.detach
// CHECK-NEXT: ttg.warp_return
// CHECK: partition1
// CHECK-NEXT: ttg.warp_return
// CHECK: kperf_gpu.attach
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @warp_specialized() {
    kperf.record start "k"
    ttg.warp_specialize()
    default {
      kperf.mark "d"
      ttg.warp_yield
    }
    partition0() num_warps(1) {
      kperf.mark "p"
      ttg.warp_return
    }
    partition1() num_warps(1) {
      ttg.warp_return
    } : () -> ()
    kperf.record end "k"
    tt.return
  }
}

// -----

// Stamps that were chosen are made so: records that might share one stay apart,
// a frame begins where it was said, and records that nobody chose have frames of
// their own.
// CHECK-LABEL: tt.func public @chosen
// CHECK: %[[A:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
// CHECK-NEXT: kperf_gpu.stamp %[[A]][0] start 0 : !kperf_gpu.frame<0, 2>
// CHECK-NEXT: kperf_gpu.stamp %[[A]][1] start 1, mark 2 : !kperf_gpu.frame<0, 2>
// CHECK-NEXT: kperf_gpu.close_frame %[[A]]
// CHECK-NEXT: arith.addf
// CHECK-NEXT: %[[B:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<1, 1>
// CHECK-NEXT: kperf_gpu.stamp %[[B]][0] end 1 : !kperf_gpu.frame<1, 1>
// CHECK-NEXT: kperf_gpu.close_frame %[[B]]
// CHECK-NEXT: %[[C:.*]] = kperf_gpu.open_frame : !kperf_gpu.frame<2, 1>
// CHECK-NEXT: kperf_gpu.stamp %[[C]][0] end 0 : !kperf_gpu.frame<2, 1>
// CHECK-NEXT: kperf_gpu.close_frame %[[C]]
// CHECK-NOT: kperf.stamp
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @chosen(%v: tensor<128xf32, #blocked>) {
    kperf.record start "a" {kperf.stamp = array<i32: 0, 0>}
    kperf.record start "b" {kperf.stamp = array<i32: 0, 1>}
    kperf.mark "m" {kperf.stamp = array<i32: 0, 1>}
    %w = arith.addf %v, %v : tensor<128xf32, #blocked>
    kperf.record end "b" {kperf.stamp = array<i32: 1, 0>}
    kperf.record end "a"
    tt.return
  }
}

// -----

// A gap takes the stamp of the record right before it; without one it is
// nothing.
// CHECK: kperf.frames = [{{\[}}[#kperf_gpu.event<start 0>, #kperf_gpu.event<gap 1>], [#kperf_gpu.event<end 0>]]]
// CHECK-LABEL: tt.func public @gap
// CHECK: kperf_gpu.stamp %{{.*}}[0] start 0, gap 1
// CHECK-NEXT: tt.load
// CHECK-NEXT: tt.store
// CHECK-NEXT: kperf_gpu.stamp %{{.*}}[1] end 0
tt.func public @gap(%p: !tt.ptr<f32>) {
  kperf.record start "k" kind kernel
  kperf.record gap "between" kind between
  %x = tt.load %p : !tt.ptr<f32>
  kperf.record gap "nothing" kind between
  tt.store %p, %x : !tt.ptr<f32>
  kperf.record end "k" kind kernel
  tt.return
}
