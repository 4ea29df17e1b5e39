//===- AsyncCopy.cpp - cp.async and its groups ----------------------------===//
//
// Bytes that a copy fills count as unwritten from its issue until the issuing
// warp has waited for its group (or an mbarrier has told of its completion):
// whoever reads them before gets an error, whatever the timing.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/AsyncCopy.h"

#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

void copyToShared(SharedMemory &shared, const AsyncOperands &operands,
                  LaneMask lanes, unsigned bytes, const uint64_t *source) {
  for (; lanes; lanes &= lanes - 1) {
    unsigned lane = firstLane(lanes);
    uint8_t *to = shared.data() + operands.offset[lane];
    uint32_t copied = operands.sourceBytes[lane];
    if (copied)
      std::memcpy(to, reinterpret_cast<const void *>(source[lane]), copied);
    std::memset(to + copied, 0, bytes - copied);
  }
}

void Sm::executeAsync(Warp &warp, const MicroOp &op, LaneMask active) {
  logComplete(now + launch.costs[warp.pc - 1].latency);
  if (!active)
    return;
  uint64_t open = warp.firstGroup + warp.groups.size() - 1;
  switch (op.opcode) {
  case Opcode::CpAsync:
    return copyAsync(warp, op, active);
  case Opcode::CpAsyncCommitGroup:
    warp.groups.commit();
    return;
  case Opcode::CpAsyncWaitGroup: {
    auto allowed = static_cast<uint64_t>(std::max(op.imm, 0));
    if (open >= allowed)
      warp.waitedGroups = std::max(warp.waitedGroups, open - allowed);
    break;
  }
  case Opcode::CpAsyncWaitAll:
    warp.groups.commit();
    warp.waitedGroups = open + 1;
    break;
  default:
    return arriveAfterCopies(warp, op, active);
  }
  if (warp.waitedGroups > warp.firstGroup)
    warp.waitLog = currentLog;
  if (!currentIsFree())
    warp.nextIssue = now + launch.costs[warp.pc - 1].latency;
}

void Sm::copyAsync(Warp &warp, const MicroOp &op, LaneMask active) {
  Addresses destination = addressesOf(warp, op);
  unsigned bytes = op.width;
  AsyncOperands operands;
  sharedOffsets(warp, active, destination, bytes, operands.offset);
  checkAlignment(warp, op, active, destination, bytes);

  Addresses source;
  auto offset =
      static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(op.ext)));
  LaneMask ignored = 0;
  if (op.predSrc() != kNoPredicate) {
    ignored = warp.context.predicate(op.predSrc());
    if (op.has(kPredSrcNegated))
      ignored = ~ignored;
  }
  LaneMask reading = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    source.lane[lane] =
        (op.has(kSource32) ? warp.context.src(op.src[1])[lane]
                           : warp.context.src64(op.src[1])[lane]) +
        offset;
    uint32_t size =
        op.src[2] == kNoRow ? bytes : warp.context.src(op.src[2])[lane];
    if (ignored >> lane & 1)
      size = 0;
    operands.sourceBytes[lane] = std::min(size, bytes);
    if (size && (active >> lane & 1))
      reading |= 1u << lane;
  }
  checkAlignment(warp, op, reading, source, bytes);

  AsyncGroup &group = warp.groups.back();
  SharedMemory &shared = warp.cta->shared;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    shared.clearWritten(operands.offset[lane], bytes);
    group.spans.push_back({operands.offset[lane], bytes});
  }

  constexpr uint8_t kCacheGlobal = 1; // .cg: L2 only
  LineList list;
  const GlobalRange *range =
      reading ? commonRange(*launch.memory, source.lane, bytes, reading,
                            rangeHint[warp.pc - 1])
              : nullptr;
  bool placed = range && range->isPlaced();
  if (range)
    coalesce(*range, source.lane, bytes, reading,
             isContiguous(source.lane, bytes, reading), list);
  logUnits(list.countSectors());
  bool cached = op.sub != kCacheGlobal && l1.exists();
  uint64_t cycles = std::max(1u, list.count);
  uint64_t served = currentIsFree() ? now : occupyLsu(cycles);
  uint64_t filled = kUnresolved;
  if (!reading || (cached && placed))
    filled = lookUpL1(list);
  else if (isUntimed && isReadableUntimed(range)) {
    filled = now;
    if (placed)
      noteWarmed(list);
  }
  if (filled != kUnresolved) {
    copyToShared(shared, operands, active, bytes, source.lane);
    uint64_t done = std::max(filled, served + cycles - 1 + chip.l1Latency);
    group.done = std::max(group.done, currentIsFree() ? now : done);
    logComplete(done);
    return;
  }
  GlobalRequest &request =
      queue(warp, op, GlobalRequest::Kind::AsyncCopy, active, served);
  request.bytes = bytes;
  if (cached)
    noteInL1(range);
  request.cached = cached;
  request.lookedUp = placed;
  request.range = range;
  request.group = warp.firstGroup + warp.groups.size() - 1;
  std::memcpy(request.address, source.lane, sizeof request.address);
  request.data = requests.reserve(sizeof operands);
  std::memcpy(requests.data.data() + request.data, &operands, sizeof operands);
  group.asked = served;
  ++group.unresolved;
}

