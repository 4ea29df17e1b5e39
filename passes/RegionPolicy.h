//===- RegionPolicy.h - Which kinds of regions to record ------------------===//
//
// Policies are sets of kinds with a name. A budget takes kinds away from one
// loop, the least telling first.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_REGIONPOLICY_H
#define KPERFIR_PASSES_REGIONPOLICY_H

#include "Dialect/KPerf/KPerf.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mlir::kperf {

class RegionPolicy {
public:
  /// The union of `words`, each a kind or the name of a policy: `minimal`,
  /// `auto`, `memory`, `mma`, `sync`, `full`. None means `auto`. A word that is
  /// neither is an error of `pass` on `module`.
  static FailureOr<RegionPolicy> read(ArrayRef<std::string> words,
                                      ModuleOp module, StringRef pass);

  static RegionPolicy only(Kind kind);

  bool contains(Kind kind) const;
  void remove(Kind kind);

  /// The kinds that a budget may take away, in the order in which it does.
  static ArrayRef<Kind> listByValue();

private:
  uint64_t kinds = 0; // A bit for each.
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_REGIONPOLICY_H
