//===- Nesting.h - The order of begins and ends of nested spans -----------===//
//
// Timestamps alone do not say it: in whole nanoseconds a short span has no
// length, and a span may begin in the instant in which its neighbour ends. So
// ties are broken by the tree.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_TRACE_NESTING_H
#define KPERFIR_LIB_TRACE_NESTING_H

#include <cstdint>
#include <span>

namespace kperfir::trace {

/// Rows of a drawing: first one for each warp of each CTA, the roots, then the
/// spans, warp by warp. Times are whole nanoseconds and get corrected.
struct Forest {
  /// Per root, the first of its spans and the end of them, in the order in
  /// which they lie.
  std::span<const int64_t> firstSpan, endSpan;
  /// Per span: the span around it, an earlier one of its root, or any number
  /// below 0; how many are around it; it has no end, as it has no length.
  std::span<const int64_t> parent;
  std::span<const int16_t> depth;
  std::span<const bool> instant;
  /// Per row.
  std::span<int64_t> start, end;
};

/// Put the begins and ends of \p forest in the order of a walk over it, in
/// which siblings, and roots, keep the order of their rows. A begin is the
/// number of its row, an end that plus the number of rows; instants have no
/// end. \p events has room for two of each row; returned is how many there are,
/// or -1 if parents do not come before their children, or depths contradict
/// them.
///
/// The same cycle may have come out as two neighbouring nanoseconds, since an
/// end is a start plus a duration: times are moved so that none goes back along
/// the walk over a root. \p moved is by how much at most.
int64_t orderEvents(Forest forest, std::span<int64_t> events, int64_t &moved);

/// Per row, the sum of the \p values of those outermost \p counted rows that
/// lie in it; of a counted row, its own value. Of others in a counted row: 0.
///
/// False if some row of \p parent (below 0: none) comes after its child.
bool sumOutermost(std::span<const int64_t> parent,
                  std::span<const int64_t> values,
                  std::span<const bool> counted, std::span<int64_t> sums);

} // namespace kperfir::trace

#endif // KPERFIR_LIB_TRACE_NESTING_H
