//===- LoadStore.cpp - ld, st and fence -----------------------------------===//
//
// Shared, local and parameter memory are served at once. Global memory is
// served at once when L1 has all that a load needs, and else queued.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"
#include "Simt/Timing/Coalescer.h"
#include "Simt/Timing/SharedBanks.h"

#include <algorithm>
#include <bit>
#include <cstdio>

namespace kperfir::simt {

namespace {
std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx",
                static_cast<unsigned long long>(value));
  return text;
}

/// memcpy, without a call for the usual sizes.
void copyBytes(uint8_t *to, const uint8_t *from, unsigned bytes) {
  switch (bytes) {
  case 4:
    std::memcpy(to, from, 4);
    return;
  case 8:
    std::memcpy(to, from, 8);
    return;
  case 16:
    std::memcpy(to, from, 16);
    return;
  default:
    std::memcpy(to, from, bytes);
  }
}

/// Lanes whose generic address lies in the window.
LaneMask lanesInWindow(const uint64_t *address, LaneMask active,
                       uint64_t window) {
  LaneMask lanes = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1)
    if ((address[firstLane(rest)] & kWindowMask) == window)
      lanes |= rest & (~rest + 1);
  return lanes;
}
} // namespace

void Sm::executeMemory(Warp &warp, const MicroOp &op, LaneMask active) {
  switch (op.opcode) {
  case Opcode::Ld:
    return load(warp, op, active);
  case Opcode::St:
    return store(warp, op, active);
  case Opcode::Atom:
  case Opcode::Red:
    return atomic(warp, op, active);
  case Opcode::Fence:
    return fence(warp, op);
  default:
    return; // Prefetch: a hint.
  }
}

//===----------------------------------------------------------------------===//
// Dispatch on the state space
//===----------------------------------------------------------------------===//

void Sm::load(Warp &warp, const MicroOp &op, LaneMask active) {
  setReady(warp, op, now + 1);
  if (!active)
    return;
  Addresses addresses = addressesOf(warp, op);
  checkAlignment(warp, op, active, addresses, accessBytes(op));
  switch (op.space) {
  case Space::Global:
    return loadGlobal(warp, op, active, addresses);
  case Space::Shared:
    return loadShared(warp, op, active, addresses);
  case Space::SharedCluster:
    return loadCluster(warp, op, active, addresses);
  case Space::Local:
    return accessLocal(warp, op, active, addresses);
  case Space::Param:
    return loadParam(warp, op, active, addresses);
  case Space::Generic:
    break;
  }
  // Lanes may address different spaces; the slowest decides when all are ready.
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kSharedWindow)) {
    active &= ~lanes;
    if (active && splitRemote(warp, lanes, addresses))
      fail(warp, warp.pc - 1,
           {ErrorKind::Unsupported,
            "a load from another CTA's shared memory and from another space at "
            "once"});
    loadCluster(warp, op, lanes, addresses);
  }
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kLocalWindow)) {
    accessLocal(warp, op, lanes, addresses);
    active &= ~lanes;
  }
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kParamWindow)) {
    loadParam(warp, op, lanes, addresses);
    active &= ~lanes;
  }
  if (active)
    loadGlobal(warp, op, active, addresses);
}

/// Shared memory of this CTA or of others.
void Sm::loadCluster(Warp &warp, const MicroOp &op, LaneMask active,
                     Addresses &addresses) {
  LaneMask remote =
      launch.usesClusters ? splitRemote(warp, active, addresses) : 0;
  if (active & ~remote)
    loadShared(warp, op, active & ~remote, addresses);
  // Last: the result is there when these lanes have it.
  if (remote)
    accessRemote(warp, op, remote, addresses, {});
}

void Sm::store(Warp &warp, const MicroOp &op, LaneMask active) {
  if (!active)
    return;
  Addresses addresses = addressesOf(warp, op);
  checkAlignment(warp, op, active, addresses, accessBytes(op));
  switch (op.space) {
  case Space::Global:
    return storeGlobal(warp, op, active, addresses);
  case Space::Shared:
    return storeShared(warp, op, active, addresses);
  case Space::SharedCluster:
    if (LaneMask remote = splitRemote(warp, active, addresses)) {
      storeRemote(warp, op, remote, addresses);
      active &= ~remote;
    }
    return active ? storeShared(warp, op, active, addresses) : void();
  case Space::Local:
    return accessLocal(warp, op, active, addresses);
  case Space::Param:
  case Space::Generic:
    break;
  }
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kSharedWindow)) {
    active &= ~lanes;
    if (LaneMask remote = splitRemote(warp, lanes, addresses)) {
      storeRemote(warp, op, remote, addresses);
      lanes &= ~remote;
    }
    if (lanes)
      storeShared(warp, op, lanes, addresses);
  }
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kLocalWindow)) {
    accessLocal(warp, op, lanes, addresses);
    active &= ~lanes;
  }
  if (active)
    storeGlobal(warp, op, active, addresses);
}

