//===- Cluster.cpp - CTAs that see each other's shared memory -------------===//
//
// What a CTA asks of another one of its cluster goes through the exchange,
// where no SM runs: loads, stores, atomics and arrivals at mbarriers alike. So
// it takes at least the rest of a step, however near the other SM is.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Cluster.h"

#include "Simt/Exec/Atomic.h"
#include "Simt/Exec/Mbarrier.h"
#include "Simt/Exec/Sm.h"
#include "Simt/Exec/Transfer.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

//===----------------------------------------------------------------------===//
// Shared memory of other CTAs
//===----------------------------------------------------------------------===//

ClusterMember Sm::memberAt(const Warp &warp, uint32_t address) {
  uint32_t rank = address >> kSharedRankShift;
  Cta &cta = *warp.cta;
  if (rank == 0 || rank == cta.rank + 1)
    return {this, &cta};
  if (!cta.cluster || rank > cta.cluster->members.size())
    return {};
  return cta.cluster->members[rank - 1];
}

LaneMask Sm::splitRemote(const Warp &warp, LaneMask active,
                         Addresses &addresses) const {
  LaneMask remote = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    auto address = static_cast<uint32_t>(addresses.lane[lane]);
    uint32_t rank = address >> kSharedRankShift;
    if (rank == warp.cta->rank + 1)
      addresses.lane[lane] = address & kSharedOffsetMask;
    else if (rank)
      remote |= LaneMask(1) << lane;
  }
  return remote;
}

/// Queues the access of `lanes`; `operands` are those of a store or an atomic.
void Sm::accessRemote(Warp &warp, const MicroOp &op, LaneMask lanes,
                      const Addresses &addresses,
                      std::span<const uint8_t> operands) {
  GlobalRequest &request = queue(warp, op, GlobalRequest::Kind::Remote, lanes,
                                 currentIsFree() ? now : occupyLsu(1));
  std::memcpy(request.address, addresses.lane, sizeof request.address);
  ++warp.cta->pendingEvents;
  if (!operands.empty()) {
    request.data = requests.reserve(operands.size());
    std::memcpy(requests.data.data() + request.data, operands.data(),
                operands.size());
  }
  if (op.opcode == Opcode::Ld || op.opcode == Opcode::Atom)
    setReady(warp, op, kUnresolved);
  if (op.opcode != Opcode::Ld)
    ++warp.unresolvedStores;
}

void Sm::storeRemote(Warp &warp, const MicroOp &op, LaneMask lanes,
                     const Addresses &addresses) {
  alignas(64) uint8_t values[kWarpSize * 64];
  const RowIndex *rows =
      op.width == 1 ? &op.src[1] : program.pool.data() + op.ext;
  packLanes(warp.context, op, rows, values);
  accessRemote(warp, op, lanes, addresses,
               {values, size_t(kWarpSize) * accessBytes(op)});
}

/// Bytes of a queued access before the addresses of its mbarriers: those of two
/// operands, as atomics have.
static size_t mbarriersAt(unsigned bytes) {
  return size_t(2) * kWarpSize * bytes;
}

void Sm::accessAsync(Warp &warp, const MicroOp &op, LaneMask active) {
  if (!active)
    return;
  constexpr unsigned kMostBytes = 32;
  unsigned bytes = accessBytes(op);
  Addresses addresses = addressesOf(warp, op);
  checkAlignment(warp, op, active, addresses, bytes);
  alignas(64) uint8_t operands[kWarpSize * (2 * kMostBytes + sizeof(uint32_t))];
  const RowIndex *rows =
      op.width == 1 ? &op.src[1] : program.pool.data() + op.ext;
  packLanes(warp.context, op, rows, operands);
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    auto mbarrier = static_cast<uint32_t>(
        op.has(kSource32) ? warp.context.src(op.src[2])[lane]
                          : warp.context.src64(op.src[2])[lane]);
    std::memcpy(operands + mbarriersAt(bytes) + lane * sizeof mbarrier,
                &mbarrier, sizeof mbarrier);
  }
  accessRemote(warp, op, active, addresses,
               {operands, mbarriersAt(bytes) + kWarpSize * sizeof(uint32_t)});
}

void Sm::completeAsync(const GlobalRequest &request, unsigned lane,
                       uint32_t offset, uint64_t cycle) {
  const MicroOp &op = program.ops[request.pc];
  unsigned bytes = accessBytes(op);
  uint32_t address;
  std::memcpy(&address,
              requests.data.data() + request.data + mbarriersAt(bytes) +
                  lane * sizeof address,
              sizeof address);
  ClusterMember target =
      memberAt(*request.warp, static_cast<uint32_t>(request.address[lane]));
  uint32_t mbarrier = address & kSharedOffsetMask;
  auto reject = [&](ErrorKind kind, const char *what) {
    fail(*request.warp, request.pc,
         {kind, what, static_cast<int>(lane), uint64_t(address)});
  };
  if (memberAt(*request.warp, address).cta != target.cta)
    reject(ErrorKind::OutOfBounds,
           "the mbarrier is not in the CTA that the data goes to");
  if (!target.cta->shared.inBounds(mbarrier, Mbarrier::kBytes))
    reject(ErrorKind::OutOfBounds, "the mbarrier is outside of shared memory");
  if (mbarrier % Mbarrier::kBytes)
    reject(ErrorKind::Misaligned, "mbarrier is not aligned to 8 bytes");
  if (!target.cta->shared.isWritten(mbarrier, Mbarrier::kBytes))
    reject(ErrorKind::Uninitialised, "mbarrier has not been initialised");
  checkProductOperands(*target.cta, *request.warp, request.pc,
                       {offset, bytes, lane});
  target.sm->scheduleFill(
      *target.cta, {offset, bytes, mbarrier, op.opcode == Opcode::Red}, cycle);
}

