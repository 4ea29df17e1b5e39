//===- BulkExchange.cpp ---------------------------------------------------===//

#include "Simt/Exec/BulkExchange.h"

#include "Simt/Exec/Atomic.h"
#include "Simt/Exec/Hex.h"
#include "Simt/Exec/Mbarrier.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kperfir::simt {

namespace {
using Direction = BulkCopyShape::Direction;

constexpr uint32_t kTensorAlignment = 128;

/// What lies outside of the tensor when the map asks for NaN.
uint64_t nanBits(Type type) {
  switch (type) {
  case Type::F16:
  case Type::BF16:
    return 0x7FFF;
  case Type::F32:
    return 0x7FFF'FFFF;
  case Type::F64:
    return 0x7FFF'FFFF'FFFF'FFFF;
  default:
    return 0;
  }
}
} // namespace

BulkExchange::BulkExchange(const Launch &launch, MemorySystem &system, Sm &sm,
                           const GlobalRequest &request)
    : launch(launch), chip(*launch.chip), system(system), sm(sm),
      request(request), shape(launch.program->bulkCopies[static_cast<size_t>(
                            launch.program->ops[request.pc].imm)]) {
  std::memcpy(&operands, sm.requests.data.data() + request.data,
              sizeof operands);
}

void BulkExchange::fail(ErrorKind kind, const std::string &message,
                        std::optional<uint64_t> address) const {
  sm.fail(*request.warp, request.pc,
          {kind, message, static_cast<int>(operands.lane), address});
}

BulkTimes BulkExchange::run(uint64_t earliest) {
  if (shape.isTensor)
    loadMap();
  checkShape();
  // The unit takes one instruction after the other, at its own rate.
  uint64_t start = std::max(request.cycle, sm.tmaFree);
  sm.tmaFree = start + std::max<uint64_t>(chip.tmaIssueCycles,
                                          totalBytes() / chip.tmaBytesPerCycle);
  begin = start + chip.tmaSetupCycles;
  times = {begin, begin};
  switch (shape.direction) {
  case Direction::Load:
    load(earliest);
    break;
  case Direction::Store:
    store();
    break;
  case Direction::Reduce:
    reduce();
    break;
  case Direction::ToCluster:
    toCluster(earliest);
    break;
  case Direction::Prefetch:
    prefetch();
    break;
  }
  return times;
}

//===----------------------------------------------------------------------===//
// What is copied
//===----------------------------------------------------------------------===//

void BulkExchange::checkShape() {
  if (shape.isTensor)
    return;
  auto check = [&](uint64_t value, const char *what) {
    if (value % kBulkUnitBytes)
      fail(ErrorKind::Misaligned, std::string(what) + " of a bulk copy, " +
                                      hex(value) + ", is not a multiple of 16");
  };
  check(operands.bytes, "the size");
  if (shape.direction != Direction::ToCluster)
    check(operands.map, "the global address");
}

uint32_t BulkExchange::totalBytes() const {
  if (!shape.isTensor)
    return operands.bytes;
  return map.boxBytes() * (shape.usesRows ? 4 : 1);
}

BulkExchange::Row BulkExchange::tensorRow(const int64_t *coordinate,
                                          uint32_t index) const {
  Row row;
  uint32_t element = map.elementBytes();
  row.bytes = map.box[0] * element;
  row.shared = index * row.bytes;
  bool inside = true;
  auto address = static_cast<int64_t>(map.address);
  address += coordinate[0] * element;
  for (unsigned i = 1; i < map.rank(); ++i) {
    inside &= coordinate[i] >= 0 && coordinate[i] < int64_t(map.extent[i]);
    address += coordinate[i] * static_cast<int64_t>(map.stride[i - 1]);
  }
  row.global = static_cast<uint64_t>(address);
  int64_t width = map.box[0];
  int64_t first = std::clamp<int64_t>(-coordinate[0], 0, width);
  int64_t last =
      std::clamp<int64_t>(int64_t(map.extent[0]) - coordinate[0], 0, width);
  if (inside && first < last) {
    row.validBegin = static_cast<uint32_t>(first) * element;
    row.validEnd = static_cast<uint32_t>(last) * element;
  }
  return row;
}

