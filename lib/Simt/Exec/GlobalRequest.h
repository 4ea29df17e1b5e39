//===- GlobalRequest.h - What an SM asks of global memory -----------------===//
//
// Queued by an SM while it runs alone; executed (data and time) at the next
// exchange, in the order of (cycle, SM, queue). What concerns nobody else, the
// SM does itself: the way through its L1 and its port before the exchange (the
// request is `prepared` then), and what follows from the answers after it
// (Sm::prepareRequests, Sm::finishExchange).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_GLOBALREQUEST_H
#define KPERFIR_SIMT_EXEC_GLOBALREQUEST_H

#include "Simt/Exec/Program.h"
#include "Simt/Timing/Caches.h"

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

/// What a prepared request asks of one line of L2.
struct L2Access {
  uint64_t line = 0;
  uint64_t arrival = 0; // when it leaves the SM
  uint64_t done = 0;    // set by the exchange
  Cache::Line inL1;     // where it goes, or none
  uint8_t sectors = 0;  // 0: none is needed
  uint8_t present = 0;  // sectors that L1 has, or will have from another one
  uint8_t kept = 0;     // sectors that L1 keeps
};

struct PreparedRequest {
  uint64_t cycle = 0;
  const GlobalRange *range = nullptr;
  uint32_t entry = 0; // in RequestQueue::entries
  uint32_t firstAccess = 0;
  uint32_t accessCount = 0;
  GlobalRequest::Kind kind = GlobalRequest::Kind::Load;
};

struct RequestQueue {
  std::vector<GlobalRequest> entries;
  std::vector<uint8_t> data;
  /// Entries by cycle; the first ones are prepared.
  std::vector<uint32_t> order;
  std::vector<PreparedRequest> prepared;
  std::vector<L2Access> accesses; // of the prepared ones

  /// Room for `bytes` of operands of the request.
  size_t reserve(size_t bytes) {
    size_t begin = (data.size() + 7) & ~size_t(7);
    data.resize(begin + bytes);
    return begin;
  }
  /// Bytes of memory that it holds.
  size_t capacity() const {
    return entries.capacity() * sizeof(GlobalRequest) + data.capacity() +
           accesses.capacity() * sizeof(L2Access);
  }
  void clear() {
    entries.clear();
    data.clear();
    order.clear();
    prepared.clear();
    accesses.clear();
  }
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_GLOBALREQUEST_H
