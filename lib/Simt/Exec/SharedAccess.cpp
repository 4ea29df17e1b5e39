//===- SharedAccess.cpp - ld and st of shared memory --------------------===//
//
// Checks offsets and what has been written, moves the data and accounts for
// bank conflicts. Served at once.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Hex.h"
#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"
#include "Simt/Timing/SharedBanks.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

namespace {
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
} // namespace

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

unsigned Sm::wavefrontsOf(const uint32_t *offsets, unsigned bytes,
                          LaneMask active) const {
  return isUntimed ? 0 : sharedWavefronts(offsets, bytes, active);
}

uint64_t Sm::accountShared(unsigned wavefronts, unsigned best) {
  if (isUntimed)
    return now;
  ++statistics.sharedAccesses;
  logUnits(wavefronts);
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

  uint64_t served = accountShared(wavefrontsOf(offsets, bytes, active),
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
  unsigned wavefronts = wavefrontsOf(offsets, bytes, active);
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

} // namespace kperfir::simt
