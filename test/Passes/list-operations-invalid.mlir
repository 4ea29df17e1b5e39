// RUN: kperfir opt %s --verify-diagnostics --pass "kperf-list-operations"

// expected-error@+1 {{found no public function to instrument}}
module {}
