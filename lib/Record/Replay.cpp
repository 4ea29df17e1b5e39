//===- Replay.cpp - Events of a warp to spans -----------------------------===//

#include "Record/Replay.h"

namespace kperfir::record {

/// A region is open once at most, and inside its parent: no more than all of
/// them are open at a time.
Replay::Replay(const DecoderLayout &plan) : stack(plan.regionParents.size()) {
  auto kind = [&](int32_t region) {
    return plan.regionKinds[static_cast<size_t>(region)];
  };
  for (size_t region = 0; region < plan.regionParents.size(); ++region) {
    int32_t parent = plan.regionParents[region];
    bool isIteration = plan.regionKinds[region] == RegionKind::Iteration;
    bool inherits =
        !isIteration && parent >= 0 && kind(parent) != RegionKind::Loop;
    rules.push_back({parent, isIteration, inherits});
  }
}

void Replay::begin(SpanColumns &columns, bool prefixIsLost) {
  out = &columns;
  next = static_cast<int64_t>(columns.rows());
  prefixLost = prefixIsLost;
  first = true;
  inGap = false;
  orphans = 0;
  depth = 0;
}

void Replay::reopenAncestors(Event event, int64_t clock) {
  chain.clear();
  for (int32_t r = rule(event.region).parent; r >= 0; r = rule(r).parent)
    chain.push_back(r);
  reserve(chain.size());
  for (size_t i = chain.size(); i-- > 0;) {
    push(chain[i], clock, -1, false);
    top().iterations = -1;
  }
}

void Replay::reserve(uint64_t starts) {
  out->resize(static_cast<size_t>(next) + starts);
  rows = {out->region.data(),    out->depth.data(), out->parent.data(),
          out->iteration.data(), out->start.data(), out->end.data(),
          out->complete.data()};
}

bool Replay::apply(Event event, int64_t clock) {
  if (inGap)
    close(clock);
  bool fits = event.edge == Edge::End ? end(event.region, clock)
                                      : start(event.region, clock);
  if (fits && event.edge == Edge::Mark)
    close(clock);
  inGap = event.edge == Edge::Gap && fits;
  first = false;
  return fits;
}

bool Replay::start(int32_t region, int64_t clock) {
  const Rule &own = rule(region);
  if (own.parent >= 0 && iterationOf(own.parent))
    close(clock); // The loop body has been left or begun anew.
  if (own.parent != (depth == 0 ? -1 : top().region))
    return false;
  int64_t iteration = -1;
  if (own.inherits)
    iteration = rows.iteration[top().row];
  else if (own.isIteration && depth != 0 && top().iterations >= 0)
    iteration = top().iterations++;
  push(region, clock, iteration, true);
  return true;
}

bool Replay::end(int32_t region, int64_t clock) {
  if (iterationOf(region))
    close(clock);
  if (depth != 0 && top().region == region) {
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
  int64_t row = next++;
  rows.region[row] = region;
  rows.depth[row] = static_cast<int16_t>(depth);
  rows.parent[row] = depth == 0 ? -1 : top().row;
  rows.iteration[row] = iteration;
  rows.start[row] = clock;
  rows.end[row] = clock;
  rows.complete[row] = complete;
  stack[depth++] = {row, region, 0};
}

void Replay::finish(int64_t clock) {
  for (; depth != 0; --depth) {
    rows.end[top().row] = clock;
    rows.complete[top().row] = 0;
  }
}

std::string Replay::openRegion() const {
  return depth == 0 ? "no region is open"
                    : "region " + std::to_string(top().region) +
                          " is the innermost open one";
}

} // namespace kperfir::record
