//===- GlobalRequest.h - What an SM asks of global memory
//------------------===//
//
// Queued by an SM while it runs alone; executed (data and time) at the next
// exchange, in the order of (cycle, SM, queue).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_GLOBALREQUEST_H
#define KPERFIR_SIMT_EXEC_GLOBALREQUEST_H

#include "Simt/Exec/Program.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace kperfir::simt {

class Warp;
struct GlobalRange;

struct GlobalRequest {
  enum class Kind : uint8_t {
    Load,
    Store,
    Atomic,
    AsyncCopy,
    AsyncArrive,
    BulkCopy,
    Remote, // shared memory of another CTA of the cluster
  };

  GlobalRequest() {} // Does not fill `address`, which is most of it.

  uint64_t cycle = 0; // when it leaves the SM
  Warp *warp = nullptr;
  const GlobalRange *range = nullptr; // holds all lanes, if known
  uint32_t pc = 0;
  LaneMask mask = 0;
  Kind kind = Kind::Load;
  bool cached = false;   // fills L1
  bool lookedUp = false; // L1 has lines for its sectors already
  bool free = false;     // data only, no time
  bool warms = false;    // but L2 has its lines afterwards
  /// Load: the registers have what was in memory before the step.
  bool loaded = false;
  bool contiguous = false; // lane i at address[0] + i * bytes, all lanes: the
                           // other addresses are there without `range` only
  uint32_t bytes = 0;      // per lane
  uint32_t log = 0;        // entry to complete
  uint64_t done = 0;       // set by the exchange
  uint64_t group = 0;      // AsyncCopy, BulkCopy: serial of its group
  size_t data = 0; // operands, if it has any: begin in RequestQueue::data
  alignas(64) uint64_t address[kWarpSize];

  /// After `range` and `contiguous`.
  void setAddresses(const uint64_t *lanes) {
    bool first = contiguous && range;
    std::memcpy(address, lanes, first ? sizeof *address : sizeof address);
  }
};

struct RequestQueue {
  std::vector<GlobalRequest> entries;
  std::vector<uint8_t> data;

  /// Room for `bytes` of operands of the request.
  size_t reserve(size_t bytes) {
    size_t begin = (data.size() + 7) & ~size_t(7);
    data.resize(begin + bytes);
    return begin;
  }
  /// Bytes of memory that it holds.
  size_t capacity() const {
    return entries.capacity() * sizeof(GlobalRequest) + data.capacity();
  }
  void clear() {
    entries.clear();
    data.clear();
  }
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_GLOBALREQUEST_H
