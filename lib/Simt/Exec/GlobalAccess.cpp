//===- GlobalAccess.cpp - ld and st of global memory, and L1 ------------===//
//
// A load is served at once when L1 has all that it needs; all else is queued
// for the exchange.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"
#include "Simt/Timing/Coalescer.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

GlobalRequest &Sm::queue(Warp &warp, const MicroOp &op,
                         GlobalRequest::Kind kind, LaneMask active,
                         uint64_t cycle) {
  GlobalRequest &request = requests.entries.emplace_back();
  request.cycle = cycle;
  request.warp = &warp;
  request.pc = warp.pc - 1;
  request.mask = active;
  request.kind = kind;
  request.free = currentIsFree();
  request.warms = isUntimed;
  request.bytes = accessBytes(op);
  request.log = currentLog;
  return request;
}

void Sm::loadGlobal(Warp &warp, const MicroOp &op, LaneMask active,
                    const Addresses &addresses) {
  unsigned bytes = accessBytes(op);
  bool contiguous = isContiguous(addresses.lane, bytes, active);
  const GlobalRange *range = commonRange(*launch.memory, addresses.lane, bytes,
                                         active, rangeHint[warp.pc - 1]);
  if (isUntimed && loadUntimed(warp, op, active, addresses, range))
    return setReady(warp, op, now);
  bool placed = range && range->isPlaced();
  // Ordered loads go to L2, where other SMs' stores are.
  bool cached = l1.exists() && op.sem() == MemSem::Weak && !op.has(kVolatile);

  LineList list;
  if (range)
    coalesce(*range, addresses.lane, bytes, active, contiguous, list);
  logUnits(list.countSectors());
  unsigned lines =
      range ? list.count : static_cast<unsigned>(std::popcount(active));
  uint64_t cycles =
      std::max(uint64_t(lines), uint64_t(list.countSectors()) * kSectorBytes /
                                    chip.l1BytesPerCycle);
  uint64_t served =
      currentIsFree() ? now : occupyLsu(std::max<uint64_t>(cycles, 1));

  // At once, if only to find the registers in the host's nearest cache: nobody
  // reads them before the answer. The exchange loads again what stores of this
  // step change.
  if (range && contiguous)
    loadContiguous(warp.context, op,
                   reinterpret_cast<const uint8_t *>(addresses.lane[0]));
  else if (range)
    loadLanes(warp.context, op, active, addresses.lane);

  uint64_t filled = cached && placed ? lookUpL1(list) : kUnresolved;
  if (filled != kUnresolved) {
    uint64_t done = std::max(served + cycles - 1 + chip.l1Latency, filled);
    setReady(warp, op, currentIsFree() ? now : done);
    return;
  }
  GlobalRequest &request =
      queue(warp, op, GlobalRequest::Kind::Load, active, served);
  if (cached)
    noteInL1(range);
  request.cached = cached;
  request.lookedUp = placed;
  request.loaded = range != nullptr;
  request.range = range;
  request.contiguous = contiguous;
  request.setAddresses(addresses.lane);
  setReady(warp, op, kUnresolved);
}

uint64_t Sm::lookUpL1(const LineList &list) {
  uint64_t filled = 0;
  for (unsigned i = 0; i < list.count; ++i)
    l1.prefetch(list.lines[i].line);
  for (unsigned i = 0; i < list.count; ++i) {
    auto [address, sectors] = list.lines[i];
    Cache::Line line = l1.findOrAllocate(address);
    uint8_t missing = line.missing(sectors);
    auto misses = static_cast<unsigned>(std::popcount(missing));
    statistics.l1SectorMisses += misses;
    statistics.l1SectorHits +=
        static_cast<unsigned>(std::popcount(sectors)) - misses;
    line.ask(missing);
    filled = std::max(filled, line.unanswered(sectors) ? kUnresolved
                                                       : line.ready(sectors));
  }
  return filled;
}

bool Sm::mayBeInL1(const GlobalRange *range) const {
  return l1HasAny ||
         std::find(l1Ranges.begin(), l1Ranges.end(), range) != l1Ranges.end();
}

void Sm::noteInL1(const GlobalRange *range) {
  constexpr size_t kFew = 16; // A longer list is no gain over a search in L1.
  if (mayBeInL1(range))
    return;
  if (!range || l1Ranges.size() == kFew)
    l1HasAny = true;
  l1Ranges.push_back(range);
}

void Sm::dropFromL1(const LineList &list) {
  if (!l1.exists())
    return;
  for (unsigned i = 0; i < list.count; ++i)
    if (Cache::Line line = l1.find(list.lines[i].line))
      line.drop(list.lines[i].sectors);
}

void Sm::storeGlobal(Warp &warp, const MicroOp &op, LaneMask active,
                     const Addresses &addresses) {
  unsigned bytes = accessBytes(op);
  bool contiguous = isContiguous(addresses.lane, bytes, active);
  LineList list;
  const GlobalRange *range = commonRange(*launch.memory, addresses.lane, bytes,
                                         active, rangeHint[warp.pc - 1]);
  if (range)
    coalesce(*range, addresses.lane, bytes, active, contiguous, list);
  else
    coalesceMapped(*launch.memory, addresses.lane, bytes, active, list);
  logUnits(list.countSectors());
  if (isUntimed)
    noteUntimedWrite(range);
  // Written through; a later load of this SM must see the new data.
  if (!range || mayBeInL1(range))
    dropFromL1(list);
  uint64_t cycles = std::max<uint64_t>(
      {1, list.count,
       uint64_t(list.countSectors()) * kSectorBytes / chip.l1BytesPerCycle});
  uint64_t served = currentIsFree() ? now : occupyLsu(cycles);

  GlobalRequest &request =
      queue(warp, op, GlobalRequest::Kind::Store, active, served);
  request.range = range;
  request.contiguous = contiguous;
  request.setAddresses(addresses.lane);
  request.data = requests.reserve(size_t(kWarpSize) * bytes);
  const RowIndex *rows =
      op.width == 1 ? &op.src[1] : program.pool.data() + op.ext;
  packLanes(warp.context, op, rows, requests.data.data() + request.data);
  ++warp.unresolvedStores;
}

} // namespace kperfir::simt
