//===- Chip.h - The figures of a GPU that the timing model uses -----------===//
//
// Owns the in-memory form of a chip file (kperfir/runtime/chips/*.json). Every
// figure must be in the file, with a source: there are no defaults in code.
// Cycles are SM cycles; rates are per SM cycle unless the name says otherwise.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_TIMING_CHIP_H
#define KPERFIR_SIMT_TIMING_CHIP_H

#include "Simt/Exec/Program.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace kperfir::simt {

/// Cost of one latency class: cycles until a result may be read, and cycles
/// that its pipe is taken for (per sub-core).
struct InstructionCost {
  uint32_t latency = 0;
  uint32_t interval = 0;
};

struct Chip {
  std::string name;
  uint32_t computeCapability = 0; // 80
  uint32_t clockMhz = 0;

  // SM resources, which bound occupancy.
  uint32_t smCount = 0;
  uint32_t maxWarpsPerSm = 0;
  uint32_t maxCtasPerSm = 0;
  uint32_t maxThreadsPerCta = 0;
  uint32_t registersPerSm = 0;
  uint32_t maxRegistersPerThread = 0;
  uint32_t registerUnit = 0; // registers of a warp are allocated in such units
  uint32_t sharedBytesPerSm = 0;
  uint32_t maxSharedBytesPerCta = 0;
  uint32_t sharedReservedPerCta = 0;
  uint32_t sharedUnit = 0;

  // Latencies that belong to no single instruction.
  uint32_t launchCycles = 0;
  uint32_t ctaLaunchCycles = 0;
  uint32_t branchTakenCycles = 0;    // from a taken branch to the next issue
  uint32_t barrierReleaseCycles = 0; // from the last arrival to the wake-up
  uint32_t mbarrierWakeCycles = 0;

  // Load/store unit, shared memory, L1.
  uint32_t lsuQueueCycles = 0; // work the LSU may be behind before issue stalls
  uint32_t sharedLatency = 0;
  uint32_t l1Latency = 0;
  uint32_t unifiedL1Bytes = 0; // L1 and shared memory together
  std::vector<uint32_t> sharedCarveoutBytes;
  uint32_t l1Ways = 0;
  uint32_t l1BytesPerCycle = 0;
  uint32_t sharedAtomicCycles = 0; // per lane that meets an address again

  // L2 and DRAM.
  uint32_t smPortBytesPerCycle = 0; // from L2 to one SM
  uint32_t l2Latency = 0;
  uint32_t l2Bytes = 0;
  uint32_t l2Ways = 0;
  uint32_t l2Slices = 0;
  uint32_t l2SliceBytesPerCycle = 0;
  uint32_t l2AtomicLanesPerCycle = 0;
  uint32_t dramLatency = 0; // on top of l2Latency
  uint32_t dramChannels = 0;
  double dramBytesPerSecond = 0;

  // Tensor core, multiply-adds per cycle and sub-core.
  uint32_t mmaF16PerCycle = 0;
  uint32_t mmaTf32PerCycle = 0;
  uint32_t mmaF8PerCycle = 0;
  uint32_t mmaI8PerCycle = 0;
  uint32_t mmaF64PerCycle = 0;

  // From compute capability 9.0 on; 0 before.
  uint32_t wgmmaF16PerCycle = 0; // multiply-adds per cycle and sub-core
  uint32_t wgmmaTf32PerCycle = 0;
  uint32_t wgmmaF8PerCycle = 0;          // and of int8
  uint32_t wgmmaTailCycles = 0;          // from the last product to the result
  uint32_t wgmmaSharedBytesPerCycle = 0; // of operands, per SM
  uint32_t tmaIssueCycles = 0;   // between two instructions of one SM's unit
  uint32_t tmaSetupCycles = 0;   // before its first request
  uint32_t tmaBytesPerCycle = 0; // that it asks for
  uint32_t clusterLatency = 0;   // between the SMs of a cluster
  uint32_t clusterBytesPerCycle = 0;

  std::array<InstructionCost, kNumLatencyClasses> costs{};

  bool isSm90() const { return computeCapability >= 90; }

  const InstructionCost &cost(LatencyClass latency) const {
    return costs[static_cast<unsigned>(latency)];
  }
  uint64_t cyclesToNs(uint64_t cycles) const {
    return cycles * 1000 / clockMhz;
  }

  /// Throws std::invalid_argument naming the figure that is absent, unknown,
  /// not a whole number or without a source.
  static Chip parse(const std::string &json);
};

inline constexpr uint32_t kLineBytes = 128;
inline constexpr uint32_t kSectorBytes = 32;
inline constexpr uint32_t kSubCores = 4;
inline constexpr uint32_t kMaxWarpsPerSm = 64;

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_TIMING_CHIP_H
