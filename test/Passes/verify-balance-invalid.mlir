// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass kperf-verify-balance

tt.func public @never_started() {
  // expected-error@+1 {{ends region "a", which is not open here; open: none}}
  kperf.record end "a"
  tt.return
}

// -----

tt.func public @never_ended() {
  // expected-note@+1 {{started here}}
  kperf.record start "a"
  // expected-error@+1 {{region "a" is not ended on a path to here}}
  tt.return
}

// -----

tt.func public @overlap() {
  kperf.record start "a"
  // expected-note@+1 {{started here}}
  kperf.record start "b"
  // expected-error@+1 {{ends region "a" while region "b", started inside it, is open}}
  kperf.record end "a"
  kperf.record end "b"
  tt.return
}

// -----

tt.func public @started_twice() {
  // expected-note@+1 {{started here}}
  kperf.record start "a" kind load
  // expected-error@+1 {{starts region "a" while it is open}}
  kperf.record start "a" kind load
  tt.return
}

// -----

tt.func public @ended_on_some_paths(%c: i1) {
  kperf.record start "a"
  // expected-error@+1 {{region "a" is ended on some paths only}}
  scf.if %c {
    kperf.record end "a"
  }
  tt.return
}

// -----

tt.func public @replaced_in_branch(%c: i1) {
  kperf.record start "a"
  // expected-error@+1 {{region "a" is ended on some paths only}}
  scf.if %c {
    kperf.record end "a"
    kperf.record start "b"
  }
  tt.return
}

// -----

tt.func public @paths_disagree(%c: i1) {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  kperf.record start "a"
  // expected-error@+1 {{paths that meet after this have different regions open}}
  cf.br ^bb2
^bb2:
  tt.return
}

// -----

// A loop in a while in a loop: the region of the inner one is left open.
tt.func public @open_in_nested_loop(%c: i1, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.while (%d = %c) : (i1) -> i1 {
      scf.condition(%d) %d : i1
    } do {
    ^bb0(%d: i1):
      // expected-error@+1 {{region "a" is not ended on a path to here}}
      scf.for %j = %c0 to %n step %c1 : i32 {
        // expected-note@+1 {{started here}}
        kperf.record start "a"
      }
      scf.yield %d : i1
    }
  }
  tt.return
}
