// RUN: kperfir opt %s --verify-diagnostics --pass "kperf-drop-scopes{all=1}"

// expected-error@+1 {{unknown option 'all', expected none}}
module {}
