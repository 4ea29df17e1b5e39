// RUN: not kperfir opt %s --pass "kperf-plan-buffer{buffer-bytes=lots}" 2>&1 | filecheck %s --check-prefix NUMBER
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{strategy=all}" 2>&1 | filecheck %s --check-prefix CHOICE
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{bytes=1}" 2>&1 | filecheck %s --check-prefix UNKNOWN
// RUN: not kperfir opt %s --pass "kperf-verify-balance{fast=1}" 2>&1 | filecheck %s --check-prefix NONE
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{sample-ctas=0}" 2>&1 | filecheck %s --check-prefix MINIMUM
// RUN: not kperfir opt %s --pass "kperf-plan-buffer{" 2>&1 | filecheck %s --check-prefix SYNTAX
// RUN: not kperfir opt %s --pass "kperf-plan" 2>&1 | filecheck %s --check-prefix NAME

// NUMBER: error: kperf-plan-buffer: buffer-bytes is 'lots', expected a whole number of at least 0
// CHOICE: error: kperf-plan-buffer: strategy is 'all', expected one of saturate, ring
// UNKNOWN: error: kperf-plan-buffer: unknown option 'bytes', expected one of buffer-bytes, words-per-warp,
// NONE: error: kperf-verify-balance: unknown option 'fast', expected none
// MINIMUM: error: kperf-plan-buffer: sample-ctas is '0', expected a whole number of at least 1
// SYNTAX: a pass pipeline cannot be read
// NAME: there is no such pass
module {
}
