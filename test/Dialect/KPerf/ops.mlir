// RUN: kperfir opt %s | filecheck %s
// RUN: kperfir opt %s > %t.mlir && kperfir opt %t.mlir | filecheck %s

// CHECK-LABEL: tt.func public @records
tt.func public @records(%i: i32, %l: i64, %f: f32, %d: f64) {
  // Kind and origin are left out where they are the default.
  // CHECK: kperf.record start "outer"{{$}}
  kperf.record start "outer"
  // CHECK: kperf.record start "load k.py:3" kind load of "tt.load"
  kperf.record start "load k.py:3" kind load of "tt.load"
  // CHECK: kperf.record end "load k.py:3" kind load
  kperf.record end "load k.py:3" kind load
  // CHECK: kperf.record gap "compute k.py:4" kind compute of "arith.addf"
  kperf.record gap "compute k.py:4" kind compute of "arith.addf"
  // CHECK: kperf.record start "iteration k.py:2" kind iteration of "scf.for"
  kperf.record start "iteration k.py:2" kind iteration of "scf.for"
  // CHECK: kperf.mark "tile done"
  kperf.mark "tile done"
  // CHECK: kperf.mark "tile"(%{{.*}} : i32){{$}}
  kperf.mark "tile"(%i : i32)
  // CHECK: kperf.mark "offset"(%{{.*}} : i64) unsigned
  kperf.mark "offset"(%l : i64) unsigned
  // CHECK: kperf.mark "sum"(%{{.*}} : f32)
  kperf.mark "sum"(%f : f32)
  // CHECK: kperf.mark "sum"(%{{.*}} : f64)
  kperf.mark "sum"(%d : f64)
  // CHECK: kperf.record end "outer"
  kperf.record end "outer"
  tt.return
}
