//===- SmReports.h - What an SM says of its run: counts, texts, faults ----===//

#ifndef KPERFIR_SIMT_EXEC_SMREPORTS_H
#define KPERFIR_SIMT_EXEC_SMREPORTS_H

#include "Simt/Error.h"
#include "Simt/Exec/MicroOp.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

namespace kperfir::simt {

struct SmStatistics {
  uint64_t threadInstructions = 0;
  uint64_t l1SectorHits = 0;
  uint64_t l1SectorMisses = 0;
  uint64_t sharedAccesses = 0;
  uint64_t sharedWavefronts = 0;
  uint64_t sharedConflictWavefronts = 0; // above what the access needs at best
  std::array<uint64_t, kNumPipes> issued{};

  uint64_t warpInstructions() const {
    return std::accumulate(issued.begin(), issued.end(), uint64_t(0));
  }
  void add(const SmStatistics &other);
};

/// A printf line, with its place in the order of execution.
struct PrintedText {
  uint64_t cycle;
  std::string text;
};

/// Something that a lane did wrong. Sm::fail adds the place.
struct Fault {
  ErrorKind kind;
  std::string message;
  int lane = -1;
  std::optional<uint64_t> address = std::nullopt;
  bool isGlobal = false;
};

/// Bytes that a lane writes to shared memory.
struct SharedWrite {
  uint32_t offset, bytes;
  unsigned lane;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_SMREPORTS_H