uint64_t Sm::groupsDone(const Warp &warp, uint64_t serial) const {
  uint64_t done = 0;
  uint64_t count =
      std::min<uint64_t>(serial - warp.firstGroup, warp.groups.size());
  for (uint64_t i = 0; i < count; ++i) {
    if (warp.groups[i].unresolved)
      return kUnresolved;
    done = std::max(done, warp.groups[i].done);
  }
  return done;
}

void Sm::retireGroups(Warp &warp, uint64_t serial) {
  if (warp.waitLog != kNoLog) {
    log.complete[warp.waitLog] =
        std::max(log.complete[warp.waitLog], groupsDone(warp, serial));
    warp.waitLog = kNoLog;
  }
  while (warp.firstGroup < serial) {
    for (const AsyncSpan &span : warp.groups.front().spans)
      warp.cta->shared.setWritten(span.offset, span.bytes);
    warp.groups.popFront();
    ++warp.firstGroup;
  }
}

//===----------------------------------------------------------------------===//
// Completion through an mbarrier
//===----------------------------------------------------------------------===//

void Sm::arriveAfterCopies(Warp &warp, const MicroOp &op, LaneMask active) {
  Addresses addresses = addressesOf(warp, op);
  Cta &cta = *warp.cta;
  // Lanes that name the same mbarrier arrive together.
  while (active) {
    unsigned lane = firstLane(active);
    auto offset = static_cast<uint32_t>(addresses.lane[lane]);
    readMbarrier(warp, lane, offset, true);
    LaneMask same = 0;
    for (LaneMask rest = active; rest; rest &= rest - 1)
      if (static_cast<uint32_t>(addresses.lane[firstLane(rest)]) == offset)
        same |= rest & (~rest + 1);
    active &= ~same;
    auto arrivals = static_cast<uint32_t>(std::popcount(same));
    if (!op.has(kNoInc))
      addPendingArrivals(cta, offset, arrivals);

    ++cta.pendingEvents;
    SmEvent event{0,
                  0,
                  &warp,
                  offset,
                  arrivals,
                  warp.firstGroup + warp.groups.size() - 1,
                  warp.groups.back().spans.size(),
                  nullptr,
                  {},
                  nullptr};
    uint64_t done = groupsDone(warp, event.group + 1);
    if (done == kUnresolved) {
      // The exchange comes to it behind all copies, which may still queue for
      // the load/store unit.
      uint64_t asked = now;
      for (size_t i = 0; i < warp.groups.size(); ++i)
        asked = std::max(asked, warp.groups[i].asked);
      GlobalRequest &request =
          queue(warp, op, GlobalRequest::Kind::AsyncArrive, same, asked);
      request.data = unresolvedEvents.size();
      unresolvedEvents.push_back(event);
    } else {
      schedule(event, std::max(done, now + 1));
    }
  }
}

void Sm::schedule(SmEvent event, uint64_t cycle) {
  event.cycle = cycle;
  event.order = ++eventCount;
  events.push(event);
}

uint64_t Sm::answerArrive(const GlobalRequest &request, uint64_t earliest) {
  const SmEvent &event = unresolvedEvents[request.data];
  uint64_t done = std::max(groupsDone(*event.warp, event.group + 1), earliest);
  schedule(event, done);
  return done;
}

void Sm::runEvents(uint64_t cycle) {
  while (!events.empty() && events.top().cycle <= cycle) {
    SmEvent event = events.top();
    events.pop();
    if (!event.warp) {
      event.remote ? finishArrival(event) : finishFill(event);
      continue;
    }
    Warp &warp = *event.warp;
    for (size_t i = 0; i < warp.groups.size(); ++i) {
      uint64_t serial = warp.firstGroup + i;
      const std::vector<AsyncSpan> &spans = warp.groups[i].spans;
      size_t count = serial < event.group ? spans.size()
                     : serial == event.group
                         ? std::min(event.spans, spans.size())
                         : 0;
      for (size_t span = 0; span < count; ++span)
        warp.cta->shared.setWritten(spans[span].offset, spans[span].bytes);
    }
    --warp.cta->pendingEvents;
    arriveMbarrier(*warp.cta, event.mbarrier, event.arrivals);
  }
}

} // namespace kperfir::simt
