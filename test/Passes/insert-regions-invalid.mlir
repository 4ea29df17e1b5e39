// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass "kperf-insert-regions{regions=load,launch}"

// expected-error@+1 {{'launch' is no kind of region and no policy}}
module {
  tt.func public @k() {
    tt.return
  }
}
