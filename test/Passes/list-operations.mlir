// RUN: kperfir opt %s --pass kperf-list-operations | filecheck %s
// RUN: kperfir opt %s --pass kperf-list-operations,kperf-insert-at | filecheck %s --check-prefix GONE

// In the order of the text, outer operations first; a value is named by what it
// comes from.
// CHECK: kperf.operations = "[
// CHECK-SAME: \22column\22:1,\22file\22:\22k.py\22,\22kind\22:\22load\22,\22line\22:5,\22loop_depth\22:1,\22name\22:\22tt.load\22,\22operands\22:[\22parameter:0\22],\22parent\22:2,\22partition\22:\22default\22,\22results\22:[\22f32\22]}
// CHECK-SAME: \22name\22:\22arith.addi\22,\22operands\22:[\22argument:2:0\22,\22result:1:0\22]
// GONE-NOT: kperf.operations
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32> loc("k.py":5:1)
    %j = arith.addi %i, %c1 : i32
  }
  tt.return
}
