// RUN: kperfir opt %s --pass kperf-insert-regions | filecheck %s

// A function that is not inlined is not looked into; the note says so.
// CHECK: kperf.notes = ["call k.py:2: no records from inside of helper, which is not inlined (noinline)"]
// CHECK: kperf.record start "call k.py:2" kind call of "tt.call"
// CHECK-NEXT: tt.call @helper
// CHECK-NEXT: kperf.record end "call k.py:2" kind call
// CHECK: tt.func private @helper
// CHECK-NOT: kperf.record
module {
  tt.func public @k(%p: !tt.ptr<f32>) {
    %x = tt.call @helper(%p) : (!tt.ptr<f32>) -> f32 loc("k.py":2:3)
    tt.return
  }
  tt.func private @helper(%p: !tt.ptr<f32>) -> f32 {
    %x = tt.load %p : !tt.ptr<f32>
    tt.return %x : f32
  }
}
