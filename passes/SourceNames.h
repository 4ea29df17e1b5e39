//===- SourceNames.h - Which line of the user's source is this? -----------===//

#ifndef KPERFIR_PASSES_SOURCENAMES_H
#define KPERFIR_PASSES_SOURCENAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace mlir::kperf {

struct SourcePlace {
  StringRef file; // Empty if unknown.
  unsigned line = 0;
  unsigned column = 0;
};

/// The innermost frame of `loc` that is not in Triton's own library; the
/// innermost of all if there is no other.
SourcePlace findSource(Location loc);

/// `loop mm.py:12` and the like.
std::string describePlace(StringRef what, Location loc);

/// Names of regions, unique within the kernel, in program order.
class RegionNames {
public:
  /// `load mm.py:12`, or `load mm.py:12#2` where that is taken.
  std::string make(StringRef kind, Location loc);
  /// A name that is there already.
  void take(StringRef name) { ++counts[name.split('#').first]; }

private:
  llvm::StringMap<unsigned> counts;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_SOURCENAMES_H
