//===- MemorySystem.cpp ---------------------------------------------------===//

#include "Simt/Timing/MemorySystem.h"

#include <algorithm>

namespace kperfir::simt {

MemorySystem::MemorySystem(const Chip &chip)
    : l2Latency(chip.l2Latency), dramLatency(chip.dramLatency),
      sliceTicks(kSectorBytes * kTicksPerCycle / chip.l2SliceBytesPerCycle),
      atomicTicks(kTicksPerCycle / chip.l2AtomicLanesPerCycle),
      l2(chip.l2Bytes, chip.l2Ways), sliceFree(chip.l2Slices),
      channelFree(chip.dramChannels) {
  double bytesPerCycle =
      chip.dramBytesPerSecond / (chip.clockMhz * 1e6) / chip.dramChannels;
  channelTicks =
      static_cast<uint64_t>(kSectorBytes * kTicksPerCycle / bytesPerCycle);
}

MemorySystem::Place &MemorySystem::placeOf(uint64_t sector) {
  uint64_t line = sector / kSectorsPerLine;
  if (last.line == line)
    return last;
  last.line = line;
  last.sliceFree =
      &sliceFree[(mixAddress(line) & 0xFFFFFFFF) * sliceFree.size() >> 32];
  last.content = nullptr;
  return last;
}

uint64_t MemorySystem::enterSlice(const Place &place, uint64_t arrival,
                                  uint64_t ticks) {
  uint64_t start = std::max(arrival * kTicksPerCycle, *place.sliceFree);
  *place.sliceFree = start + ticks;
  return start / kTicksPerCycle;
}

uint64_t MemorySystem::transferDram(uint64_t line, uint64_t arrival) {
  // Another mix than that of the slices, or channels would see only some
  // slices.
  uint64_t mixed = mixAddress(line * 0x9E3779B97F4A7C15ull) & 0xFFFFFFFF;
  uint64_t &free = channelFree[mixed * channelFree.size() >> 32];
  uint64_t start = std::max(arrival * kTicksPerCycle, free);
  free = start + channelTicks;
  return start / kTicksPerCycle;
}

Cache::Line &MemorySystem::contentOf(Place &place, uint64_t cycle) {
  if (place.content)
    return *place.content;
  place.content = l2.find(place.line);
  if (place.content)
    return *place.content;
  Cache::Line evicted;
  uint64_t evictedLine;
  place.content = &l2.allocate(place.line, evicted, evictedLine);
  for (unsigned i = 0; i < kSectorsPerLine; ++i) {
    if (!(evicted.dirty >> i & 1))
      continue;
    transferDram(evictedLine, cycle);
    stats.dramWriteBytes += kSectorBytes;
  }
  return *place.content;
}

uint64_t MemorySystem::fetch(Place &place, uint64_t sector, uint64_t cycle) {
  Cache::Line &line = contentOf(place, cycle);
  unsigned index = sector % kSectorsPerLine;
  if (line.ready(index) != kNever) {
    ++stats.l2SectorHits;
    return std::max(line.ready(index), cycle);
  }
  uint64_t arrival = transferDram(place.line, cycle) + dramLatency;
  line.arrive(index, arrival, cycle);
  stats.dramReadBytes += kSectorBytes;
  return arrival;
}

uint64_t MemorySystem::read(uint64_t sector, uint64_t arrival) {
  ++stats.l2SectorReads;
  Place &place = placeOf(sector);
  uint64_t start = enterSlice(place, arrival, sliceTicks);
  return fetch(place, sector, start) + l2Latency;
}

uint64_t MemorySystem::write(uint64_t sector, uint64_t arrival) {
  ++stats.l2SectorWrites;
  Place &place = placeOf(sector);
  uint64_t start = enterSlice(place, arrival, sliceTicks);
  // Bytes are masked in L2: a partial write does not fetch the sector.
  Cache::Line &line = contentOf(place, start);
  unsigned index = sector % kSectorsPerLine;
  line.dirty |= static_cast<uint8_t>(1u << index);
  if (line.ready(index) == kNever)
    line.arrive(index, start, start);
  return start + l2Latency;
}

uint64_t MemorySystem::atomic(uint64_t sector, uint64_t arrival,
                              unsigned lanes) {
  ++stats.l2Atomics;
  Place &place = placeOf(sector);
  uint64_t start = enterSlice(place, arrival, sliceTicks + lanes * atomicTicks);
  uint64_t done = fetch(place, sector, start);
  contentOf(place, start).dirty |=
      static_cast<uint8_t>(1u << sector % kSectorsPerLine);
  return done + lanes * atomicTicks / kTicksPerCycle + l2Latency;
}

} // namespace kperfir::simt
