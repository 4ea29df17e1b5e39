//===- Exchange.cpp -------------------------------------------------------===//

#include "Simt/Exec/Exchange.h"

#include "Simt/Exec/AsyncCopy.h"
#include "Simt/Exec/Atomic.h"
#include "Simt/Exec/BulkExchange.h"
#include "Simt/Exec/Transfer.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <numeric>

namespace kperfir::simt {

namespace {
/// Lanes of an atomic on one of its lines, on average.
unsigned lanesPerLine(const GlobalRequest &request, unsigned lines) {
  auto lanes = static_cast<unsigned>(std::popcount(request.mask));
  return (lanes + lines - 1) / std::max(lines, 1u);
}
} // namespace

void Exchange::run(std::vector<std::unique_ptr<Sm>> &sms, uint64_t end) {
  const Sm *failed = nullptr;
  order.clear();
  written.clear();
  writtenAnywhere = false;
  for (std::unique_ptr<Sm> &sm : sms) {
    if (sm->error && (!failed || sm->errorCycle < failed->errorCycle))
      failed = sm.get();
    const RequestQueue &queue = sm->requests;
    for (uint32_t i = 0; i < queue.order.size(); ++i)
      order.push_back({i < queue.prepared.size()
                           ? queue.prepared[i].cycle
                           : queue.entries[queue.order[i]].cycle,
                       sm.get(), i});
    noteWrites(*sm);
  }
  sortByCycle();
  ahead = {};
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < kAhead; ++i)
    prefetchNext();
  for (const Entry &entry : order) {
    if (failed && entry.cycle > failed->errorCycle)
      break;
    RequestQueue &queue = entry.sm->requests;
    if (entry.index < queue.prepared.size()) {
      executePrepared(*entry.sm, queue.prepared[entry.index]);
      continue;
    }
    // It looks at L1 here, and at what came before.
    entry.sm->takeAnswers(end);
    execute(*entry.sm, queue.entries[queue.order[entry.index]], end);
  }
  if (failed && failed->error)
    throw Error(*failed->error);
  for (std::unique_ptr<Sm> &sm : sms)
    for (const LineAccess &access : sm->warmed)
      system.warm(access.line, access.sectors, false);
}

void Exchange::noteWrites(const Sm &sm) {
  constexpr size_t kFew = 16;
  for (const GlobalRange *range : sm.written) {
    if (!range || written.size() == kFew)
      writtenAnywhere = true;
    else if (!isWritten(range))
      written.push_back(range);
  }
}

bool Exchange::isWritten(const GlobalRange *range) const {
  return writtenAnywhere ||
         std::find(written.begin(), written.end(), range) != written.end();
}

