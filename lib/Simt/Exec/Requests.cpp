//===- Requests.cpp - An SM's own part of an exchange ---------------------===//
//
// Before the exchange a request goes through what belongs to its SM: L1, and
// the port to L2; after it, through what follows from the answers. Both run on
// any host thread, while the SM's memory is in its caches, so that L2, DRAM and
// the data of stores are all that is left for one thread to do in order.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/AsyncCopy.h"
#include "Simt/Exec/Sm.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace kperfir::simt {

//===----------------------------------------------------------------------===//
// Before
//===----------------------------------------------------------------------===//

void Sm::prepareRequests() {
  hasAnswers = false;
  if (requests.entries.empty())
    return;
  sortRequests();
  for (const GlobalRequest &request : requests.entries)
    noteWrite(request);
  // Requests of an SM are executed in order: none is prepared behind one that
  // is not.
  if (isUntimed || error)
    return;
  for (uint32_t entry : requests.order)
    if (!prepare(entry))
      return;
}

void Sm::sortRequests() {
  std::vector<uint32_t> &order = requests.order;
  order.resize(requests.entries.size());
  std::iota(order.begin(), order.end(), 0u);
  auto isBefore = [this](uint32_t a, uint32_t b) {
    return requests.entries[a].cycle < requests.entries[b].cycle;
  };
  if (!std::is_sorted(order.begin(), order.end(), isBefore))
    std::stable_sort(order.begin(), order.end(), isBefore);
}

void Sm::noteWrite(const GlobalRequest &request) {
  const GlobalRange *range = request.range;
  switch (request.kind) {
  case GlobalRequest::Kind::Store:
  case GlobalRequest::Kind::Atomic:
    break;
  case GlobalRequest::Kind::BulkCopy:
    range = nullptr;
    break;
  default:
    return;
  }
  if (std::ranges::find(written, range) == written.end())
    written.push_back(range);
}

/// False: the exchange has to do all of it.
bool Sm::prepare(uint32_t entry) {
  const GlobalRequest &request = requests.entries[entry];
  bool writes = request.kind == GlobalRequest::Kind::Store ||
                request.kind == GlobalRequest::Kind::Atomic;
  bool isKnown = writes || request.kind == GlobalRequest::Kind::Load ||
                 request.kind == GlobalRequest::Kind::AsyncCopy;
  // Timing addresses are given at an exchange.
  if (!isKnown || !request.range || !request.range->isPlaced() ||
      (writes && !request.range->writable))
    return false;
  PreparedRequest prepared;
  prepared.cycle = request.cycle;
  prepared.range = request.range;
  prepared.entry = entry;
  prepared.kind = request.kind;
  prepared.firstAccess = static_cast<uint32_t>(requests.accesses.size());
  if (!request.free) {
    LineList list;
    LaneMask lanes = request.mask;
    if (request.kind == GlobalRequest::Kind::AsyncCopy)
      lanes = readingLanes(asyncOperands(requests.data.data() + request.data),
                           lanes);
    coalesce(*request.range, request.address, request.bytes, lanes,
             request.contiguous, list);
    if (writes)
      for (unsigned i = 0; i < list.count; ++i)
        requests.accesses.push_back({.line = list.lines[i].line,
                                     .arrival = request.cycle,
                                     .sectors = list.lines[i].sectors});
    else
      prepareReads(request, list);
  }
  prepared.accessCount =
      static_cast<uint32_t>(requests.accesses.size()) - prepared.firstAccess;
  requests.prepared.push_back(prepared);
  return true;
}