/// mbarrier.arrive and its relatives on an mbarrier of another CTA.
void Sm::updateRemoteMbarrier(Warp &warp, const MicroOp &op, LaneMask lanes,
                              const Addresses &addresses) {
  bool isPossible =
      op.opcode == Opcode::MbarrierExpectTx ||
      op.opcode == Opcode::MbarrierCompleteTx ||
      (op.opcode == Opcode::MbarrierArrive && op.dst[0] == kNoRow &&
       static_cast<MbarrierArrival>(op.sub) != MbarrierArrival::NoComplete);
  if (!isPossible)
    fail(warp, warp.pc - 1,
         {ErrorKind::Unsupported,
          "this operation is not possible on the mbarrier of another CTA",
          static_cast<int>(firstLane(lanes))});
  uint32_t counts[kWarpSize];
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    counts[lane] = op.src[1] == kNoRow ? 1 : warp.context.src(op.src[1])[lane];
  accessRemote(warp, op, lanes, addresses,
               {reinterpret_cast<const uint8_t *>(counts), sizeof counts});
}

uint8_t *Sm::remoteBytes(const GlobalRequest &request, unsigned lane,
                         unsigned bytes, ClusterMember &member) {
  auto address = static_cast<uint32_t>(request.address[lane]);
  uint32_t offset = address & kSharedOffsetMask;
  member = memberAt(*request.warp, address);
  if (!member.cta)
    fail(*request.warp, request.pc,
         {ErrorKind::OutOfBounds,
          "the address is in CTA " +
              std::to_string((address >> kSharedRankShift) - 1) +
              " of the cluster, which does not exist or has ended",
          static_cast<int>(lane), uint64_t(address)});
  if (!member.cta->shared.inBounds(offset, bytes))
    fail(*request.warp, request.pc,
         {ErrorKind::OutOfBounds,
          "shared memory address " + std::to_string(offset) + ", " +
              std::to_string(bytes) + " bytes, is outside of the CTA's " +
              std::to_string(member.cta->shared.size()) + " bytes",
          static_cast<int>(lane), uint64_t(offset)});
  return member.cta->shared.data() + offset;
}

void Sm::executeRemote(GlobalRequest &request, uint64_t earliest) {
  const MicroOp &op = program.ops[request.pc];
  Warp &warp = *request.warp;
  bool isMbarrier = op.kind == OpKind::Barrier;
  unsigned bytes = isMbarrier ? Mbarrier::kBytes : accessBytes(op);
  auto lanes = static_cast<unsigned>(std::popcount(request.mask));
  uint64_t done = request.cycle;
  if (!request.free)
    done += chip.clusterLatency + lanes * bytes / chip.clusterBytesPerCycle;
  --warp.cta->pendingEvents;

  const uint8_t *operands = requests.data.data() + request.data;
  uint64_t host[kWarpSize];
  alignas(64) uint8_t old[kWarpSize * 64];
  for (LaneMask rest = request.mask; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    ClusterMember member;
    uint8_t *memory = remoteBytes(request, lane, bytes, member);
    auto offset = static_cast<uint32_t>(memory - member.cta->shared.data());
    host[lane] = reinterpret_cast<uint64_t>(memory);
    bool needsValue = op.opcode != Opcode::St;
    if (needsValue && !member.cta->shared.allWritten(offset, bytes))
      fail(warp, request.pc,
           {ErrorKind::Uninitialised,
            isMbarrier ? "mbarrier has not been initialised"
                       : "shared memory of another CTA is read but was never "
                         "written",
            static_cast<int>(lane), uint64_t(offset)});
    if (isMbarrier) {
      if (offset % Mbarrier::kBytes)
        fail(warp, request.pc,
             {ErrorKind::Misaligned, "mbarrier is not aligned to 8 bytes",
              static_cast<int>(lane), uint64_t(offset)});
      uint32_t count;
      std::memcpy(&count, operands + lane * sizeof count, sizeof count);
      member.sm->scheduleArrival(*member.cta, request, lane, count,
                                 std::max(done, earliest));
    } else if (op.opcode == Opcode::St) {
      std::memcpy(memory, operands + size_t(lane) * bytes, bytes);
      member.cta->shared.markWritten(offset, bytes, true);
    } else if (op.opcode != Opcode::Ld) {
      applyRemoteAtomic(op, memory, operands + size_t(lane) * bytes,
                        old + size_t(lane) * bytes);
      host[lane] = reinterpret_cast<uint64_t>(old + size_t(lane) * bytes);
    }
    if (op.kind == OpKind::Memory && op.latency == LatencyClass::Cluster)
      completeAsync(request, lane, offset, std::max(done, earliest));
  }
  if (op.opcode == Opcode::Ld || op.opcode == Opcode::Atom) {
    MicroOp result = op;
    if (op.opcode == Opcode::Atom)
      result.sub = static_cast<uint8_t>(typeBits(op.type)); // As Ld has it.
    loadLanes(warp.context, result, request.mask, host);
  }
  request.done = done;
  answer(request, std::max(done, earliest));
}

