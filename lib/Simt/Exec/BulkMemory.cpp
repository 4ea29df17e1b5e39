//===- BulkMemory.cpp - The memory that bulk copies touch -----------------===//
//
// Finds the tensor map, and what a copy names in shared and global memory, and
// checks it; accounts for the lines of L2.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/BulkExchange.h"
#include "Simt/Exec/Hex.h"
#include "Simt/Exec/Mbarrier.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

using Direction = BulkCopyShape::Direction;

void BulkExchange::loadMap() {
  uint64_t address = operands.map;
  const void *bytes = nullptr;
  if ((address & kWindowMask) == kParamWindow) {
    auto offset = static_cast<uint32_t>(address);
    if (offset > launch.params.size() ||
        launch.params.size() - offset < kTensorMapBytes)
      fail(ErrorKind::OutOfBounds,
           "the tensor map is outside of the parameters", address);
    bytes = launch.params.data() + offset;
  } else {
    if (address % 64)
      fail(ErrorKind::Misaligned,
           "the tensor map at " + hex(address) + " is not aligned to 64 bytes",
           address);
    bytes = global(address, kTensorMapBytes, false);
  }
  std::memcpy(&map, bytes, sizeof map);
  std::string problem = map.problem();
  if (!problem.empty())
    fail(ErrorKind::Unsupported,
         "the tensor map at " + hex(address) + " cannot be used: " + problem,
         address);
  if (shape.usesRows ? map.rank() != 2 : map.rank() != shape.dimensions)
    fail(ErrorKind::OutOfBounds,
         "the tensor map has " + std::to_string(map.rank()) +
             " dimensions, the instruction " + std::to_string(shape.dimensions),
         address);
  if (shape.usesRows && map.box[1] != 1)
    fail(ErrorKind::OutOfBounds,
         "the box of the tensor map has " + std::to_string(map.box[1]) +
             " rows; gather4 and scatter4 need 1",
         address);
}

BulkExchange::Place BulkExchange::placeOf(uint32_t address, uint32_t bytes,
                                          const char *what) const {
  Place place;
  place.member = sm.memberAt(*request.warp, address);
  place.offset = address & kSharedOffsetMask;
  if (!place.member.cta)
    fail(ErrorKind::OutOfBounds,
         std::string(what) + " at " + hex(address) +
             " is in a CTA of the cluster that does not exist or has ended",
         address);
  if (!place.member.cta->shared.inBounds(place.offset, bytes))
    fail(ErrorKind::OutOfBounds,
         std::string(what) + " at " + hex(place.offset) + ", " +
             std::to_string(bytes) + " bytes, is outside of the CTA's " +
             std::to_string(place.member.cta->shared.size()) +
             " bytes of shared memory",
         place.offset);
  return place;
}

void BulkExchange::checkMbarrier(const Place &place) const {
  if (place.offset % Mbarrier::kBytes)
    fail(ErrorKind::Misaligned, "mbarrier is not aligned to 8 bytes",
         place.offset);
  if (!place.member.cta->shared.isWritten(place.offset, Mbarrier::kBytes))
    fail(ErrorKind::Uninitialised, "mbarrier has not been initialised",
         place.offset);
}

const uint8_t *BulkExchange::readable(const Place &place,
                                      uint32_t bytes) const {
  const SharedMemory &shared = place.member.cta->shared;
  for (uint32_t at = 0; at < bytes; at += kBulkUnitBytes)
    if (!shared.isWritten(place.offset + at, kBulkUnitBytes))
      fail(ErrorKind::Uninitialised,
           "shared memory at " + hex(place.offset + at) +
               " is copied but was never written, or a copy that fills it has "
               "not been waited for",
           place.offset + at);
  if (shared.isHidden(place.offset, bytes))
    fail(ErrorKind::Race,
         "shared memory from " + hex(place.offset) + " to " +
             hex(place.offset + bytes) +
             " is copied, but what threads have stored there may not be "
             "visible to the copy: a fence.proxy.async is missing",
         place.offset);
  return shared.data();
}

uint8_t *BulkExchange::global(uint64_t address, uint64_t bytes, bool writes) {
  if (!range || !range->contains(address, bytes))
    range = launch.memory->resolve(address);
  if (!range || !range->contains(address, bytes) ||
      (writes && !range->writable)) {
    bool readOnly = range && range->contains(address, bytes);
    std::string text = std::string(writes ? "write" : "read") + " of " +
                       std::to_string(bytes) + " bytes at " + hex(address);
    text += readOnly ? " in the read-only range `" + range->name + "`"
                     : " is out of bounds";
    sm.fail(*request.warp, request.pc,
            {.kind = ErrorKind::OutOfBounds,
             .message = text,
             .lane = static_cast<int>(operands.lane),
             .address = address,
             .isGlobal = true});
  }
  launch.memory->place(*range);
  return reinterpret_cast<uint8_t *>(address);
}

void BulkExchange::touch(uint64_t address, uint32_t bytes) {
  uint64_t first = range->timingAddress(address) / kSectorBytes;
  uint64_t last = (range->timingAddress(address) + bytes - 1) / kSectorBytes;
  constexpr uint64_t kSectorsPerLine = kLineBytes / kSectorBytes;
  for (uint64_t sector = first; sector <= last; ++sector) {
    if (sectors && line != sector / kSectorsPerLine)
      flush();
    line = sector / kSectorsPerLine;
    sectors |= static_cast<uint8_t>(1u << sector % kSectorsPerLine);
  }
}

void BulkExchange::flush() {
  if (!sectors)
    return;
  if (request.warms) {
    bool writes = shape.direction == Direction::Store ||
                  shape.direction == Direction::Reduce;
    system.warm(line, std::exchange(sectors, uint8_t(0)), writes);
    return;
  }
  auto count = static_cast<unsigned>(std::popcount(sectors));
  bool reads = shape.direction == Direction::Load ||
               shape.direction == Direction::Prefetch;
  uint32_t rate = chip.tmaBytesPerCycle;
  if (reads && shape.direction != Direction::Prefetch)
    rate = std::min(rate, chip.smPortBytesPerCycle);
  uint64_t arrival = begin + requestedBytes / rate;
  requestedBytes += uint64_t(count) * kSectorBytes;
  uint64_t done = reads ? system.read(line, sectors, arrival)
                  : shape.direction == Direction::Store
                      ? system.write(line, sectors, arrival)
                      : system.atomic(line, sectors, arrival, count);
  times.readDone = std::max(times.readDone, arrival);
  times.done = std::max(times.done, done);
  sectors = 0;
}

} // namespace kperfir::simt
