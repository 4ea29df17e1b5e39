//===- EventLog.h - When each warp instruction issued and completed -------===//
//
// The ground truth of the device: opt-in, one entry per executed warp
// instruction, in the order of issue on its SM.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_EVENTLOG_H
#define KPERFIR_SIMT_EXEC_EVENTLOG_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace kperfir::simt {

inline constexpr uint32_t kNoLog = 0xFFFFFFFFu;

/// Columns of equal length. `complete` is the cycle from which a result may be
/// read, a store is accepted, or the warp may go on. `units` are the wavefronts
/// of an access to shared memory, the sectors of one to global memory.
struct EventLog {
  std::vector<int32_t> sm, cta, warp, instruction;
  std::vector<uint16_t> opcode;
  std::vector<uint64_t> issue, complete;
  std::vector<uint32_t> value; // lane 0 of a clock read, else 0
  std::vector<uint32_t> units;

  size_t size() const { return issue.size(); }
  void append(const EventLog &other);
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_EVENTLOG_H