template <class Visit> void BulkExchange::forEachTensorRow(Visit visit) const {
  if (shape.usesRows) {
    for (uint32_t i = 0; i < 4; ++i) {
      const int64_t at[2] = {operands.coordinate[0],
                             operands.coordinate[1 + i]};
      visit(tensorRow(at, i));
    }
    return;
  }
  uint32_t step[kMaxTensorRank] = {};
  for (uint32_t index = 0;; ++index) {
    int64_t at[kMaxTensorRank];
    for (unsigned i = 0; i < map.rank(); ++i)
      at[i] = int64_t(operands.coordinate[i]) + (i ? step[i] : 0);
    visit(tensorRow(at, index));
    unsigned i = 1;
    while (i < map.rank() && ++step[i] == map.box[i])
      step[i++] = 0;
    if (i >= map.rank())
      return;
  }
}

template <class Visit> void BulkExchange::forEachRow(Visit visit) const {
  if (shape.isTensor)
    return forEachTensorRow(visit);
  if (operands.bytes)
    visit(Row{0, operands.map, operands.bytes, 0, operands.bytes});
}

//===----------------------------------------------------------------------===//
// Directions
//===----------------------------------------------------------------------===//

void BulkExchange::copyRowIn(const Row &row, uint8_t *shared, uint32_t base) {
  const uint8_t *from = nullptr;
  if (row.validBegin < row.validEnd)
    from = global(row.global + row.validBegin, row.validEnd - row.validBegin,
                  false);
  auto swizzle = static_cast<TensorSwizzle>(shape.isTensor ? map.swizzle : 0);
  uint64_t fill = shape.isTensor && map.fill ? nanBits(map.elementType()) : 0;
  unsigned element = shape.isTensor ? map.elementBytes() : 1;
  for (uint32_t at = 0; at < row.bytes; at += kBulkUnitBytes) {
    uint8_t *to = shared + swizzled(base + row.shared + at, swizzle);
    if (at >= row.validBegin && at + kBulkUnitBytes <= row.validEnd) {
      std::memcpy(to, from + (at - row.validBegin), kBulkUnitBytes);
      continue;
    }
    for (uint32_t i = 0; i < kBulkUnitBytes; i += element) {
      bool valid = at + i >= row.validBegin && at + i < row.validEnd;
      if (valid)
        std::memcpy(to + i, from + (at + i - row.validBegin), element);
      else
        std::memcpy(to + i, &fill, element);
    }
  }
  if (from && touchesL2())
    touch(row.global + row.validBegin, row.validEnd - row.validBegin);
}

void BulkExchange::deliver(const Place &to, uint64_t cycle) {
  BulkFill fill{to.offset, totalBytes(), operands.mbarrier & kSharedOffsetMask};
  Place barrier = to;
  barrier.offset = fill.mbarrier;
  if (!to.member.cta->shared.inBounds(barrier.offset, Mbarrier::kBytes))
    fail(ErrorKind::OutOfBounds, "the mbarrier is outside of shared memory",
         barrier.offset);
  checkMbarrier(barrier);
  sm.checkProductOperands(*to.member.cta, *request.warp, request.pc,
                          {fill.offset, fill.bytes, operands.lane});
  to.member.sm->scheduleFill(*to.member.cta, fill, cycle);
}

void BulkExchange::load(uint64_t earliest) {
  uint32_t bytes = totalBytes();
  std::vector<Place> places;
  if (operands.ctaMask == 0) {
    places.push_back(placeOf(operands.shared, bytes, "the destination"));
  } else {
    uint32_t offset = operands.shared & kSharedOffsetMask;
    for (uint32_t mask = operands.ctaMask; mask; mask &= mask - 1) {
      auto rank = static_cast<uint32_t>(std::countr_zero(mask));
      places.push_back(placeOf(offset | (rank + 1) << kSharedRankShift, bytes,
                               "the destination"));
    }
  }
  uint32_t alignment = shape.isTensor ? kTensorAlignment : kBulkUnitBytes;
  for (const Place &place : places)
    if (place.offset % alignment)
      fail(ErrorKind::Misaligned,
           "the destination at " + hex(place.offset) + " is not aligned to " +
               std::to_string(alignment) + " bytes",
           place.offset);

  uint8_t *first = places.front().member.cta->shared.data();
  begin = std::max(begin, request.free ? begin : sm.portFree);
  forEachRow(
      [&](const Row &row) { copyRowIn(row, first, places.front().offset); });
  flush();
  if (!request.free)
    sm.portFree = begin + requestedBytes / chip.smPortBytesPerCycle;
  times.done += chip.sharedLatency;
  for (const Place &place : places) {
    uint8_t *to = place.member.cta->shared.data() + place.offset;
    if (&place != &places.front())
      std::memcpy(to, first + places.front().offset, bytes);
    deliver(place, std::max(times.done, earliest));
  }
}

