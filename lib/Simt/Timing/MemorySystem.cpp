//===- MemorySystem.cpp ---------------------------------------------------===//

#include "Simt/Timing/MemorySystem.h"

#include <algorithm>

namespace kperfir::simt {

MemorySystem::MemorySystem(const Chip &chip)
    : l2Latency(chip.l2Latency), dramLatency(chip.dramLatency),
      sliceTicks(kSectorBytes * kTicksPerCycle / chip.l2SliceBytesPerCycle),
      atomicTicks(kTicksPerCycle / chip.l2AtomicLanesPerCycle),
      l2(chip.l2Bytes, chip.l2Ways), sliceFree(chip.l2Slices), channelFree(chip.dramChannels) {
  double bytesPerCycle = chip.dramBytesPerSecond / (chip.clockMhz * 1e6) / chip.dramChannels;
  channelTicks = static_cast<uint64_t>(kSectorBytes * kTicksPerCycle / bytesPerCycle);
}

uint64_t MemorySystem::enterSlice(uint64_t sector, uint64_t arrival, uint64_t ticks) {
  uint64_t &free = sliceFree[mixAddress(sector / kSectorsPerLine) % sliceFree.size()];
  uint64_t start = std::max(arrival * kTicksPerCycle, free);
  free = start + ticks;
  return start / kTicksPerCycle;
}

uint64_t MemorySystem::transferDram(uint64_t line, uint64_t arrival) {
  // Another mix than that of the slices, or channels would see only some slices.
  uint64_t &free = channelFree[mixAddress(line * 0x9E3779B97F4A7C15ull) % channelFree.size()];
  uint64_t start = std::max(arrival * kTicksPerCycle, free);
  free = start + channelTicks;
  return start / kTicksPerCycle;
}

Cache::Line &MemorySystem::lineOf(uint64_t sector, uint64_t cycle) {
  uint64_t address = sector / kSectorsPerLine;
  if (Cache::Line *line = l2.find(address))
    return *line;
  Cache::Line evicted;
  Cache::Line &line = l2.allocate(address, evicted);
  for (unsigned i = 0; i < kSectorsPerLine; ++i) {
    if (!(evicted.dirty >> i & 1))
      continue;
    transferDram(evicted.tag, cycle);
    stats.dramWriteBytes += kSectorBytes;
  }
  return line;
}

uint64_t MemorySystem::fetch(uint64_t sector, uint64_t cycle) {
  Cache::Line &line = lineOf(sector, cycle);
  uint64_t &ready = line.ready[sector % kSectorsPerLine];
  if (ready != kNever) {
    ++stats.l2SectorHits;
    return std::max(ready, cycle);
  }
  ready = transferDram(line.tag, cycle) + dramLatency;
  stats.dramReadBytes += kSectorBytes;
  return ready;
}

uint64_t MemorySystem::read(uint64_t sector, uint64_t arrival) {
  ++stats.l2SectorReads;
  uint64_t start = enterSlice(sector, arrival, sliceTicks);
  return fetch(sector, start) + l2Latency;
}

uint64_t MemorySystem::write(uint64_t sector, uint64_t arrival) {
  ++stats.l2SectorWrites;
  uint64_t start = enterSlice(sector, arrival, sliceTicks);
  // Bytes are masked in L2: a partial write does not fetch the sector.
  Cache::Line &line = lineOf(sector, start);
  unsigned index = sector % kSectorsPerLine;
  line.dirty |= static_cast<uint8_t>(1u << index);
  if (line.ready[index] == kNever)
    line.ready[index] = start;
  return start + l2Latency;
}

uint64_t MemorySystem::atomic(uint64_t sector, uint64_t arrival, unsigned lanes) {
  ++stats.l2Atomics;
  uint64_t start = enterSlice(sector, arrival, sliceTicks + lanes * atomicTicks);
  uint64_t done = fetch(sector, start);
  lineOf(sector, start).dirty |= static_cast<uint8_t>(1u << sector % kSectorsPerLine);
  return done + lanes * atomicTicks / kTicksPerCycle + l2Latency;
}

} // namespace kperfir::simt
