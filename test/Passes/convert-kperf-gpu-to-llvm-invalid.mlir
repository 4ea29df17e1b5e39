// RUN: kperfir opt %s --split-input-file --verify-diagnostics --pass "convert-kperf-gpu-to-llvm{target=amd}"

// expected-error@+1 {{has no kperf.plan; run kperf-plan-buffer before convert-kperf-gpu-to-llvm}}
module {
  llvm.func @no_plan(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

// expected-error@+1 {{kperf.plan has no}}
module attributes {kperf.plan = {ring = 0 : i32}} {
  llvm.func @part_of_a_plan(%s: !llvm.ptr<1>) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    llvm.return
  }
}

// -----

module attributes {kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @indirect(%s: !llvm.ptr<1>, %to: !llvm.ptr) {
    kperf_gpu.init(%s : !llvm.ptr<1>)
    // expected-error@+1 {{kperfir cannot follow control flow through llvm.indirectbr}}
    llvm.indirectbr %to : !llvm.ptr, [^bb1]
  ^bb1:
    llvm.return
  }
}

// -----

module attributes {kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @frame_without_init() {
    // expected-error@+1 {{must come after kperf_gpu.init or kperf_gpu.attach}}
    %f = kperf_gpu.open_frame : !kperf_gpu.frame<0, 1>
    kperf_gpu.stamp %f[0] mark 0 : !kperf_gpu.frame<0, 1>
    kperf_gpu.close_frame %f : !kperf_gpu.frame<0, 1>
    llvm.return
  }
}

// -----

module attributes {kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @late_attach() {
    llvm.br ^bb1
  ^bb1:
    // expected-error@+1 {{must come after a kperf_gpu.init or kperf_gpu.attach in the region's entry block}}
    kperf_gpu.attach
    llvm.return
  }
}

// -----

module attributes {kperf.plan = {global = 0 : i32, hands_over = 0 : i32, hash = 5 : i32, max_frame_words = 2 : i32, offset = 0 : i32, ring = 0 : i32, sample_ctas = 1 : i32, shared_bytes = 0 : i32, total_warps = 4 : i32, warps = 4 : i32, words_per_warp = 64 : i32}} {
  llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>
  llvm.func @unplanned() {
    // expected-error@+1 {{has no scratch; run kperf-plan-buffer first}}
    kperf_gpu.init
    llvm.return
  }
}
