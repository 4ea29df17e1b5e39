// RUN: kperfir opt %s --verify-diagnostics --pass "kperf-insert-scopes{regions=load}"

// expected-error@+1 {{unknown option 'regions', expected none}}
module {}
