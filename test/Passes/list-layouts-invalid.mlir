// RUN: not kperfir opt %s --pass "kperf-list-layouts{sort=1}" 2>&1 | filecheck %s

// CHECK: kperf-list-layouts
// CHECK-SAME: sort
module {}
