//===- Policy.h - Let your own C++ decide what kperfir records ------------===//
//
// The only header that a policy needs. A policy is a function over a module of
// TTGIR that asks for regions and marks:
//
//   #include "kperfir/Policy.h" // Before every header of LLVM and MLIR.
//
//   static bool markLoops(mlir::ModuleOp module) {
//     module->walk([](mlir::Operation *op) {
//       if (op->getName().getStringRef() == "scf.for")
//         kperfir::insertRegion(op, op, "a loop");
//     });
//     return true; // false: the kernel is compiled as it is.
//   }
//   KPERFIR_POLICY(loops, markLoops)
//
// Build it as a shared library, with the flags of docs/pass-authors.md, and run
// it with the pass `kperf-run-policy{library=<path> policy=loops}`. Header-only:
// it creates the operations by name, so it links against libtriton.so alone.
//
// Your library runs in Triton's process against an LLVM that is a little newer
// than its headers. What is safe there is in docs/pass-authors.md; in short:
// name the operations of other dialects, do not use their C++ classes.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_POLICY_H
#define KPERFIR_POLICY_H

// libtriton.so was built with assertions, which changes the layout of LLVM's
// classes; what is defined here stands for llvm/Config/abi-breaking.h.
#ifdef LLVM_ABI_BREAKING_CHECKS_H
#error "include kperfir/Policy.h before every header of LLVM and MLIR"
#endif
#ifdef NDEBUG
#error "a policy has to be compiled without NDEBUG, as libtriton.so was"
#endif
#define LLVM_ABI_BREAKING_CHECKS_H
#define LLVM_ENABLE_ABI_BREAKING_CHECKS 1
#define LLVM_ENABLE_REVERSE_ITERATION 0

#include "llvm/Config/llvm-config.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <string>

namespace kperfir {

/// Of this file. A library that was built with another one is refused.
inline constexpr uint32_t kPolicyVersion = 1;

/// What a library says of a policy; KPERFIR_POLICY makes one.
struct Policy {
  uint32_t version;
  uint32_t llvmMajor, llvmMinor; // Of the headers it was compiled with.
  bool (*run)(mlir::ModuleOp);
};

namespace detail {

inline mlir::Attribute parse(mlir::MLIRContext *context, const char *what,
                             llvm::StringRef value) {
  return mlir::parseAttribute(
      ("#kperf<" + llvm::Twine(what) + " " + value + ">").str(), context);
}

inline void record(mlir::OpBuilder &builder, mlir::Operation *at,
                   llvm::StringRef edge, llvm::StringRef name,
                   llvm::StringRef kind) {
  mlir::OperationState state(at->getLoc(), "kperf.record");
  state.addAttribute("edge", parse(builder.getContext(), "edge", edge));
  state.addAttribute("region", builder.getStringAttr(name));
  state.addAttribute("kind", parse(builder.getContext(), "kind", kind));
  if (edge == "start")
    state.addAttribute("origin",
                       builder.getStringAttr(at->getName().getStringRef()));
  builder.create(state);
}

} // namespace detail

/// Put the region `name` around everything from `first` to `last`, which stand
/// in one block in this order. Names are unique within their parent, or mean
/// the same region; `kind` is one of those in docs/contracts.md, section 3.
/// Returns false, and inserts nothing, if a region cannot stand there: `last`
/// ends its block, or the two are not in one.
inline bool insertRegion(mlir::Operation *first, mlir::Operation *last,
                         llvm::StringRef name, llvm::StringRef kind = "user") {
  bool ordered = first->getBlock() == last->getBlock() && last->getNextNode() &&
                 (first == last || first->isBeforeInBlock(last));
  if (!ordered || name.empty() ||
      !detail::parse(first->getContext(), "kind", kind))
    return false;
  mlir::OpBuilder builder(first);
  detail::record(builder, first, "start", name, kind);
  builder.setInsertionPointAfter(last);
  detail::record(builder, last, "end", name, kind);
  return true;
}

/// Put the mark `name` before `at`, with `value` if that is given: an i32, i64,
/// f32 or f64. Returns false, and inserts nothing, for a value of another type.
inline bool insertMark(mlir::Operation *at, llvm::StringRef name,
                       mlir::Value value = {}) {
  if (name.empty())
    return false;
  mlir::OperationState state(at->getLoc(), "kperf.mark");
  if (value) {
    mlir::Type type = value.getType();
    if (!type.isInteger(32) && !type.isInteger(64) && !type.isF32() &&
        !type.isF64())
      return false;
    state.addOperands(value);
  }
  mlir::OpBuilder builder(at);
  state.addAttribute("event", builder.getStringAttr(name));
  builder.create(state);
  return true;
}

} // namespace kperfir

/// Registers `function` as the policy `name` of this library.
#define KPERFIR_POLICY(name, function)                                         \
  extern "C" __attribute__((visibility("default")))                            \
  const kperfir::Policy kperfirPolicy_##name = {                               \
      kperfir::kPolicyVersion, LLVM_VERSION_MAJOR, LLVM_VERSION_MINOR,         \
      function};

#endif // KPERFIR_POLICY_H