void Exchange::sortByCycle() {
  if (order.empty())
    return;
  uint64_t first = kNever, last = 0;
  for (const Entry &entry : order) {
    first = std::min(first, entry.cycle);
    last = std::max(last, entry.cycle);
  }
  constexpr uint64_t kFewCycles = 4096; // A step and a busy load/store unit.
  if (last - first >= kFewCycles) {
    std::stable_sort(
        order.begin(), order.end(),
        [](const Entry &a, const Entry &b) { return a.cycle < b.cycle; });
    return;
  }
  // Entries of one cycle are in the order of SM and queue already.
  places.assign(last - first + 2, 0);
  for (const Entry &entry : order)
    ++places[entry.cycle - first + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  sorted.resize(order.size());
  for (const Entry &entry : order)
    sorted[places[entry.cycle - first]++] = entry;
  order.swap(sorted);
}

void Exchange::prefetchNext() {
  for (; ahead.entry < order.size(); ++ahead.entry, ahead.access = 0) {
    const Entry &entry = order[ahead.entry];
    const RequestQueue &queue = entry.sm->requests;
    if (entry.index >= queue.prepared.size())
      continue;
    const PreparedRequest &prepared = queue.prepared[entry.index];
    while (ahead.access < prepared.accessCount) {
      const L2Access &access =
          queue.accesses[prepared.firstAccess + ahead.access++];
      if (!access.sectors)
        continue;
      system.prefetch(access.line);
      if (prepared.kind == GlobalRequest::Kind::Load)
        return;
      auto bytes = reinterpret_cast<const uint8_t *>(
          prepared.range->hostAddress(access.line * kLineBytes));
      __builtin_prefetch(bytes, 1, 2);
      __builtin_prefetch(bytes + kLineBytes / 2, 1, 2);
      return;
    }
  }
}

void Exchange::executePrepared(Sm &sm, const PreparedRequest &prepared) {
  GlobalRequest &request = sm.requests.entries[prepared.entry];
  L2Access *access = sm.requests.accesses.data() + prepared.firstAccess;
  L2Access *end = access + prepared.accessCount;
  switch (prepared.kind) {
  case GlobalRequest::Kind::Store:
    moveStore(sm, request);
    for (; access != end; ++access) {
      prefetchNext();
      access->done =
          system.write(access->line, access->sectors, access->arrival);
    }
    return;
  case GlobalRequest::Kind::Atomic: {
    moveAtomic(sm, request);
    unsigned perLine = lanesPerLine(request, prepared.accessCount);
    for (; access != end; ++access) {
      prefetchNext();
      access->done = system.atomic(access->line, access->sectors,
                                   access->arrival, perLine);
    }
    return;
  }
  case GlobalRequest::Kind::AsyncCopy:
    if (isWritten(prepared.range)) {
      moveAsync(sm, request);
      request.loaded = true;
    }
    break;
  default:
    if (isWritten(prepared.range))
      reload(request);
  }
  for (; access != end; ++access) {
    if (!access->sectors)
      continue;
    prefetchNext();
    access->done = system.read(access->line, access->sectors, access->arrival);
  }
}

void Exchange::execute(Sm &sm, GlobalRequest &request, uint64_t end) {
  switch (request.kind) {
  case GlobalRequest::Kind::Load:
    load(sm, request);
    break;
  case GlobalRequest::Kind::Store:
    return store(sm, request);
  case GlobalRequest::Kind::Atomic:
    atomic(sm, request);
    break;
  case GlobalRequest::Kind::AsyncCopy:
    copyAsync(sm, request);
    break;
  case GlobalRequest::Kind::AsyncArrive:
    request.done = sm.answerArrive(request, end);
    break;
  case GlobalRequest::Kind::Remote:
    return sm.executeRemote(request, end);
  case GlobalRequest::Kind::BulkCopy:
    return sm.answerBulk(
        request, BulkExchange(launch, system, sm, request).run(end), end);
  }
  // SMs are past the cycles before `end`.
  sm.answer(request, std::max(request.done, end));
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void Exchange::check(Sm &sm, const GlobalRequest &request, LaneMask lanes,
                     bool writes) {
  common = request.range
               ? request.range
               : commonRange(*launch.memory, request.address, request.bytes,
                             lanes, rangeHint[request.pc]);
  if (common && (common->writable || !writes))
    return launch.memory->place(*common);
  for (LaneMask rest = lanes; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    uint64_t address = request.address[lane];
    const GlobalRange *range = launch.memory->resolve(address);
    bool inside = range && range->contains(address, request.bytes);
    if (inside && (range->writable || !writes)) {
      launch.memory->place(*range);
      continue;
    }
    char place[24];
    std::snprintf(place, sizeof place, "0x%llx",
                  static_cast<unsigned long long>(address));
    std::string text = std::string(writes ? "write" : "read") + " of " +
                       std::to_string(request.bytes) + " bytes at " + place;
    text += inside ? " in the read-only range `" + range->name + "`"
                   : " is out of bounds";
    sm.fail(*request.warp, request.pc,
            {.kind = ErrorKind::OutOfBounds,
             .message = text,
             .lane = static_cast<int>(lane),
             .address = address,
             .isGlobal = true});
  }
}

void Exchange::collectLines(const GlobalRequest &request, LaneMask lanes,
                            LineList &list) {
  if (common)
    coalesce(*common, request.address, request.bytes, lanes, request.contiguous,
             list);
  else
    coalesceMapped(*launch.memory, request.address, request.bytes, lanes, list);
}

bool Exchange::takesTime(const GlobalRequest &request, LaneMask lanes,
                         bool writes, LineList &list) {
  if (request.free && !request.warms)
    return false;
  collectLines(request, lanes, list);
  for (unsigned i = 0; request.warms && i < list.count; ++i)
    system.warm(list.lines[i].line, list.lines[i].sectors, writes);
  return !request.warms;
}

//===----------------------------------------------------------------------===//
// Requests
//===----------------------------------------------------------------------===//

Cache::Line Exchange::findInL1(Sm &sm, const GlobalRequest &request,
                               uint64_t line) {
  if (request.lookedUp)
    return sm.l1.find(line); // None if it was evicted since.
  // The first use of a range: the SM did not know its timing addresses.
  return sm.l1.findOrAllocate(line);
}

uint64_t Exchange::readLines(Sm &sm, const GlobalRequest &request,
                             const LineList &list) {
  uint64_t done = request.cycle + chip.l1Latency;
  uint64_t begin = std::max(request.cycle, sm.portFree);
  uint64_t fetchedBytes = 0;
  for (unsigned i = 0; i < list.count; ++i) {
    auto [address, sectors] = list.lines[i];
    Cache::Line line =
        request.cached ? findInL1(sm, request, address) : Cache::Line();
    uint8_t wanted = sectors;
    if (line) {
      // The rest hit, or another request has brought it.
      wanted = line.unanswered(sectors) | line.missing(sectors);
      done =
          std::max(done, line.ready(static_cast<uint8_t>(sectors & ~wanted)));
      if (!wanted)
        continue;
    }
    // The SM's port takes some bytes in a cycle.
    uint64_t answered = system.read(
        address, wanted, begin + fetchedBytes / chip.smPortBytesPerCycle);
    fetchedBytes += static_cast<unsigned>(std::popcount(wanted)) * kSectorBytes;
    if (line) {
      // What a store dropped in the meantime is read, but not kept.
      uint8_t kept = request.lookedUp ? line.unanswered(wanted) : wanted;
      if (kept)
        line.arrive(kept, answered, request.cycle);
    }
    done = std::max(done, answered);
  }
  sm.portFree = begin + fetchedBytes / chip.smPortBytesPerCycle;
  return done;
}

void Exchange::reload(GlobalRequest &request) {
  ExecContext &context = request.warp->context;
  const MicroOp &op = program.ops[request.pc];
  if (request.contiguous)
    loadContiguous(context, op,
                   reinterpret_cast<const uint8_t *>(request.address[0]));
  else
    loadLanes(context, op, request.mask, request.address);
}

void Exchange::load(Sm &sm, GlobalRequest &request) {
  check(sm, request, request.mask, false);
  if (!request.loaded || isWritten(request.range))
    reload(request);
  LineList list;
  if (takesTime(request, request.mask, false, list))
    request.done = readLines(sm, request, list);
}

void Exchange::moveStore(Sm &sm, const GlobalRequest &request) {
  const uint8_t *values = sm.requests.data.data() + request.data;
  if (request.contiguous) {
    std::memcpy(reinterpret_cast<void *>(request.address[0]), values,
                size_t(request.bytes) * kWarpSize);
    return;
  }
  for (LaneMask rest = request.mask; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    std::memcpy(reinterpret_cast<void *>(request.address[lane]),
                values + size_t(lane) * request.bytes, request.bytes);
  }
}

void Exchange::store(Sm &sm, GlobalRequest &request) {
  check(sm, request, request.mask, true);
  moveStore(sm, request);
  uint64_t done = request.cycle;
  LineList list;
  if (takesTime(request, request.mask, true, list))
    for (unsigned i = 0; i < list.count; ++i)
      done = std::max(done, system.write(list.lines[i].line,
                                         list.lines[i].sectors, request.cycle));
  sm.answer(request, done);
}

void Exchange::moveAtomic(Sm &sm, const GlobalRequest &request) {
  const MicroOp &op = program.ops[request.pc];
  unsigned element = typeBits(op.type) / 8;
  const uint8_t *operands = sm.requests.data.data() + request.data;
  const uint8_t *replacements = operands + size_t(kWarpSize) * request.bytes;
  alignas(64) uint8_t old[kWarpSize * 64];
  uint64_t oldAddress[kWarpSize];
  for (LaneMask rest = request.mask; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    size_t at = size_t(lane) * request.bytes;
    auto *memory = reinterpret_cast<uint8_t *>(request.address[lane]);
    for (unsigned i = 0; i < request.bytes; i += element)
      applyAtomic(static_cast<AtomicOp>(op.sub), op.type, memory + i,
                  operands + at + i, replacements + at + i, old + at + i);
    oldAddress[lane] = reinterpret_cast<uint64_t>(old + at);
  }
  if (op.opcode != Opcode::Atom)
    return;
  MicroOp result = op;
  result.sub = static_cast<uint8_t>(
      typeBits(op.type)); // Ld's field for the register size.
  loadLanes(request.warp->context, result, request.mask, oldAddress);
}

void Exchange::atomic(Sm &sm, GlobalRequest &request) {
  check(sm, request, request.mask, true);
  moveAtomic(sm, request);
  LineList list;
  if (!takesTime(request, request.mask, true, list))
    return;
  unsigned perLine = lanesPerLine(request, list.count);
  for (unsigned i = 0; i < list.count; ++i)
    request.done = std::max(
        request.done, system.atomic(list.lines[i].line, list.lines[i].sectors,
                                    request.cycle, perLine));
}

void Exchange::moveAsync(Sm &sm, const GlobalRequest &request) {
  copyToShared(request.warp->cta->shared,
               asyncOperands(sm.requests.data.data() + request.data),
               request.mask, request.bytes, request.address);
}

void Exchange::copyAsync(Sm &sm, GlobalRequest &request) {
  LaneMask reading = readingLanes(
      asyncOperands(sm.requests.data.data() + request.data), request.mask);
  check(sm, request, reading, false);
  moveAsync(sm, request);
  LineList list;
  if (takesTime(request, reading, false, list))
    request.done = readLines(sm, request, list);
}

} // namespace kperfir::simt
