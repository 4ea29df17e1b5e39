//===- Nesting.cpp - The order of begins and ends of nested spans ---------===//

#include "Trace/Nesting.h"

#include <algorithm>
#include <vector>

namespace kperfir::trace {
namespace {

/// Orders root after root; keeps the scratch memory.
class Walker {
public:
  Walker(Forest forest, std::span<int64_t> events)
      : forest(forest), events(events), rows(forest.start.size()),
        roots(forest.firstSpan.size()) {}

  bool addRoot(size_t root);

  int64_t moved = 0;
  size_t ordered = 0; // Events so far.

private:
  bool countSubtrees();
  void place();
  void emit(size_t root);
  void emitEvent(size_t event);

  /// The row within the root of the span around one of its spans; below 0:
  /// none.
  int64_t parentOf(size_t span) const {
    int64_t parent = forest.parent[first + span];
    return parent < 0 ? -1 : parent - static_cast<int64_t>(first);
  }

  Forest forest;
  std::span<int64_t> events;
  size_t rows, roots;
  size_t first = 0, count = 0; // Spans of the root at hand.
  int64_t latest = 0;          // Time of the last event.
  std::vector<uint32_t> sizes, next, order;
};

bool Walker::countSubtrees() {
  sizes.assign(count, 1);
  for (size_t span = count; span-- > 0;) {
    int64_t parent = parentOf(span);
    int16_t around = -1;
    if (parent >= 0) {
      if (parent >= static_cast<int64_t>(span))
        return false;
      around = forest.depth[first + static_cast<size_t>(parent)];
      sizes[static_cast<size_t>(parent)] += sizes[span];
    } else if (forest.parent[first + span] >= 0) {
      return false; // In another root.
    }
    if (forest.depth[first + span] != around + 1)
      return false;
  }
  return true;
}

/// Fill `order`: begins as numbers of spans, ends with `count` on top.
void Walker::place() {
  next.resize(count);
  order.resize(2 * count);
  uint32_t nextRoot = 0;
  for (uint32_t span = 0; span < count; ++span) {
    int64_t parent = parentOf(span);
    uint32_t &at = parent < 0 ? nextRoot : next[static_cast<size_t>(parent)];
    order[at] = span;
    next[span] = at + 1;
    at += 2 * sizes[span];
    order[at - 1] = span + static_cast<uint32_t>(count);
  }
}

void Walker::emitEvent(size_t event) {
  bool isEnd = event >= rows;
  size_t row = isEnd ? event - rows : event;
  int64_t &time = isEnd ? forest.end[row] : forest.start[row];
  moved = std::max(moved, latest - time);
  time = latest = std::max(latest, time);
  if (!isEnd || row < roots || !forest.instant[row - roots])
    events[ordered++] = static_cast<int64_t>(event);
}

void Walker::emit(size_t root) {
  latest = forest.start[root];
  emitEvent(root);
  for (uint32_t event : order)
    emitEvent(event < count ? roots + first + event
                            : rows + roots + first + event - count);
  emitEvent(rows + root);
}

bool Walker::addRoot(size_t root) {
  first = static_cast<size_t>(forest.firstSpan[root]);
  count = static_cast<size_t>(forest.endSpan[root]) - first;
  if (!countSubtrees())
    return false;
  place();
  emit(root);
  return true;
}

} // namespace

int64_t orderEvents(Forest forest, std::span<int64_t> events, int64_t &moved) {
  Walker walker(forest, events);
  for (size_t root = 0; root < forest.firstSpan.size(); ++root)
    if (!walker.addRoot(root))
      return -1;
  moved = walker.moved;
  return static_cast<int64_t>(walker.ordered);
}

bool sumOutermost(std::span<const int64_t> parent,
                  std::span<const int64_t> values,
                  std::span<const bool> counted, std::span<int64_t> sums) {
  std::vector<uint8_t> inside(parent.size()); // Some row around is counted.
  for (size_t row = 0; row < parent.size(); ++row) {
    sums[row] = counted[row] ? values[row] : 0;
    if (parent[row] < 0)
      continue;
    auto around = static_cast<size_t>(parent[row]);
    if (around >= row)
      return false;
    inside[row] = counted[around] || inside[around];
  }
  for (size_t row = parent.size(); row-- > 0;)
    if (parent[row] >= 0 && !inside[row])
      sums[static_cast<size_t>(parent[row])] += sums[row];
  return true;
}

} // namespace kperfir::trace
