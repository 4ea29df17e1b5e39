//===- RegionTree.h - The regions of a kernel and how they nest -----------===//
//
// One analysis for the pass that checks nesting and the pass that needs it.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_REGIONTREE_H
#define KPERFIR_PASSES_REGIONTREE_H

#include "Dialect/KPerf/KPerf.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::kperf {

struct RecordedRegion {
  StringRef name;
  Kind kind;
  StringRef origin; // Empty if unknown.
  Location loc;
  int32_t parent; // Index of the region around its first start; -1: none.
};

class RegionTree {
public:
  /// Follows every path of `kernel`. Emits a diagnostic where regions do not
  /// nest.
  static FailureOr<RegionTree> build(FunctionOpInterface kernel);

  /// Regions by id: dense, in program order of their first start.
  ArrayRef<RecordedRegion> getRegions() const { return regions; }
  uint32_t getId(StringRef name) const { return ids.lookup(name); }

private:
  void number(FunctionOpInterface kernel);

  SmallVector<RecordedRegion> regions;
  llvm::StringMap<uint32_t> ids;

  friend class NestingWalk;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_REGIONTREE_H
