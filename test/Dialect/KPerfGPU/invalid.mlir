// RUN: kperfir opt %s --split-input-file --verify-diagnostics

tt.func public @slot_outside() {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
  // expected-error@+1 {{slot 1 is outside the frame's 1 slots}}
  kperf_gpu.stamp %f[1] start 0 : !kperf_gpu.frame<0, 1>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
  tt.return
}

// -----

tt.func public @slot_missing() {
  // expected-error@+1 {{slot 1 is never stamped}}
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
  kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 2>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
  tt.return
}

// -----

tt.func public @slot_twice() {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
  // expected-error@+1 {{stamps slot 0 a second time}}
  kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 1>
  kperf_gpu.stamp %f[0] end 0 : !kperf_gpu.frame<0, 1>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
  tt.return
}

// -----

tt.func public @slots_out_of_order() {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 2>
  kperf_gpu.stamp %f[1] start 0 : !kperf_gpu.frame<0, 2>
  // expected-error@+1 {{stamps slot 0 after slot 1}}
  kperf_gpu.stamp %f[0] end 0 : !kperf_gpu.frame<0, 2>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 2>
  tt.return
}

// -----

tt.func public @stamp_after_close() {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
  // expected-error@+1 {{uses a frame after it was closed}}
  kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 1>
  tt.return
}

// -----

tt.func public @never_closed() {
  // expected-error@+1 {{must be closed exactly once, is closed 0 times}}
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
  kperf_gpu.stamp %f[0] start 0 : !kperf_gpu.frame<0, 1>
  tt.return
}

// -----

// expected-error@+1 {{a frame has at least one slot}}
tt.func private @empty_frame(!kperf_gpu.frame<0, 0>)

// -----

// expected-error@+1 {{frame id 1048576 does not fit a tag; at most 1048575}}
tt.func private @large_id(!kperf_gpu.frame<1048576, 1>)

// -----

tt.func public @unknown_event() {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
  // expected-error@+1 {{expected start, end or mark, found stop}}
  kperf_gpu.stamp %f[0] stop 0 : !kperf_gpu.frame<0, 1>
  tt.return
}

// -----

tt.func public @init_in_loop(%c: i1) {
  cf.br ^bb1
^bb1:
  // expected-error@+1 {{must stand in the entry block of the kernel}}
  kperf_gpu.init
  cf.cond_br %c, ^bb1, ^bb2
^bb2:
  tt.return
}

// -----

tt.func public @value_missing(%i: i32) {
  // expected-error@+1 {{word 1 for values is never stored}}
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1, 2>
  kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1, 2>
  kperf_gpu.store_value %f[0], %i : i32 in !kperf_gpu.frame<0, 1, 2>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1, 2>
  tt.return
}

// -----

tt.func public @value_twice(%i: i32, %l: i64) {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1, 2>
  kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1, 2>
  // expected-error@+1 {{stores word 1 a second time}}
  kperf_gpu.store_value %f[1], %i : i32 in !kperf_gpu.frame<0, 1, 2>
  kperf_gpu.store_value %f[0], %l : i64 in !kperf_gpu.frame<0, 1, 2>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1, 2>
  tt.return
}

// -----

tt.func public @value_outside(%l: i64) {
  %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1, 1>
  kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1, 1>
  // expected-error@+1 {{word 1 is outside the frame's 1 for values}}
  kperf_gpu.store_value %f[0], %l : i64 in !kperf_gpu.frame<0, 1, 1>
  kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1, 1>
  tt.return
}
