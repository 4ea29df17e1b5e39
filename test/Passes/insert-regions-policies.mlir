// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=minimal}" | filecheck %s --check-prefix=MINIMAL
// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=memory}" | filecheck %s --check-prefix=MEMORY
// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=sync}" | filecheck %s --check-prefix=SYNC
// RUN: kperfir opt %s --pass "kperf-insert-regions{regions=mma,store}" | filecheck %s --check-prefix=MMA

// MINIMAL: kind kernel
// MINIMAL: kind loop
// MINIMAL-NOT: kind {{iteration|load|atomic|barrier|store}}
// MINIMAL: end "k" kind kernel

// MEMORY: kind iteration
// MEMORY: kind load
// MEMORY: kind atomic
// MEMORY-NOT: kind barrier
// MEMORY: kind store

// SYNC: kind iteration
// SYNC-NOT: kind load
// SYNC: kind atomic
// SYNC: kind barrier
// SYNC-NOT: kind store

// A policy and a kind: both.
// MMA: kind loop
// MMA-NOT: kind {{load|atomic|barrier}}
// MMA: kind store
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32> loc("k.py":8:3)
    %a = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32 loc("k.py":9:3)
    gpu.barrier loc("k.py":10:3)
    tt.store %p, %x : !tt.ptr<f32> loc("k.py":11:3)
  } loc("k.py":7:1)
  tt.return
}
