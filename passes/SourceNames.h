//===- SourceNames.h - Which line of the user's source is this? -----------===//

#ifndef KPERFIR_PASSES_SOURCENAMES_H
#define KPERFIR_PASSES_SOURCENAMES_H

#include "mlir/IR/Location.h"

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

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_SOURCENAMES_H
