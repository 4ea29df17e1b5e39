// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass kperf-assign-frames

// Without balance there are no parents: the pass checks it again.
tt.func public @never_ended() {
  // expected-note@+1 {{started here}}
  kperf.record start "a"
  // expected-error@+1 {{region "a" is not ended on a path to here}}
  tt.return
}
