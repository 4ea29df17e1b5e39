// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass "kperf-fill-gaps{regions=load,launch}"

// expected-error@+1 {{kperf-fill-gaps: 'launch' is no kind of region and no policy}}
module {
  tt.func public @k() {
    tt.return
  }
}
