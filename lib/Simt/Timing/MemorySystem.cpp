//===- MemorySystem.cpp ---------------------------------------------------===//

#include "Simt/Timing/MemorySystem.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {

MemorySystem::MemorySystem(const Chip &chip)
    : l2Latency(chip.l2Latency), dramLatency(chip.dramLatency),
      sliceTicks(kSectorBytes * kTicksPerCycle / chip.l2SliceBytesPerCycle),
      atomicTicks(kTicksPerCycle / chip.l2AtomicLanesPerCycle),
      l2Tags(Cache::tagBytes(chip.l2Bytes, chip.l2Ways)),
      l2(chip.l2Bytes, chip.l2Ways, l2Tags.data()), sliceFree(chip.l2Slices),
      channelFree(chip.dramChannels) {
  double bytesPerCycle =
      chip.dramBytesPerSecond / (chip.clockMhz * 1e6) / chip.dramChannels;
  channelTicks =
      static_cast<uint64_t>(kSectorBytes * kTicksPerCycle / bytesPerCycle);
}

void MemorySystem::forget() {
  l2.forget();
  std::fill(sliceFree.begin(), sliceFree.end(), 0);
  std::fill(channelFree.begin(), channelFree.end(), 0);
}

uint64_t MemorySystem::enterSlice(uint64_t line, uint64_t arrival,
                                  uint64_t ticks) {
  uint64_t mixed = mixAddress(line) & 0xFFFFFFFF;
  uint64_t &free = sliceFree[mixed * sliceFree.size() >> 32];
  free = std::max(arrival * kTicksPerCycle, free) + ticks;
  return (free - 1) / kTicksPerCycle;
}

uint64_t MemorySystem::transferDram(uint64_t line, unsigned sectors,
                                    uint64_t arrival) {
  // Another mix than that of the slices, or channels would see only some
  // slices.
  uint64_t mixed = mixAddress(line * 0x9E3779B97F4A7C15ull) & 0xFFFFFFFF;
  uint64_t &free = channelFree[mixed * channelFree.size() >> 32];
  free = std::max(arrival * kTicksPerCycle, free) + sectors * channelTicks;
  return (free - channelTicks) / kTicksPerCycle;
}

Cache::Line MemorySystem::contentOf(uint64_t address, uint64_t cycle,
                                    uint64_t &free) {
  free = cycle;
  Cache::Evicted evicted;
  Cache::Line line = l2.findOrAllocate(address, evicted);
  if (evicted.dirty) {
    auto sectors = static_cast<unsigned>(std::popcount(evicted.dirty));
    free = std::max(cycle, transferDram(evicted.line, sectors, cycle));
    stats.dramWriteBytes += sectors * kSectorBytes;
  }
  return line;
}

uint64_t MemorySystem::fetch(uint64_t address, uint8_t sectors,
                             uint64_t cycle) {
  uint64_t free; // What is evicted waits elsewhere: data comes in meanwhile.
  Cache::Line line = contentOf(address, cycle, free);
  uint8_t missing = line.missing(sectors);
  auto present = static_cast<uint8_t>(sectors & ~missing);
  stats.l2SectorHits += static_cast<unsigned>(std::popcount(present));
  uint64_t done = std::max(cycle, line.ready(present));
  if (missing) {
    auto count = static_cast<unsigned>(std::popcount(missing));
    stats.dramReadBytes += count * kSectorBytes;
    uint64_t arrival = transferDram(address, count, cycle) + dramLatency;
    line.arrive(missing, arrival, cycle);
    done = std::max(done, arrival);
  }
  return done;
}

uint64_t MemorySystem::read(uint64_t line, uint8_t sectors, uint64_t arrival) {
  auto count = static_cast<unsigned>(std::popcount(sectors));
  stats.l2SectorReads += count;
  uint64_t served = enterSlice(line, arrival, count * sliceTicks);
  return fetch(line, sectors, served) + l2Latency;
}

uint64_t MemorySystem::write(uint64_t address, uint8_t sectors,
                             uint64_t arrival) {
  auto count = static_cast<unsigned>(std::popcount(sectors));
  stats.l2SectorWrites += count;
  uint64_t served = enterSlice(address, arrival, count * sliceTicks);
  // Bytes are masked in L2: a partial write does not fetch the sector.
  // What is evicted leaves first, so that DRAM bounds a kernel that only
  // stores.
  uint64_t accepted;
  Cache::Line line = contentOf(address, served, accepted);
  line.soil(sectors);
  if (uint8_t missing = line.missing(sectors))
    accepted > served ? line.arrive(missing, accepted, accepted)
                      : line.put(missing, served);
  return accepted + l2Latency;
}

void MemorySystem::warm(uint64_t address, uint8_t sectors, bool isDirty) {
  Cache::Line line = l2.findOrAllocate(address);
  if (isDirty)
    line.soil(sectors);
  if (uint8_t missing = line.missing(sectors))
    line.put(missing, 0);
}

uint64_t MemorySystem::atomic(uint64_t line, uint8_t sectors, uint64_t arrival,
                              unsigned lanes) {
  auto count = static_cast<unsigned>(std::popcount(sectors));
  stats.l2Atomics += count;
  uint64_t served =
      enterSlice(line, arrival, count * sliceTicks + lanes * atomicTicks);
  uint64_t done = fetch(line, sectors, served);
  uint64_t free;
  contentOf(line, served, free).soil(sectors);
  return done + l2Latency;
}

} // namespace kperfir::simt
