//===- Totals.cpp - Spans of a warp, added up by region -------------------===//

#include "Record/Totals.h"

#include <algorithm>

namespace kperfir::record {

Totals::Totals(const DecoderLayout &plan, TotalColumns &columns)
    : plan(plan), columns(columns), rowOf(plan.regionParents.size()) {
  columns.durations.resize(rowOf.size());
}

/// The row of the region of \p span, the first of it. What is around it has
/// one: it started before.
size_t Totals::addRow(const SpanColumns &spans, size_t span, int64_t track) {
  TotalColumns &to = columns;
  auto region = static_cast<size_t>(spans.region[span]);
  int32_t around = plan.regionParents[region];
  to.track.push_back(track);
  to.region.push_back(spans.region[span]);
  to.parent.push_back(
      around < 0
          ? -1
          : static_cast<int64_t>(rowOf[static_cast<size_t>(around)]) - 1);
  to.start.push_back(spans.start[span]);
  to.end.push_back(spans.end[span]);
  for (auto *sum : {&to.count, &to.complete, &to.cycles, &to.completeCycles})
    sum->push_back(0);
  rowOf[region] = to.track.size();
  return rowOf[region];
}

void Totals::add(const SpanColumns &spans, size_t begin, int64_t track) {
  TotalColumns &to = columns;
  std::fill(rowOf.begin(), rowOf.end(), 0);
  for (size_t span = begin; span < spans.rows(); ++span) {
    auto region = static_cast<size_t>(spans.region[span]);
    int64_t end = spans.end[span], duration = end - spans.start[span];
    size_t known = rowOf[region];
    size_t row = (known ? known : addRow(spans, span, track)) - 1;
    ++to.count[row];
    to.cycles[row] += duration;
    to.end[row] = std::max(to.end[row], end);
    if (!spans.complete[span])
      continue;
    ++to.complete[row];
    to.completeCycles[row] += duration;
    to.durations[region].push_back(duration);
  }
}

} // namespace kperfir::record
