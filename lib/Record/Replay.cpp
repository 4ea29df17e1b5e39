//===- Replay.cpp - Events of a warp to spans -----------------------------===//

#include "Record/Replay.h"

namespace kperfir::record {

void Replay::begin(SpanColumns &columns, bool prefixIsLost) {
  out = &columns;
  next = columns.rows();
  prefixLost = prefixIsLost;
  first = true;
  orphans = 0;
  stack.clear();
}

void Replay::reopenAncestors(Event event, int64_t clock) {
  chain.clear();
  for (int32_t r = parent(event.region); r >= 0; r = parent(r))
    chain.push_back(r);
  reserve(chain.size());
  for (size_t i = chain.size(); i-- > 0;) {
    push(chain[i], clock, -1, false);
    stack.back().iterations = -1;
  }
}

void Replay::reserve(uint64_t starts) { out->resize(next + starts); }

bool Replay::apply(Event event, int64_t clock) {
  bool fits = event.edge == Edge::End ? end(event.region, clock)
                                      : start(event.region, clock);
  if (fits && event.edge == Edge::Mark)
    close(clock);
  first = false;
  return fits;
}

bool Replay::start(int32_t region, int64_t clock) {
  int32_t around = parent(region);
  if (around >= 0 && iterationOf(around))
    close(clock); // The loop body has been left or begun anew.
  if (around != (stack.empty() ? -1 : stack.back().region))
    return false;
  if (stack.empty()) {
    push(region, clock, -1, true);
    return true;
  }
  Open &top = stack.back();
  int64_t iteration = -1;
  if (kind(region) == RegionKind::Iteration)
    iteration = top.iterations >= 0 ? top.iterations++ : -1;
  else if (kind(around) != RegionKind::Loop)
    iteration = out->iteration[static_cast<size_t>(top.row)];
  push(region, clock, iteration, true);
  return true;
}

bool Replay::end(int32_t region, int64_t clock) {
  if (iterationOf(region))
    close(clock);
  if (!stack.empty() && stack.back().region == region) {
    close(clock);
    return true;
  }
  if (!prefixLost || !first)
    return false;
  ++orphans;
  return true;
}

void Replay::push(int32_t region, int64_t clock, int64_t iteration,
                  bool complete) {
  size_t row = next++;
  out->region[row] = region;
  out->depth[row] = static_cast<int16_t>(stack.size());
  out->parent[row] = stack.empty() ? -1 : stack.back().row;
  out->iteration[row] = iteration;
  out->start[row] = clock;
  out->end[row] = clock;
  out->complete[row] = complete;
  stack.push_back({static_cast<int64_t>(row), region, 0});
}

void Replay::finish(int64_t clock) {
  for (const Open &open : stack) {
    out->end[static_cast<size_t>(open.row)] = clock;
    out->complete[static_cast<size_t>(open.row)] = 0;
  }
  stack.clear();
}

std::string Replay::openRegion() const {
  return stack.empty() ? "no region is open"
                       : "region " + std::to_string(stack.back().region) +
                             " is the innermost open one";
}

} // namespace kperfir::record
