//===- Walk.cpp - The order of begins and ends of nested spans ------------===//

#include "Trace/Walk.h"

#include <vector>

namespace kperfir::trace {

static bool isForest(std::span<const int64_t> parents,
                     std::span<const int64_t> depths) {
  for (size_t row = 0; row < parents.size(); ++row) {
    int64_t parent = parents[row];
    if (parent < -1 || parent >= static_cast<int64_t>(row))
      return false;
    int64_t around = parent < 0 ? -1 : depths[static_cast<size_t>(parent)];
    if (depths[row] != around + 1)
      return false;
  }
  return true;
}

bool walkForest(std::span<const int64_t> parents,
                std::span<const int64_t> depths, std::span<int64_t> begins,
                std::span<int64_t> ends) {
  if (!isForest(parents, depths))
    return false;
  size_t rows = parents.size();
  std::vector<int64_t> sizes(rows, 1); // Rows of the subtree.
  for (size_t row = rows; row-- > 0;)
    if (parents[row] >= 0)
      sizes[static_cast<size_t>(parents[row])] += sizes[row];
  std::vector<int64_t> nextChild(rows); // Where it begins.
  int64_t nextRoot = 0;
  for (size_t row = 0; row < rows; ++row) {
    int64_t &next = parents[row] < 0
                        ? nextRoot
                        : nextChild[static_cast<size_t>(parents[row])];
    begins[row] = next;
    next += 2 * sizes[row];
    ends[row] = next - 1;
    nextChild[row] = begins[row] + 1;
  }
  return true;
}

} // namespace kperfir::trace
