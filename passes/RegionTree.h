//===- RegionTree.h - The regions of a kernel and how they nest -----------===//
//
// One analysis for the pass that checks nesting and the pass that needs it.
//
// A region is a name in a place: started inside different regions, one name
// stands for several regions, each with a parent of its own.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_REGIONTREE_H
#define KPERFIR_PASSES_REGIONTREE_H

#include "Dialect/KPerf/KPerf.h"
#include "passes/AsyncFlows.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVectorExtras.h"

namespace mlir::kperf {

/// Of a record whose stamp was chosen: numbers of its frame and of its stamp.
constexpr llvm::StringLiteral kStampAttribute = "kperf.stamp";

struct RecordedRegion {
  StringRef name;
  Kind kind;
  StringRef origin; // Empty if unknown.
  Location loc;
  Type value;      // Of a mark: what it carries; null if nothing.
  bool isUnsigned; // How to read an integer value.
  int32_t parent;  // Index of the region around it; -1: none.
};

class RegionTree {
public:
  /// Follows every path of `kernel`. Emits a diagnostic where regions do not
  /// nest.
  static FailureOr<RegionTree> build(FunctionOpInterface kernel);

  /// Regions by id: dense, in program order of their first start, each after
  /// its parent.
  ArrayRef<RecordedRegion> getRegions() const { return regions; }

  /// The region that a record starts or ends, or that a mark is; nothing if no
  /// path leads to `op`.
  std::optional<uint32_t> getId(Operation *op) const {
    auto found = ids.find(op);
    if (found == ids.end())
      return std::nullopt;
    return found->second;
  }

  /// Operations that start or await work, and the innermost region of each.
  SmallVector<PlacedOp> listAsyncOps() const {
    return llvm::map_to_vector(
        asyncOps, [&](Operation *op) { return PlacedOp{op, getId(op)}; });
  }

private:
  void numberInProgramOrder(FunctionOpInterface kernel);

  SmallVector<RecordedRegion> regions;
  DenseMap<Operation *, uint32_t> ids;
  SmallVector<Operation *> asyncOps;

  friend class NestingWalk;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_REGIONTREE_H
