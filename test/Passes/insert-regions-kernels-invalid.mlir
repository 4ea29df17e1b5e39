// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass kperf-insert-regions

module {
  tt.func public @first() {
    tt.return
  }
  // expected-error@+1 {{kperfir instruments one kernel per module, found a second}}
  tt.func public @second() {
    tt.return
  }
}

// -----

// expected-error@+1 {{found no public function to instrument}}
module {
  tt.func private @helper() {
    tt.return
  }
}
