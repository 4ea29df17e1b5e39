// RUN: kperfir opt %s --pass kperf-drop-scopes --locations | filecheck %s

// What the same source without scopes compiles to.
// CHECK-NOT: kperf.
// CHECK: tt.func public @k
// CHECK-NEXT: tt.load %{{.*}} loc([[X:#.*]])
// CHECK-NEXT: tt.return
// CHECK: = loc("k.py":5:1)
// CHECK: [[X]] = loc("x"(
// CHECK-NOT: kperf.
tt.func public @k(%p: !tt.ptr<f32>, %i: i32) {
  %0 = tt.elementwise_inline_asm "// kperf.mark|i|tile" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %i : i32 -> i32
  %x = tt.load %p : !tt.ptr<f32> loc("x"("kperf.scope|3:5:0:s"("k.py":5:1)))
  tt.return
}