void Sm::applyRemoteAtomic(const MicroOp &op, uint8_t *memory,
                           const uint8_t *operand, uint8_t *old) const {
  unsigned element = typeBits(op.type) / 8;
  const uint8_t *replacement = operand + size_t(kWarpSize) * accessBytes(op);
  for (unsigned i = 0; i < accessBytes(op); i += element)
    applyAtomic(static_cast<AtomicOp>(op.sub), op.type, memory + i, operand + i,
                replacement + i, old + i);
}

void Sm::scheduleArrival(Cta &cta, const GlobalRequest &request, unsigned lane,
                         uint32_t count, uint64_t cycle) {
  SmEvent event{};
  event.cta = &cta;
  event.remote = &program.ops[request.pc];
  event.senderCta = request.warp->cta->linear;
  event.senderWarp = request.warp->index;
  event.senderLane = lane;
  event.mbarrier =
      static_cast<uint32_t>(request.address[lane]) & kSharedOffsetMask;
  event.arrivals = count;
  ++cta.pendingEvents;
  schedule(event, cycle);
}

void Sm::finishArrival(const SmEvent &event) {
  Cta &cta = *event.cta;
  --cta.pendingEvents;
  const char *fault =
      applyToMbarrier(cta, *event.remote, event.mbarrier, event.arrivals);
  if (!fault)
    return;
  // The sender may have ended: the place is told without it.
  auto pc = static_cast<uint32_t>(event.remote - program.ops.data());
  ErrorSite site = siteOf(pc);
  site.cta = event.senderCta;
  site.warp = static_cast<int32_t>(event.senderWarp);
  site.lane = static_cast<int32_t>(event.senderLane);
  site.address = event.mbarrier;
  site.hasAddress = true;
  throw Error(ErrorKind::OutOfBounds,
              std::string(fault) + ", that of CTA " +
                  std::to_string(cta.linear) + " (`" +
                  program.instructionAt(pc).text + "`)",
              site);
}

//===----------------------------------------------------------------------===//
// barrier.cluster
//===----------------------------------------------------------------------===//

void Sm::clusterBarrier(Warp &warp, const MicroOp &op, LaneMask active) {
  checkAligned(warp, op, active);
  Cluster &cluster = *warp.cta->cluster;
  if (op.opcode == Opcode::ClusterArrive) {
    warp.clusterLanes |= active;
    if ((warp.clusterLanes & warp.alive) != warp.alive)
      return; // The others of a diverged warp will come.
    warp.clusterLanes = 0;
    ++warp.clusterArrivals;
    warp.clusterArrivalCycle = now;
    cluster.mayBeComplete.store(true, std::memory_order_relaxed);
    return;
  }
  if (cluster.completedBarriers < warp.clusterArrivals)
    return block(warp, WarpState::Cluster);
  if (!currentIsFree())
    warp.nextIssue = std::max(now + launch.costs[warp.pc - 1].latency,
                              cluster.completedCycle);
  logComplete(warp.nextIssue);
}

bool Sm::hasArrivedAtCluster(const Cta &cta, uint64_t barriers,
                             uint64_t &last) {
  for (const WarpHandle &warp : cta.warps) {
    if (warp->state == WarpState::Finished)
      continue;
    if (warp->clusterArrivals < barriers)
      return false;
    last = std::max(last, warp->clusterArrivalCycle);
  }
  return true;
}

void Sm::releaseFromCluster(Cta &cta, uint64_t cycle) {
  for (const WarpHandle &warp : cta.warps)
    if (warp->state == WarpState::Cluster)
      unblock(*warp, cycle);
}

void completeClusterBarrier(Cluster &cluster, const Chip &chip, uint64_t end) {
  if (!cluster.mayBeComplete.load(std::memory_order_relaxed))
    return;
  cluster.mayBeComplete.store(false, std::memory_order_relaxed);
  uint64_t last = 0;
  for (const ClusterMember &member : cluster.members)
    if (member.cta && !Sm::hasArrivedAtCluster(
                          *member.cta, cluster.completedBarriers + 1, last))
      return;
  ++cluster.completedBarriers;
  cluster.completedCycle = std::max(last + chip.clusterLatency, end);
  for (const ClusterMember &member : cluster.members)
    if (member.cta)
      member.sm->releaseFromCluster(*member.cta, cluster.completedCycle);
}

} // namespace kperfir::simt