void Sm::prepareReads(const GlobalRequest &request, const LineList &list) {
  uint64_t begin = std::max(request.cycle, portFree), fetchedBytes = 0;
  for (unsigned i = 0; i < list.count; ++i) {
    auto [address, sectors] = list.lines[i];
    L2Access &access = requests.accesses.emplace_back();
    access.line = address;
    access.sectors = sectors;
    // The SM's port takes some bytes in a cycle.
    access.arrival = begin + fetchedBytes / chip.smPortBytesPerCycle;
    if (request.cached)
      access.inL1 = l1.find(address); // None if it was evicted since.
    if (access.inL1) {
      uint8_t asked = access.inL1.unanswered(sectors);
      // What a store dropped in the meantime is read, but not kept. The rest
      // hits, or another request brings it.
      access.sectors = asked | access.inL1.missing(sectors);
      access.present = static_cast<uint8_t>(sectors & ~access.sectors);
      access.kept = asked;
      access.inL1.claim(asked);
    }
    fetchedBytes +=
        static_cast<unsigned>(std::popcount(access.sectors)) * kSectorBytes;
  }
  portFree = begin + fetchedBytes / chip.smPortBytesPerCycle;
}

//===----------------------------------------------------------------------===//
// After
//===----------------------------------------------------------------------===//

void Sm::takeAnswers(uint64_t end) {
  if (std::exchange(hasAnswers, true))
    return;
  for (const PreparedRequest &prepared : requests.prepared) {
    GlobalRequest &request = requests.entries[prepared.entry];
    if (request.kind == GlobalRequest::Kind::AsyncCopy && !request.loaded)
      copyToShared(request.warp->cta->shared,
                   asyncOperands(requests.data.data() + request.data),
                   request.mask, request.bytes, request.address);
    uint64_t done = 0;
    if (request.kind == GlobalRequest::Kind::Store)
      done = request.cycle;
    if (request.kind == GlobalRequest::Kind::Store ||
        request.kind == GlobalRequest::Kind::Atomic)
      for (uint32_t i = 0; i < prepared.accessCount; ++i)
        done = std::max(done, requests.accesses[prepared.firstAccess + i].done);
    else if (!request.free)
      done = finishReads(request, prepared);
    // SMs are past the cycles before `end`; nobody waits for a store.
    if (request.kind != GlobalRequest::Kind::Store)
      done = std::max(done, end);
    answer(request, done);
  }
}

uint64_t Sm::finishReads(const GlobalRequest &request,
                         const PreparedRequest &prepared) {
  uint64_t done = request.cycle + chip.l1Latency;
  for (uint32_t i = 0; i < prepared.accessCount; ++i) {
    L2Access &access = requests.accesses[prepared.firstAccess + i];
    if (access.inL1)
      done = std::max(done, access.inL1.ready(access.present));
    if (!access.sectors)
      continue;
    if (access.kept)
      access.inL1.arrive(access.kept, access.done, request.cycle);
    done = std::max(done, access.done);
  }
  return done;
}

void Sm::answer(GlobalRequest &request, uint64_t done) {
  Warp &warp = *request.warp;
  if (request.log != kNoLog)
    log.complete[request.log] = done;
  switch (request.kind) {
  case GlobalRequest::Kind::Load:
  case GlobalRequest::Kind::Atomic:
  case GlobalRequest::Kind::Remote:
    for (uint16_t slot : program.writes(program.ops[request.pc]))
      warp.ready[slot] = done;
    if (program.ops[request.pc].opcode == Opcode::Ld)
      break;
    [[fallthrough]];
  case GlobalRequest::Kind::Store:
    --warp.unresolvedStores;
    warp.storesDone = std::max(warp.storesDone, done);
    break;
  case GlobalRequest::Kind::AsyncCopy: {
    AsyncGroup &group = warp.groups[request.group - warp.firstGroup];
    --group.unresolved;
    group.done = std::max(group.done, done);
    break;
  }
  case GlobalRequest::Kind::AsyncArrive:
  case GlobalRequest::Kind::BulkCopy: // answerBulk
    break;
  }
  lastCycle = std::max(lastCycle, done);
  if (warp.state == WarpState::Memory)
    answered.push_back(&warp);
}

void Sm::finishExchange(uint64_t end) {
  takeAnswers(end);
  for (Warp *warp : answered)
    if (warp->state == WarpState::Memory)
      updateWake(*warp);
  answered.clear();
  requests.clear();
  unresolvedEvents.clear();
  written.clear();
  untimedWrites.clear();
  untimedWritesAny = false;
  warmed.clear();
}

} // namespace kperfir::simt
