//===- LoadStore.cpp - ld, st and fence ---------------------------------===//
//
// Finds out which state space each lane addresses; executes local and parameter
// memory and fences. Shared and global memory have files of their own.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Hex.h"
#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"

#include <algorithm>

namespace kperfir::simt {

namespace {
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
  if (op.latency == LatencyClass::Cluster)
    return accessAsync(warp, op, active);
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
    return storeCluster(warp, op, active, addresses);
  case Space::Local:
    return accessLocal(warp, op, active, addresses);
  case Space::Param:
  case Space::Generic:
    break;
  }
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kSharedWindow)) {
    storeCluster(warp, op, lanes, addresses);
    active &= ~lanes;
  }
  if (LaneMask lanes = lanesInWindow(addresses.lane, active, kLocalWindow)) {
    accessLocal(warp, op, lanes, addresses);
    active &= ~lanes;
  }
  if (active)
    storeGlobal(warp, op, active, addresses);
}

/// Shared memory of this CTA or of others.
void Sm::storeCluster(Warp &warp, const MicroOp &op, LaneMask active,
                      Addresses &addresses) {
  LaneMask remote = splitRemote(warp, active, addresses);
  if (remote)
    storeRemote(warp, op, remote, addresses);
  if (active & ~remote)
    storeShared(warp, op, active & ~remote, addresses);
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
