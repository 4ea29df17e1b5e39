// RUN: kperfir opt %s --pass "kperf-insert-regions{budget=6}" | filecheck %s --check-prefix=SIX
// RUN: kperfir opt %s --pass "kperf-insert-regions{budget=4}" | filecheck %s --check-prefix=FOUR

// The iteration begins (1), four regions touch each other (5 stamps): 6 in all.
// SIX-NOT: kperf.notes
// SIX: kind load
// SIX: kind atomic
// SIX: kind barrier
// SIX: kind store

// Without barrier and atomic: 1, and 2 regions that do not touch. Without the
// store as well: 3 stamps.
// FOUR: kperf.notes = ["loop k.py:7: not recorded, for the budget of 4 records per iteration: barrier, atomic, store"]
// FOUR: kind load
// FOUR-NOT: kind {{atomic|barrier|store}}
// FOUR: end "loop
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