void Sm::checkAlignment(const Warp &warp, const MicroOp &op, LaneMask active,
                        const Addresses &addresses, unsigned bytes) const {
  uint64_t low = 0;
  if (active == kFullMask)
    for (uint64_t address : addresses.lane)
      low |= address;
  else
    for (LaneMask rest = active; rest; rest &= rest - 1)
      low |= addresses.lane[firstLane(rest)];
  if ((low & (bytes - 1)) == 0)
    return;
  while ((addresses.lane[firstLane(active)] & (bytes - 1)) == 0)
    active &= active - 1;
  unsigned lane = firstLane(active);
  fail(warp, warp.pc - 1,
       {ErrorKind::Misaligned,
        "address " + hex(addresses.lane[lane]) +
            " is not a multiple of the access size, " + std::to_string(bytes) +
            " bytes",
        static_cast<int>(lane), addresses.lane[lane]});
}

//===----------------------------------------------------------------------===//
// Shared memory
//===----------------------------------------------------------------------===//

Sm::SharedSpan Sm::sharedOffsets(const Warp &warp, LaneMask active,
                                 const Addresses &addresses, unsigned bytes,
                                 uint32_t *offsets) const {
  const SharedMemory &shared = warp.cta->shared;
  // Generic addresses carry the window in their upper half.
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    offsets[lane] = static_cast<uint32_t>(addresses.lane[lane]);
  uint32_t low = ~0u, high = 0;
  if (active == kFullMask) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      low = std::min(low, offsets[lane]);
      high = std::max(high, offsets[lane]);
    }
  } else {
    for (LaneMask rest = active; rest; rest &= rest - 1) {
      low = std::min(low, offsets[firstLane(rest)]);
      high = std::max(high, offsets[firstLane(rest)]);
    }
  }
  if (shared.inBounds(high, bytes))
    return {low, high + bytes};
  while (shared.inBounds(offsets[firstLane(active)], bytes))
    active &= active - 1;
  unsigned lane = firstLane(active);
  fail(warp, warp.pc - 1,
       {ErrorKind::OutOfBounds,
        "shared memory address " + hex(offsets[lane]) + ", " +
            std::to_string(bytes) + " bytes, is outside of the CTA's " +
            std::to_string(shared.size()) + " bytes",
        static_cast<int>(lane), offsets[lane]});
}

void Sm::checkWritten(const Warp &warp, LaneMask active,
                      const uint32_t *offsets, unsigned bytes,
                      SharedSpan span) const {
  const SharedMemory &shared = warp.cta->shared;
  // Lanes mostly share a span without gaps.
  constexpr uint32_t kWideSpan = 512;
  if (span.end - span.begin <= kWideSpan &&
      shared.isAllWritten(span.begin, span.end))
    return;
  bool written = true;
  for (LaneMask rest = active; rest; rest &= rest - 1)
    written &= shared.isWritten(offsets[firstLane(rest)], bytes);
  if (written)
    return;
  while (shared.isWritten(offsets[firstLane(active)], bytes))
    active &= active - 1;
  failUnwritten(warp, firstLane(active), offsets[firstLane(active)], bytes);
}

void Sm::failUnwritten(const Warp &warp, unsigned lane, uint32_t offset,
                       unsigned bytes) const {
  std::string text = "shared memory at " + hex(offset) + " (" +
                     std::to_string(bytes) + " bytes)";
  bool copying = false;
  for (const WarpHandle &other : warp.cta->warps)
    for (size_t i = 0; i < other->groups.size(); ++i)
      for (const AsyncSpan &span : other->groups[i].spans)
        copying |=
            span.offset < offset + bytes && offset < span.offset + span.bytes;
  text += copying ? " is read while a cp.async that fills it has not been "
                    "waited for: a "
                    "cp.async.wait_group (and a barrier) is missing"
                  : " is read but was never written";
  fail(warp, warp.pc - 1,
       {ErrorKind::Uninitialised, text, static_cast<int>(lane),
        uint64_t(offset)});
}

uint64_t Sm::accountShared(unsigned wavefronts, unsigned best) {
  ++statistics.sharedAccesses;
  statistics.sharedWavefronts += wavefronts;
  statistics.sharedConflictWavefronts +=
      wavefronts - std::min(wavefronts, best);
  if (currentIsFree())
    return now;
  return occupyLsu(wavefronts) + wavefronts - 1;
}

void Sm::loadShared(Warp &warp, const MicroOp &op, LaneMask active,
                    const Addresses &addresses) {
  unsigned bytes = accessBytes(op);
  uint32_t offsets[kWarpSize];
  SharedSpan span = sharedOffsets(warp, active, addresses, bytes, offsets);
  checkWritten(warp, active, offsets, bytes, span);
  uint64_t base = reinterpret_cast<uint64_t>(warp.cta->shared.data());
  Addresses host;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    host.lane[lane] = base + offsets[lane];
  loadLanes(warp.context, op, active, host.lane);

  uint64_t served = accountShared(sharedWavefronts(offsets, bytes, active),
                                  std::max(1u, bytes / 4));
  setReady(warp, op, currentIsFree() ? now : served + chip.sharedLatency);
}

