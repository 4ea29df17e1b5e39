// RUN: kperfir opt %s --verify-diagnostics --pass "kperf-run-policy{library=/nowhere/p.so policy=mine}"

// expected-error@+1 {{the library of policy mine cannot be loaded}}
module {}
