//===- IterationSelection.h - Which iterations of a loop are recorded -----===//
//
// An iteration is known by its number, which is computed from the loop's
// variable: so all warps of a CTA record the same ones, and nothing has to be
// carried from one to the next. Inside an iteration that is left out nothing is
// recorded, inner loops included.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_ITERATIONSELECTION_H
#define KPERFIR_PASSES_ITERATIONSELECTION_H

#include "Dialect/KPerf/KPerf.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <string>

namespace mlir::kperf {

/// From `first` up to but without `last` (0: no end), every `step`-th.
struct IterationRange {
  uint32_t first = 0, last = 0, step = 1;

  bool isEvery() const { return first == 0 && last == 0 && step == 1; }
};

class IterationSelection {
public:
  /// Chooses the loops of `kernel` to which `range` applies: counted ones with
  /// a constant step that record and run in one role. In these an iteration
  /// gets an end of its own, since the next one may be left out.
  IterationSelection(IterationRange range, FunctionOpInterface kernel);

  bool contains(Operation *loop) const { return loops.contains(loop); }
  /// Whether `op` may be in an iteration that is left out.
  bool mayLeaveOut(Operation *op) const;
  /// At the begin of the body of `loop`: whether the iteration is recorded, and
  /// `around` holds, which may be null.
  Value makePredicate(Operation *loop, Value around) const;

  /// The starts of the iterations of which some are left out.
  ArrayRef<RecordOp> getStarts() const { return starts; }
  /// What a reader of the records has to know.
  ArrayRef<std::string> getNotes() const { return notes; }

private:
  void choose(Operation *loop);
  void note(Operation *loop, StringRef text);

  IterationRange range;
  SmallPtrSet<Operation *, 8> loops;
  SmallVector<RecordOp> starts;
  SmallVector<std::string> notes;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_ITERATIONSELECTION_H
