//===- Program.cpp - Names of what a program consists of ------------------===//

#include "Simt/Exec/Program.h"

#include "Simt/Exec/Types.h"

#include <iterator>

namespace kperfir::simt {
namespace {

struct TypeInfo {
  const char *name;
  unsigned bits;
};

constexpr TypeInfo kTypes[] = {
    {"", 0},       {"pred", 0},    {"b8", 8},      {"u8", 8},
    {"s8", 8},     {"b16", 16},    {"u16", 16},    {"s16", 16},
    {"b32", 32},   {"u32", 32},    {"s32", 32},    {"b64", 64},
    {"u64", 64},   {"s64", 64},    {"b128", 128},  {"f16", 16},
    {"bf16", 16},  {"f16x2", 32},  {"bf16x2", 32}, {"f32", 32},
    {"f32x2", 64}, {"f64", 64},    {"tf32", 32},   {"e4m3", 8},
    {"e5m2", 8},   {"e4m3x2", 16}, {"e5m2x2", 16}, {"u16x2", 32},
    {"s16x2", 32}, {"u4", 4},      {"s4", 4},      {"b1", 1},
};
static_assert(std::size(kTypes) == static_cast<size_t>(Type::B1) + 1);

constexpr const char *kOpcodes[] = {
    "invalid",
    "mov",
    "mov-special",
    "ld.param",
    "cvta",
    "isspacep",
    "mapa",
    "pack",
    "unpack",
    "add",
    "sub",
    "mul",
    "mad",
    "mad24",
    "mul24",
    "addc",
    "subc",
    "madc",
    "sad",
    "div",
    "rem",
    "abs",
    "neg",
    "min",
    "max",
    "popc",
    "clz",
    "bfind",
    "fns",
    "brev",
    "bfe",
    "bfi",
    "bmsk",
    "szext",
    "dp4a",
    "dp2a",
    "and",
    "or",
    "xor",
    "not",
    "cnot",
    "lop3",
    "shl",
    "shr",
    "shf",
    "prmt",
    "fma",
    "rcp",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
    "copysign",
    "testp",
    "cvt",
    "set",
    "setp",
    "selp",
    "slct",
    "shfl",
    "vote",
    "match",
    "redux",
    "activemask",
    "elect",
    "createpolicy",
    "bra",
    "brx.idx",
    "ret",
    "trap",
    "brkpt",
    "nanosleep",
    "nop",
    "ld",
    "st",
    "atom",
    "red",
    "fence",
    "prefetch",
    "bar.sync",
    "bar.arrive",
    "bar.red",
    "bar.warp.sync",
    "barrier.cluster.arrive",
    "barrier.cluster.wait",
    "mbarrier.init",
    "mbarrier.inval",
    "mbarrier.arrive",
    "mbarrier.expect_tx",
    "mbarrier.test_wait",
    "mbarrier.try_wait",
    "mbarrier.pending_count",
    "mbarrier.complete_tx",
    "cp.async",
    "cp.async.commit_group",
    "cp.async.wait_group",
    "cp.async.wait_all",
    "cp.async.mbarrier.arrive",
    "ldmatrix",
    "stmatrix",
    "mma",
    "movmatrix",
    "wgmma",
    "wgmma.fence",
    "wgmma.commit_group",
    "wgmma.wait_group",
    "cp.async.bulk",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group",
    "tensormap.replace",
    "tensormap.cp_fenceproxy",
    "printf",
    "assertfail",
};
static_assert(std::size(kOpcodes) ==
              static_cast<size_t>(Opcode::AssertFail) + 1);

constexpr const char *kLatencies[] = {
    "alu",        "alu-64",     "int-mul",    "int-mul-wide", "int-mul-64",
    "int-div-32", "int-div-64", "fma",        "half",         "fp64",
    "sfu",        "ex2",        "div-approx", "div-full",     "div-rn-32",
    "sqrt-rn-32", "div-64-fp",  "convert",    "convert-half", "predicate",
    "select",     "mov",        "special",    "clock",        "shuffle",
    "vote",       "match",      "redux",      "branch",       "barrier",
    "fence",      "load",       "store",      "atomic",       "load-param",
    "ldmatrix",   "stmatrix",   "async-copy", "async-group",  "mbarrier",
    "mma",        "syscall",    "nop",        "wgmma",        "bulk-copy",
    "bulk-group", "tensormap",  "cluster",
};
static_assert(std::size(kLatencies) == kNumLatencyClasses);

constexpr const char *kPipes[] = {"alu", "fma",    "half",   "fp64",  "sfu",
                                  "lsu", "tensor", "branch", "async", "none"};
static_assert(std::size(kPipes) == kNumPipes);

} // namespace

unsigned typeBits(Type type) { return kTypes[static_cast<size_t>(type)].bits; }
const char *typeName(Type type) {
  return kTypes[static_cast<size_t>(type)].name;
}
const char *opcodeName(Opcode opcode) {
  return kOpcodes[static_cast<size_t>(opcode)];
}
const char *latencyClassName(LatencyClass latency) {
  return kLatencies[static_cast<size_t>(latency)];
}
const char *pipeName(Pipe pipe) { return kPipes[static_cast<size_t>(pipe)]; }

std::optional<Type> typeFromName(std::string_view name) {
  for (size_t i = 1; i < std::size(kTypes); ++i)
    if (name == kTypes[i].name)
      return static_cast<Type>(i);
  return std::nullopt;
}

HostIsa detectHostIsa() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return HostIsa::Avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c"))
    return HostIsa::Avx2;
  return HostIsa::Baseline;
}

std::optional<HostIsa> hostIsaFromName(std::string_view name) {
  for (HostIsa isa : {HostIsa::Baseline, HostIsa::Avx2, HostIsa::Avx512})
    if (name == hostIsaName(isa))
      return isa;
  return std::nullopt;
}

const char *hostIsaName(HostIsa isa) {
  switch (isa) {
  case HostIsa::Baseline:
    return "baseline";
  case HostIsa::Avx2:
    return "avx2";
  case HostIsa::Avx512:
    return "avx512";
  }
  return "unknown";
}

} // namespace kperfir::simt
