// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=sleep:x frames=0:before:start.0}" 2>&1 | filecheck %s --check-prefix REGION
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=load:x frames=9:before:start.0}" 2>&1 | filecheck %s --check-prefix NUMBER
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=load:x frames=4:after:start.0}" 2>&1 | filecheck %s --check-prefix BEHIND
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=load:x frames=0:before:begin.0}" 2>&1 | filecheck %s --check-prefix EDGE
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=load:x frames=0:before:mark.0}" 2>&1 | filecheck %s --check-prefix KIND
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=load:x frames=0:before:start.0+end.0}" 2>&1 | filecheck %s --check-prefix ONCE
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=mark:x frames=3:before:mark.0@result:9:0}" 2>&1 | filecheck %s --check-prefix VALUE
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=mark:x frames=3:before:mark.0@parameter:0}" 2>&1 | filecheck %s --check-prefix TYPE
// RUN: not kperfir opt %s --pass "kperf-insert-frames{regions=load:x frames=2:before:start.0;3:before:end.0}" 2>&1 | filecheck %s --check-prefix BLOCK

// REGION: found 'sleep:x', expected kind:name
// NUMBER: error: kperf-insert-frames: found '9:before:start.0', expected operation:before|after:events
// BEHIND: expected no stamp behind the last operation of a block
// EDGE: found 'begin.0', expected start|end|mark.region
// KIND: found 'mark.0', expected an edge that its region has
// ONCE: found 'end.0', expected one event of each region in a stamp
// VALUE: found 'mark.0@result:9:0', expected a value of the kernel
// TYPE: found 'mark.0@parameter:0', expected an i32, i64, f32 or f64, carried by a mark
// BLOCK: found '3:before:end.0', expected stamps of a frame in one block
tt.func public @k(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
  }
  tt.return
}
