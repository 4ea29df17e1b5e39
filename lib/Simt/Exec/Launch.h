//===- Launch.h - What all SMs share while a kernel runs ------------------===//

#ifndef KPERFIR_SIMT_EXEC_LAUNCH_H
#define KPERFIR_SIMT_EXEC_LAUNCH_H

#include "Simt/Exec/MatrixKernels.h"
#include "Simt/Exec/Memory.h"
#include "Simt/Exec/Program.h"
#include "Simt/Exec/WgmmaKernels.h"
#include "Simt/Timing/Chip.h"

#include <array>
#include <cstdint>
#include <vector>

namespace kperfir::simt {

/// Cost of one op on this chip, with all that an issue looks at.
struct alignas(32) OpCost {
  uint32_t latency = 1;
  uint16_t interval = 1;
  Pipe pipe = Pipe::None;
  /// Takes neither an issue slot nor time: helpers of the lowering, and ghosts.
  bool free : 1 = false;
  /// The caller wants it to be free (ghost mode): it waits for no issue slot
  /// and no pipe, either, and if it is `eager` not for its operands.
  bool ghost : 1 = false;
  bool eager : 1 = false;
  /// Only its own warp can tell when it is executed: it may wait for the ones
  /// that follow (Sm::executePending). Those with `allLanes` do not if a lane
  /// is missing.
  bool deferred : 1 = false;
  bool allLanes : 1 = false;
  bool waitsForStores : 1 = false; // a release that other SMs may see
  // The op's slots in Program::scoreboard.
  uint8_t numReads = 0;
  uint8_t numWrites = 0;
  uint32_t slotBegin = 0;
  /// The same, if they are few, filled up with the slot that is always ready
  /// (Program::numScoreboardSlots).
  static constexpr unsigned kFewReads = 4, kFewWrites = 2;
  bool few : 1 = false;
  uint16_t reads[kFewReads] = {};
  uint16_t writes[kFewWrites] = {};
};
static_assert(sizeof(OpCost) == 32);

/// Read-only while SMs run.
struct Launch {
  const Program *program = nullptr;
  const Chip *chip = nullptr;
  GlobalMemory *memory = nullptr;
  std::vector<OpCost> costs;             // by pc
  bool hasGhosts = false;                // among them
  std::vector<MmaKernel> mmaKernels;     // by Program::mmas
  std::vector<WgmmaKernel> wgmmaKernels; // by Program::wgmmas
  std::vector<uint8_t> params;
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  uint32_t threadsPerCta = 1;
  uint32_t warpsPerCta = 1;
  uint32_t sharedBytes = 0; // in the CTA's window, static and dynamic
  uint32_t dynamicSharedBytes = 0;
  uint64_t gridId = 0;
  uint64_t seed = 0;
  bool timing = true;
  bool log = false;
  /// It has clusters, if only of one CTA each.
  bool usesClusters = false;

  uint32_t ctasPerCluster() const {
    return cluster[0] * cluster[1] * cluster[2];
  }
  uint64_t ctaCount() const { return uint64_t(grid[0]) * grid[1] * grid[2]; }
};

/// What a GPU's hardware would fit on one SM; all bounds, for reports.
struct Occupancy {
  uint32_t ctasPerSm = 0;
  uint32_t byWarps = 0, byCtas = 0, byRegisters = 0, byShared = 0;
  const char *limiter = "";
  uint32_t l1Bytes = 0; // what shared memory leaves of the unified L1
};

/// `registers` per thread. ctasPerSm is 0 when one CTA does not fit.
Occupancy computeOccupancy(const Chip &chip, uint32_t warpsPerCta,
                           uint32_t registers, uint32_t sharedBytes);

/// An estimate of registers per thread, lowered to what lets one CTA start:
/// who compiles for a given CTA size spills rather than use more.
uint32_t registersThatFit(const Chip &chip, uint32_t warpsPerCta,
                          uint32_t estimate);

/// Costs of every op of `program` on `chip`, and one more: an issue looks at
/// the op that follows.
std::vector<OpCost> computeCosts(const Program &program, const Chip &chip);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_LAUNCH_H