void Sm::storeShared(Warp &warp, const MicroOp &op, LaneMask active,
                     const Addresses &addresses) {
  unsigned bytes = accessBytes(op);
  uint32_t offsets[kWarpSize];
  SharedSpan span = sharedOffsets(warp, active, addresses, bytes, offsets);
  alignas(64) uint8_t values[kWarpSize * 64];
  const RowIndex *rows =
      op.width == 1 ? &op.src[1] : program.pool.data() + op.ext;
  packLanes(warp.context, op, rows, values);
  SharedMemory &shared = warp.cta->shared;
  unsigned wavefronts = sharedWavefronts(offsets, bytes, active);
  if (usesAsyncProxy) [[unlikely]]
    noteGenericWrite(warp, active, offsets, bytes);
  if (span.end - span.begin == bytes) // Of lanes at one place the last wins.
    active = 1u << (kWarpSize - 1 - std::countl_zero(active));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    copyBytes(shared.data() + offsets[lane], values + lane * bytes, bytes);
    shared.setWritten(offsets[lane], bytes);
  }
  uint64_t served = accountShared(wavefronts, std::max(1u, bytes / 4));
  logComplete(served + 1);
}

//===----------------------------------------------------------------------===//
// Global memory
//===----------------------------------------------------------------------===//

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
  bool placed = range && range->isPlaced();
  // Ordered loads go to L2, where other SMs' stores are.
  bool cached = l1.exists() && op.sem() == MemSem::Weak && !op.has(kVolatile);

  LineList list;
  if (range)
    coalesce(*range, addresses.lane, bytes, active, contiguous, list);
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

//===----------------------------------------------------------------------===//
// Local and parameter memory, fences
//===----------------------------------------------------------------------===//

void Sm::accessLocal(Warp &warp, const MicroOp &op, LaneMask active,
                     const Addresses &addresses) {
  Cta &cta = *warp.cta;
  unsigned bytes = accessBytes(op);
  Addresses host;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    auto offset = static_cast<uint32_t>(addresses.lane[lane]);
    if (offset > cta.localBytes || bytes > cta.localBytes - offset)
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds,
            "local memory address " + hex(offset) + ", " +
                std::to_string(bytes) + " bytes, is outside of the thread's " +
                std::to_string(cta.localBytes) + " bytes",
            static_cast<int>(lane), uint64_t(offset)});
    size_t thread = warp.index * kWarpSize + lane;
    host.lane[lane] = reinterpret_cast<uint64_t>(
        cta.local.data() + thread * cta.localBytes + offset);
  }
  // Lanes are interleaved in hardware, so an access is one line per 4 bytes.
  uint64_t cycles = std::max(1u, bytes / 4);
  uint64_t served = (currentIsFree() ? now : occupyLsu(cycles)) + cycles - 1;
  if (op.opcode == Opcode::Ld) {
    loadLanes(warp.context, op, active, host.lane);
    setReady(warp, op, currentIsFree() ? now : served + chip.l1Latency);
    return;
  }
  alignas(64) uint8_t values[kWarpSize * 64];
  const RowIndex *rows =
      op.width == 1 ? &op.src[1] : program.pool.data() + op.ext;
  packLanes(warp.context, op, rows, values);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    std::memcpy(reinterpret_cast<void *>(host.lane[lane]),
                values + lane * bytes, bytes);
  }
  logComplete(served + 1);
}

void Sm::loadParam(Warp &warp, const MicroOp &op, LaneMask active,
                   const Addresses &addresses) {
  unsigned bytes = accessBytes(op);
  Addresses host;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    auto offset = static_cast<uint32_t>(addresses.lane[lane]);
    if (offset > program.paramBytes || bytes > program.paramBytes - offset)
      fail(warp, warp.pc - 1,
           {ErrorKind::OutOfBounds,
            "parameter address " + hex(offset) + " is outside of the " +
                std::to_string(program.paramBytes) + " bytes of parameters",
            static_cast<int>(lane), uint64_t(offset)});
    host.lane[lane] = reinterpret_cast<uint64_t>(launch.params.data() + offset);
  }
  loadLanes(warp.context, op, active, host.lane);
  setReady(warp, op,
           currentIsFree() ? now
                           : now + chip.cost(LatencyClass::LoadParam).latency);
}

void Sm::fence(Warp &warp, const MicroOp &op) {
  // Waiting for earlier stores has been done before issue (updateWake).
  if (op.sub == kProxyFence)
    warp.cta->shared.showAll();
  if (op.sub || currentIsFree())
    return;
  warp.nextIssue = now + chip.cost(LatencyClass::Fence).latency;
  logComplete(warp.nextIssue);
}

} // namespace kperfir::simt
