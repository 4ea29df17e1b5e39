//===- Memory.cpp ---------------------------------------------------------===//

#include "Simt/Exec/Memory.h"

#include <algorithm>
#include <stdexcept>

namespace kperfir::simt {

namespace {
/// As cudaMalloc aligns; ranges are apart, so that no two share a cache line.
constexpr uint64_t kTimingAlignment = 512;
constexpr uint32_t kPadding = 64;
} // namespace

void GlobalMemory::map(uint64_t address, uint64_t bytes, std::string name,
                       bool writable) {
  if (bytes == 0 || address + bytes < address || address >= kSharedWindow)
    throw std::invalid_argument("range `" + name + "` is empty or wraps");
  auto next = ranges.lower_bound(address);
  if (next != ranges.end() && next->first == address &&
      next->second->end == address + bytes) {
    next->second->writable = writable;
    next->second->name = std::move(name);
    return;
  }
  bool overlaps = next != ranges.end() && next->first < address + bytes;
  if (next != ranges.begin() && std::prev(next)->second->end > address)
    overlaps = true;
  if (overlaps)
    throw std::invalid_argument("range `" + name +
                                "` overlaps a range that is mapped");
  auto range = std::make_unique<GlobalRange>();
  range->begin = address;
  range->end = address + bytes;
  range->writable = writable;
  range->name = std::move(name);
  ranges.emplace(address, std::move(range));
}

void GlobalMemory::place(const GlobalRange &range) {
  if (range.isPlaced())
    return;
  ranges.at(range.begin)->timingBegin = nextTimingAddress;
  uint64_t bytes = range.end - range.begin;
  nextTimingAddress +=
      (bytes + 2 * kTimingAlignment - 1) / kTimingAlignment * kTimingAlignment;
}

bool GlobalMemory::startOver() {
  for (const auto &[begin, range] : ranges)
    if (range->isPlaced())
      return false;
  nextTimingAddress = kFirstTimingAddress;
  return true;
}

void GlobalMemory::unmap(uint64_t address) {
  if (ranges.erase(address) == 0)
    throw std::invalid_argument("no range begins at the address to unmap");
}

const GlobalRange *GlobalMemory::find(uint64_t address) const {
  auto next = ranges.upper_bound(address);
  if (next == ranges.begin())
    return nullptr;
  const GlobalRange *range = std::prev(next)->second.get();
  return address < range->end ? range : nullptr;
}

const GlobalRange *GlobalMemory::resolve(uint64_t address) {
  if (const GlobalRange *range = find(address))
    return range;
  if (!resolver)
    return nullptr;
  std::optional<GlobalRange> answer = resolver(address);
  if (!answer || address < answer->begin || address >= answer->end)
    return nullptr;
  try {
    map(answer->begin, answer->end - answer->begin, answer->name,
        answer->writable);
  } catch (const std::invalid_argument &) {
    return nullptr; // An answer that overlaps a mapped range explains nothing.
  }
  return find(address);
}

void SharedMemory::markWritten(uint32_t offset, uint32_t count, bool isSet) {
  for (uint32_t step; count; offset += step, count -= step) {
    // Whole bytes of the bit map at once, where it begins with one.
    if (offset % 8 == 0 && count >= 8) {
      step = count & ~7u;
      std::memset(&written[offset >> 3], isSet ? 0xFF : 0, step / 8);
      continue;
    }
    step = std::min(count, 8 - offset % 8);
    if (isSet)
      setWritten(offset, step);
    else
      clearWritten(offset, step);
  }
}

bool SharedMemory::allWritten(uint32_t offset, uint32_t count) const {
  for (uint32_t step; count; offset += step, count -= step) {
    step = std::min(count, 32u);
    if (!isWritten(offset, step))
      return false;
  }
  return true;
}

void SharedMemory::reset(uint32_t newBytes) {
  bytes = newBytes;
  if (storage.size() < newBytes + kPadding)
    storage.resize(newBytes + kPadding);
  hidden.clear();
  hidesAny = false;
  written.assign(newBytes / 8 + 1 + 2 * sizeof(uint64_t), 0);
}

} // namespace kperfir::simt
