//===- RegionEnds.h - What comes before a loop, and after it --------------===//

#ifndef KPERFIR_PASSES_REGIONENDS_H
#define KPERFIR_PASSES_REGIONENDS_H

#include "Dialect/KPerf/KPerf.h"

namespace mlir::kperf {

/// A stretch of a block, from `first` up to but without `end`.
struct Stretch {
  Operation *first;
  Operation *end;
  RecordOp record; // The first one in it.
};

/// The stretch of `block` before its first loop, or after its last one: as much
/// of it as regions can be in without crossing one another. None if nothing in
/// it records, or if the block is not the first, or a last one, of its region.
std::optional<Stretch> findPrologue(Block &block);
std::optional<Stretch> findEpilogue(Block &block);

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_REGIONENDS_H
