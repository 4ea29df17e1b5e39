//===- Walk.h - The order of begins and ends of nested spans --------------===//
//
// Timestamps alone do not say it: ties are broken by the tree.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_LIB_TRACE_WALK_H
#define KPERFIR_LIB_TRACE_WALK_H

#include <cstdint>
#include <span>

namespace kperfir::trace {

/// Positions of the begin and the end of every row in a walk over the forest;
/// siblings, and roots, keep the order of their rows.
///
/// False if \p parents (-1: a root) do not come before their children, or
/// \p depths contradict them. All have one entry per row.
bool walkForest(std::span<const int64_t> parents,
                std::span<const int64_t> depths, std::span<int64_t> begins,
                std::span<int64_t> ends);

} // namespace kperfir::trace

#endif // KPERFIR_LIB_TRACE_WALK_H