void BulkExchange::copyRowOut(const Row &row, const uint8_t *shared,
                              uint8_t *to) const {
  auto swizzle = static_cast<TensorSwizzle>(shape.isTensor ? map.swizzle : 0);
  uint32_t base = operands.shared & kSharedOffsetMask;
  for (uint32_t at = row.validBegin; at < row.validEnd;) {
    uint32_t within = at % kBulkUnitBytes;
    uint32_t count = std::min(kBulkUnitBytes - within, row.validEnd - at);
    std::memcpy(to + (at - row.validBegin),
                shared + swizzled(base + row.shared + at - within, swizzle) +
                    within,
                count);
    at += count;
  }
}

void BulkExchange::store() {
  Place from = placeOf(operands.shared, totalBytes(), "the source");
  const uint8_t *shared = readable(from, totalBytes());
  forEachRow([&](const Row &row) {
    uint32_t bytes = row.validEnd - row.validBegin;
    if (bytes == 0)
      return;
    uint64_t address = row.global + row.validBegin;
    copyRowOut(row, shared, global(address, bytes, true));
    if (touchesL2())
      touch(address, bytes);
  });
  flush();
}

void BulkExchange::reduce() {
  Place from = placeOf(operands.shared, totalBytes(), "the source");
  const uint8_t *shared = readable(from, totalBytes());
  Type type = shape.isTensor ? map.elementType() : shape.type;
  if (!isAtomicSupported(shape.reduction, type))
    fail(ErrorKind::Unsupported,
         std::string("a bulk reduction of elements of type ") + typeName(type) +
             " is not supported");
  unsigned element = typeBits(type) / 8;
  std::vector<uint8_t> values;
  forEachRow([&](const Row &row) {
    uint32_t bytes = row.validEnd - row.validBegin;
    if (bytes == 0)
      return;
    uint64_t address = row.global + row.validBegin;
    uint8_t *to = global(address, bytes, true);
    values.resize(bytes);
    copyRowOut(row, shared, values.data());
    for (uint32_t i = 0; i + element <= bytes; i += element) {
      uint8_t old[8];
      applyAtomic(shape.reduction, type, to + i, values.data() + i,
                  values.data() + i, old);
    }
    if (touchesL2())
      touch(address, bytes);
  });
  flush();
}

void BulkExchange::toCluster(uint64_t earliest) {
  Place to = placeOf(operands.shared, operands.bytes, "the destination");
  Place from = placeOf(operands.source, operands.bytes, "the source");
  for (const Place *place : {&to, &from})
    if (place->offset % kBulkUnitBytes)
      fail(ErrorKind::Misaligned,
           "shared memory address " + hex(place->offset) +
               " is not a multiple of 16",
           place->offset);
  const uint8_t *source = readable(from, operands.bytes);
  std::memmove(to.member.cta->shared.data() + to.offset, source + from.offset,
               operands.bytes);
  times.readDone = begin + operands.bytes / chip.clusterBytesPerCycle;
  times.done = times.readDone + chip.clusterLatency;
  deliver(to, std::max(times.done, earliest));
}

/// Brings lines to L2. What is outside of the tensor is no error.
void BulkExchange::prefetch() {
  forEachRow([&](const Row &row) {
    uint32_t bytes = row.validEnd - row.validBegin;
    if (bytes == 0)
      return;
    global(row.global + row.validBegin, bytes, false);
    if (touchesL2())
      touch(row.global + row.validBegin, bytes);
  });
  flush();
}

} // namespace kperfir::simt
