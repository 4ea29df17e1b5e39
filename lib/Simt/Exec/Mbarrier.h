//===- Mbarrier.h - The word of an mbarrier -------------------------------===//
//
// An mbarrier is the 64-bit word in shared memory that PTX says it is; its bits
// are ours.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MBARRIER_H
#define KPERFIR_SIMT_EXEC_MBARRIER_H

#include <cstdint>

namespace kperfir::simt {

struct Mbarrier {
  static constexpr uint64_t kCountMask = (1u << 20) - 1;
  static constexpr unsigned kBytes = 8;

  uint32_t pending = 0;      // arrivals that the phase still needs
  uint32_t expected = 0;     // arrivals of a phase
  uint32_t transactions = 0; // bytes that the phase still needs, modulo 2^23:
                             // they may complete before they are expected
  uint32_t phase = 0;

  static Mbarrier unpack(uint64_t word) {
    return {static_cast<uint32_t>(word & kCountMask),
            static_cast<uint32_t>(word >> 20 & kCountMask),
            static_cast<uint32_t>(word >> 40 & 0x7FFFFF),
            static_cast<uint32_t>(word >> 63)};
  }
  uint64_t pack() const {
    return pending | uint64_t(expected) << 20 |
           uint64_t(transactions & 0x7FFFFF) << 40 | uint64_t(phase) << 63;
  }
  bool awaitsBytes() const { return (transactions & 0x7FFFFF) != 0; }
  /// True if that ended the phase.
  bool completeIfDone() {
    if (pending || awaitsBytes())
      return false;
    phase ^= 1;
    pending = expected;
    return true;
  }
};

/// MicroOp::sub of MbarrierArrive.
enum class MbarrierArrival : uint8_t {
  Plain,
  NoComplete,
  ExpectTx,
  Drop,
  DropNoComplete,
  DropExpectTx,
};
inline bool expectsBytes(MbarrierArrival arrival) {
  return arrival == MbarrierArrival::ExpectTx ||
         arrival == MbarrierArrival::DropExpectTx;
}
inline bool mayNotComplete(MbarrierArrival arrival) {
  return arrival == MbarrierArrival::NoComplete ||
         arrival == MbarrierArrival::DropNoComplete;
}
inline bool drops(MbarrierArrival arrival) {
  return arrival >= MbarrierArrival::Drop;
}

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_MBARRIER_H
