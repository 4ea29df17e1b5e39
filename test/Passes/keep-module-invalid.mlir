// RUN: kperfir opt %s --verify-diagnostics --pass "kperf-keep-module{action=restore}"
// RUN: not kperfir opt %s --pass "kperf-keep-module{action=drop}" 2>&1 | filecheck %s

// CHECK: action is 'drop', expected one of keep, restore, forget
// expected-error@+1 {{there is nothing to restore}}
module {}
