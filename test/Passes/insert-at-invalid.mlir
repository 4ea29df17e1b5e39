// RUN: not kperfir opt %s --pass "kperf-insert-at{regions=0:9:user:x}" 2>&1 | filecheck %s --check-prefix NUMBER
// RUN: not kperfir opt %s --pass "kperf-insert-at{regions=0:0:sleep:x}" 2>&1 | filecheck %s --check-prefix KIND
// RUN: not kperfir opt %s --pass "kperf-insert-at{regions=1:0:user:x}" 2>&1 | filecheck %s --check-prefix ORDER
// RUN: not kperfir opt %s --pass "kperf-insert-at{regions=0:2:user:x}" 2>&1 | filecheck %s --check-prefix LAST
// RUN: not kperfir opt %s --pass "kperf-insert-at{marks=0:beside:x}" 2>&1 | filecheck %s --check-prefix SIDE
// RUN: not kperfir opt %s --pass "kperf-insert-at{marks=2:after:x}" 2>&1 | filecheck %s --check-prefix BEHIND
// RUN: not kperfir opt %s --pass "kperf-insert-at{marks=1:before:x:result:0:1}" 2>&1 | filecheck %s --check-prefix VALUE
// RUN: not kperfir opt %s --pass "kperf-insert-at{marks=1:before:x:result:0:0}" 2>&1 | filecheck %s --check-prefix TYPE

// NUMBER: error: kperf-insert-at: cannot read region '0:9:user:x', expected first:last:kind:name
// KIND: error: kperf-insert-at: cannot read region '0:0:sleep:x'
// ORDER: error: kperf-insert-at: a region begins here and ends at an operation that is not behind it
// LAST: error: kperf-insert-at: a region cannot end behind the last operation of a block
// SIDE: error: kperf-insert-at: cannot read mark '0:beside:x', expected operation:before|after:name[:value]
// BEHIND: error: kperf-insert-at: a mark cannot stand behind the last operation
// VALUE: error: kperf-insert-at: there is no value 'result:0:1'
// TYPE: error: kperf-insert-at: a mark carries an i32, i64, f32 or f64, 'result:0:0' is of type 'i16'
tt.func public @k() {
  %a = arith.constant 0 : i16
  %b = arith.constant 0 : i32
  tt.return
}
