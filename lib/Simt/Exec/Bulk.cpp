//===- Bulk.cpp - Bulk copies and tensor maps, on the SM's side -----------===//
//
// A bulk copy is queued here and executed at the exchange (BulkExchange.cpp),
// which alone sees global memory and the other CTAs of a cluster. Its end is an
// event of the SM whose shared memory it fills: until then the bytes count as
// unwritten, and the mbarrier misses them.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Bulk.h"

#include "Simt/Exec/Sm.h"
#include "Simt/Exec/TensorMap.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

void Sm::executeBulk(Warp &warp, const MicroOp &op, LaneMask active) {
  uint64_t latency = launch.costs[warp.pc - 1].latency;
  logComplete(now + latency);
  switch (op.opcode) {
  case Opcode::Wgmma:
    return wgmma(warp, op, active);
  case Opcode::WgmmaFence:
  case Opcode::WgmmaCommitGroup:
  case Opcode::WgmmaWaitGroup:
    return wgmmaGroup(warp, op, active);
  default:
    break;
  }
  if (!active)
    return;
  switch (op.opcode) {
  case Opcode::BulkCopy:
    return bulkCopy(warp, op, active);
  case Opcode::BulkCommitGroup:
    warp.bulkGroups.commit();
    return;
  case Opcode::BulkWaitGroup:
    return waitBulkGroup(warp, op);
  case Opcode::TensormapReplace:
    return tensormapReplace(warp, op, active);
  default:
    return tensormapCopy(warp, op, active);
  }
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void Sm::bulkCopy(Warp &warp, const MicroOp &op, LaneMask active) {
  const BulkCopyShape &shape = program.bulkCopies[static_cast<size_t>(op.imm)];
  const RowIndex *rows = program.pool.data() + op.ext;
  auto value = [&](BulkOperand which, unsigned lane) -> uint64_t {
    auto index = static_cast<unsigned>(which);
    if (rows[index] == kNoRow)
      return 0;
    auto offset =
        static_cast<uint64_t>(static_cast<int64_t>(shape.offset[index]));
    return offset + (shape.wideOperands >> index & 1
                         ? warp.context.src64(rows[index])[lane]
                         : warp.context.src(rows[index])[lane]);
  };
  bool hasGroup = shape.direction == BulkCopyShape::Direction::Store ||
                  shape.direction == BulkCopyShape::Direction::Reduce;
  // Behind what the load/store unit still has to send.
  uint64_t served = currentIsFree() ? now : occupyLsu(1);
  for (; active; active &= active - 1) {
    unsigned lane = firstLane(active);
    BulkOperands operands;
    operands.lane = lane;
    operands.map = value(BulkOperand::Map, lane);
    operands.shared = static_cast<uint32_t>(value(BulkOperand::Shared, lane));
    operands.mbarrier =
        static_cast<uint32_t>(value(BulkOperand::Mbarrier, lane));
    operands.source = static_cast<uint32_t>(value(BulkOperand::Source, lane));
    operands.bytes = static_cast<uint32_t>(value(BulkOperand::Bytes, lane));
    operands.ctaMask =
        static_cast<uint32_t>(value(BulkOperand::CtaMask, lane)) & 0xFFFF;
    for (unsigned i = 0; i < 5; ++i)
      operands.coordinate[i] =
          static_cast<int32_t>(value(coordinateOperand(i), lane));
    GlobalRequest &request = queue(warp, op, GlobalRequest::Kind::BulkCopy,
                                   LaneMask(1) << lane, served);
    request.data = requests.reserve(sizeof operands);
    std::memcpy(requests.data.data() + request.data, &operands,
                sizeof operands);
    ++warp.cta->pendingEvents; // It must not leave before the copy is executed.
    if (hasGroup) {
      request.group = warp.firstBulkGroup + warp.bulkGroups.size() - 1;
      ++warp.bulkGroups.back().unresolved;
    }
  }
}

void Sm::waitBulkGroup(Warp &warp, const MicroOp &op) {
  uint64_t open = warp.firstBulkGroup + warp.bulkGroups.size() - 1;
  auto allowed = static_cast<uint64_t>(std::max(op.imm, 0));
  constexpr uint8_t kRead = 1;
  warp.awaitedBulkGroups = open >= allowed ? open - allowed : 0;
  warp.awaitsBulkReads = op.sub == kRead;
  uint64_t done = bulkGroupsDone(warp);
  if (done == kUnresolved)
    return block(warp, WarpState::Bulk);
  warp.nextIssue = std::max(
      done, currentIsFree() ? now : now + launch.costs[warp.pc - 1].latency);
  logComplete(warp.nextIssue);
  retireBulkGroups(warp);
}

uint64_t Sm::bulkGroupsDone(const Warp &warp) const {
  uint64_t done = 0, serial = warp.firstBulkGroup;
  for (size_t i = 0; i < warp.bulkGroups.size(); ++i) {
    if (serial++ >= warp.awaitedBulkGroups)
      break;
    const BulkGroup &group = warp.bulkGroups[i];
    if (group.unresolved)
      return kUnresolved;
    done = std::max(done, warp.awaitsBulkReads ? group.readDone : group.done);
  }
  return done;
}

void Sm::retireBulkGroups(Warp &warp) {
  // A wait for reads leaves the writes to be waited for, unless they have
  // ended. The last group is open.
  auto isOver = [&](const BulkGroup &group) {
    return group.unresolved == 0 && group.done <= now;
  };
  while (warp.bulkGroups.size() > 1 &&
         ((!warp.awaitsBulkReads &&
           warp.firstBulkGroup < warp.awaitedBulkGroups) ||
          isOver(warp.bulkGroups.front()))) {
    warp.bulkGroups.popFront();
    ++warp.firstBulkGroup;
  }
}

void Sm::answerBulk(const GlobalRequest &request, const BulkTimes &times,
                    uint64_t earliest) {
  Warp &warp = *request.warp;
  const BulkCopyShape &shape =
      program.bulkCopies[static_cast<size_t>(program.ops[request.pc].imm)];
  if (request.log != kNoLog)
    log.complete[request.log] = std::max(log.complete[request.log], times.done);
  lastCycle = std::max(lastCycle, times.done);
  --warp.cta->pendingEvents;
  if (shape.direction != BulkCopyShape::Direction::Store &&
      shape.direction != BulkCopyShape::Direction::Reduce)
    return;
  BulkGroup &group = warp.bulkGroups[request.group - warp.firstBulkGroup];
  --group.unresolved;
  group.readDone = std::max(group.readDone, times.readDone);
  group.done = std::max(group.done, times.done);
  if (warp.state != WarpState::Bulk)
    return;
  uint64_t done = bulkGroupsDone(warp);
  if (done == kUnresolved)
    return;
  retireBulkGroups(warp);
  unblock(warp, std::max(done, earliest));
}

void Sm::scheduleFill(Cta &cta, const BulkFill &fill, uint64_t cycle) {
  SmEvent event{};
  event.cta = &cta;
  event.fill = fill;
  if (!fill.isReadable)
    cta.shared.markWritten(fill.offset, fill.bytes, false);
  cta.shared.show(fill.offset, fill.bytes);
  ++cta.pendingEvents;
  schedule(event, cycle);
}

void Sm::finishFill(const SmEvent &event) {
  Cta &cta = *event.cta;
  cta.shared.markWritten(event.fill.offset, event.fill.bytes, true);
  --cta.pendingEvents;
  completeTransactions(cta, event.fill.mbarrier, event.fill.bytes);
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

void Sm::tensormapReplace(Warp &warp, const MicroOp &op, LaneMask active) {
  Addresses addresses = addressesOf(warp, op);
  uint32_t offsets[kWarpSize];
  sharedOffsets(warp, active, addresses, kTensorMapBytes, offsets);
  checkAlignment(warp, op, active, addresses, kTensorMapBytes);
  auto field = static_cast<TensormapField>(op.sub);
  bool isWide = field == TensormapField::GlobalAddress ||
                field == TensormapField::GlobalStride;
  for (; active; active &= active - 1) {
    unsigned lane = firstLane(active);
    SharedMemory &shared = warp.cta->shared;
    if (!shared.allWritten(offsets[lane], kTensorMapBytes))
      failUnwritten(warp, lane, offsets[lane], kTensorMapBytes);
    uint64_t value = isWide ? warp.context.src64(op.src[1])[lane]
                            : warp.context.src(op.src[1])[lane];
    TensorMap map;
    std::memcpy(&map, shared.data() + offsets[lane], sizeof map);
    if (!map.replace(field, op.width, value))
      fail(warp, warp.pc - 1,
           {ErrorKind::Unsupported,
            "a tensor map cannot hold the value " + std::to_string(value),
            static_cast<int>(lane)});
    std::memcpy(shared.data() + offsets[lane], &map, sizeof map);
  }
  uint64_t served = accountShared(1, 1);
  if (!currentIsFree())
    logComplete(served + chip.cost(LatencyClass::Tensormap).latency);
}

/// The whole warp copies the map, lane i its word i.
void Sm::tensormapCopy(Warp &warp, const MicroOp &op, LaneMask active) {
  if (active != kFullMask)
    fail(warp, warp.pc - 1,
         {ErrorKind::Deadlock, "tensormap.cp_fenceproxy is executed by " +
                                   std::to_string(std::popcount(active)) +
                                   " lanes of the warp; need all 32"});
  Addresses to = addressesOf(warp, op), from;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    from.lane[lane] = op.has(kSource32) ? warp.context.src(op.src[1])[lane]
                                        : warp.context.src64(op.src[1])[lane];
  uint32_t offsets[kWarpSize];
  sharedOffsets(warp, 1, from, kTensorMapBytes, offsets);
  checkAlignment(warp, op, 1, from, kTensorMapBytes);
  checkAlignment(warp, op, 1, to, kTensorMapBytes);
  if (!warp.cta->shared.allWritten(offsets[0], kTensorMapBytes))
    failUnwritten(warp, 0, offsets[0], kTensorMapBytes);

  uint64_t base = to.lane[0];
  constexpr unsigned kWord = kTensorMapBytes / kWarpSize;
  GlobalRequest &request =
      queue(warp, op, GlobalRequest::Kind::Store, kFullMask,
            currentIsFree() ? now : occupyLsu(1));
  request.bytes = kWord;
  for (unsigned lane = 0; lane < kWarpSize; ++lane)
    request.address[lane] = base + lane * kWord;
  request.data = requests.reserve(kTensorMapBytes);
  std::memcpy(requests.data.data() + request.data,
              warp.cta->shared.data() + offsets[0], kTensorMapBytes);
  ++warp.unresolvedStores;
}

} // namespace kperfir::simt
