//===- ForeignOps.h - Operations of dialects that are not ours ------------===//
//
// Triton's LLVM is newer than the headers this is compiled with, so operations
// of other dialects are named, never built or read through their C++ classes.
// Nor are they asked for traits: a trait is known by how the compiler spells
// its C++ name, and libtriton was built with another compiler.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_FOREIGNOPS_H
#define KPERFIR_PASSES_FOREIGNOPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::kperf {

inline bool isNamed(Operation *op, StringRef name) {
  return op->getName().getStringRef() == name;
}

Operation *createNamed(OpBuilder &builder, Location loc, StringRef name,
                       TypeRange results, ValueRange operands,
                       ArrayRef<NamedAttribute> attributes = {});

/// The kernel of a Triton module: its only public function with a body. Emits a
/// diagnostic if there is not exactly one.
FailureOr<FunctionOpInterface> findKernel(ModuleOp module);

/// An i32 attribute of the module, or `fallback` if there is none.
int64_t getModuleInt(ModuleOp module, StringRef name, int64_t fallback);

/// Adds to the module's `kperf.notes`: what a reader of the records has to
/// know.
void addNotes(ModuleOp module, ArrayRef<std::string> notes);

/// The regions of a `ttg.warp_specialize`: the default region, then the
/// partitions.
SmallVector<Region *> listWarpRegions(Operation *warpSpecialize);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_FOREIGNOPS_H
