// RUN: kperfir opt %s --split-input-file --verify-diagnostics

tt.func public @no_name() {
  // expected-error@+1 {{needs the name of a region}}
  kperf.record start ""
  tt.return
}

// -----

tt.func public @no_event() {
  // expected-error@+1 {{needs the name of an event}}
  kperf.mark ""
  tt.return
}

// -----

tt.func public @mark_as_record() {
  // expected-error@+1 {{records a start or an end; for a mark use kperf.mark}}
  kperf.record mark "a"
  tt.return
}

// -----

tt.func public @gap_of_load() {
  // expected-error@+1 {{begins gap "a" of kind load; what lies between two records is compute or between}}
  kperf.record gap "a" kind load
  tt.return
}

// -----

tt.func public @end_of_iteration() {
  // expected-error@+1 {{ends iteration "a"; an iteration ends with its loop}}
  kperf.record end "a" kind iteration
  tt.return
}

// -----

tt.func public @no_kind() {
  // expected-error@+2 {{expected ::mlir::kperf::Kind to be one of}}
  // expected-error@+2 {{failed to parse KPerf_KindAttr}}
  kperf.record start "a" kind launch
  tt.return
}

// -----

tt.func public @unsigned_nothing() {
  // expected-error@+1 {{is unsigned without an integer to read so}}
  kperf.mark "tile" unsigned
  tt.return
}

// -----

tt.func public @unsigned_float(%f: f32) {
  // expected-error@+1 {{is unsigned without an integer to read so}}
  kperf.mark "tile"(%f : f32) unsigned
  tt.return
}

// -----

tt.func public @narrow(%i: i16) {
  // expected-error@+1 {{must be an i32, i64, f32 or f64}}
  kperf.mark "tile"(%i : i16)
  tt.return
}
