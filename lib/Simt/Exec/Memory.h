//===- Memory.h - Address spaces: which bytes exist, and their state ------===//
//
// GlobalMemory: the ranges of host memory that kernels may touch. Owns no
// bytes. Every range gets a place in the timing address space when a kernel
// first uses it, so that caches behave the same wherever the host's allocator
// put a tensor and in whatever order tensors were mapped.
//
// SharedMemory: the bytes of one CTA and which of them have been written.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MEMORY_H
#define KPERFIR_SIMT_EXEC_MEMORY_H

#include "Simt/Exec/Program.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kperfir::simt {

struct GlobalRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t timingBegin = 0; // 0: not placed yet
  bool writable = true;
  std::string name;

  bool contains(uint64_t address, uint64_t bytes) const {
    return address >= begin && address < end && end - address >= bytes;
  }
  bool isPlaced() const { return timingBegin != 0; }
  uint64_t timingAddress(uint64_t address) const {
    return address - begin + timingBegin;
  }
  uint64_t hostAddress(uint64_t timing) const {
    return timing - timingBegin + begin;
  }
};

class GlobalMemory {
public:
  /// Asked about an address that no range holds; may name the range that does.
  using Resolver = std::function<std::optional<GlobalRange>(uint64_t address)>;

  /// Throws std::invalid_argument when empty, wrapping or overlapping a range
  /// (the same range again is no error).
  void map(uint64_t address, uint64_t bytes, std::string name, bool writable);
  /// Throws std::invalid_argument when no range begins at `address`.
  void unmap(uint64_t address);
  void setResolver(Resolver resolver) { this->resolver = std::move(resolver); }

  /// The range that holds the address, or null. Does not ask the resolver.
  const GlobalRange *find(uint64_t address) const;
  /// As find(), but asks the resolver, once per address that it cannot explain.
  const GlobalRange *resolve(uint64_t address);
  /// Gives the range its timing addresses, if it has none. Only while no SM
  /// runs.
  void place(const GlobalRange &range);
  /// If no range has a place, the next one gets the first again; whether that
  /// is so.
  bool startOver();

private:
  std::map<uint64_t, std::unique_ptr<GlobalRange>>
      ranges; // by begin; stable addresses
  static constexpr uint64_t kFirstTimingAddress = uint64_t(1) << 32;
  uint64_t nextTimingAddress = kFirstTimingAddress;
  Resolver resolver;
};

/// What a shared-memory check found.
enum class SharedFault : uint8_t { None, OutOfBounds, Uninitialised };

class SharedMemory {
public:
  /// Makes `bytes` bytes, none of them written. Contents of a former use do not
  /// show: an unwritten byte cannot be read.
  void reset(uint32_t bytes);
  uint32_t size() const { return bytes; }

  uint8_t *data() { return storage.data(); }
  const uint8_t *data() const { return storage.data(); }

  bool inBounds(uint32_t offset, uint32_t count) const {
    return offset <= bytes && count <= bytes - offset;
  }
  /// All `count` (1 to 32) bytes are written. Must be in bounds.
  bool isWritten(uint32_t offset, unsigned count) const {
    uint64_t bits = window(offset);
    uint64_t wanted = (uint64_t(1) << count) - 1;
    return (bits & wanted) == wanted;
  }
  /// The same for any number of bytes.
  bool isAllWritten(uint32_t begin, uint32_t end) const {
    for (; end - begin > 32; begin += 32)
      if (!isWritten(begin, 32))
        return false;
    return begin == end || isWritten(begin, end - begin);
  }
  /// At most 32 bytes.
  void setWritten(uint32_t offset, unsigned count) {
    note<true>(offset, count);
  }
  void clearWritten(uint32_t offset, unsigned count) {
    note<false>(offset, count);
  }
  /// The same for any number of bytes.
  void markWritten(uint32_t offset, uint32_t count, bool isWritten);
  bool allWritten(uint32_t offset, uint32_t count) const;

  // What generic accesses wrote, in units of 16 bytes, and no fence has shown
  // to the asynchronous proxy (bulk copies, wgmma). Only kept if asked for.
  static constexpr uint32_t kProxyUnit = 16;
  void setHidden(uint32_t offset, unsigned count) {
    hidesAny = true;
    hidden.resize(bytes / kProxyUnit + 1);
    for (uint32_t unit = offset / kProxyUnit;
         unit <= (offset + count - 1) / kProxyUnit; ++unit)
      hidden[unit] = true;
  }
  /// Any of `count` bytes is hidden.
  bool isHidden(uint32_t offset, uint32_t count) const {
    if (hidesAny)
      for (uint32_t unit = offset / kProxyUnit;
           unit <= (offset + count - 1) / kProxyUnit; ++unit)
        if (hidden[unit])
          return true;
    return false;
  }
  void showAll() {
    if (hidesAny)
      std::fill(hidden.begin(), hidden.end(), false);
    hidesAny = false;
  }
  /// Something else has been written there.
  void show(uint32_t offset, uint32_t count) {
    if (hidesAny)
      for (uint32_t at = offset; at < offset + count; at += kProxyUnit)
        hidden[at / kProxyUnit] = false;
  }

  /// Bit per byte, for vectorised checks; padded by 8 bytes.
  const uint8_t *writtenBits() const { return written.data(); }
  uint8_t *writtenBits() { return written.data(); }

private:
  /// Lanes follow each other: a wide load right after a narrower store, or one
  /// that it covers in part, would wait for that store to leave the host's
  /// store buffer.
  template <bool Set> void note(uint32_t offset, unsigned count) {
    uint8_t *at = &written[offset >> 3];
    if ((offset | count) % 8 == 0 && count <= 16) {
      uint16_t all = Set ? 0xFFFF : 0;
      count == 8 ? std::memcpy(at, &all, 1) : std::memcpy(at, &all, 2);
      return;
    }
    uint64_t bits = ((uint64_t(1) << count) - 1) << (offset & 7);
    if (bits <= 0xFF) {
      *at = static_cast<uint8_t>(Set ? *at | bits : *at & ~bits);
      return;
    }
    uint64_t word = Set ? load(offset) | bits : load(offset) & ~bits;
    std::memcpy(at, &word, sizeof word);
  }
  uint64_t load(uint32_t offset) const {
    uint64_t word;
    std::memcpy(&word, &written[offset >> 3], sizeof word);
    return word;
  }
  uint64_t window(uint32_t offset) const {
    return load(offset) >> (offset & 7);
  }

  uint32_t bytes = 0;
  std::vector<uint8_t>
      storage; // padded, so that wide reads at the end are safe
  std::vector<uint8_t> written;
  std::vector<uint8_t> hidden;
  bool hidesAny = false;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_MEMORY_H
