//===- Machine.h - All SMs of a device, running one kernel ----------------===//
//
// Time advances in steps of one L2 latency. In a step every SM runs alone (on
// any host thread); at its end the exchange answers what they asked of global
// memory, finished CTAs leave and waiting ones are placed. No answer can come
// sooner than one L2 latency, so the steps lose no accuracy; only a CTA may
// start up to one step later than its place became free.
//
// In a sampled launch (Sampling.h) a few more SMs, which are none of the
// chip's, run the CTAs that are not simulated in detail. Meanwhile the others
// stand still, unless those seem to wait for them (Dispatcher.h).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_MACHINE_H
#define KPERFIR_SIMT_EXEC_MACHINE_H

#include "Simt/Exec/Exchange.h"
#include "Simt/Exec/Sampling.h"
#include "Simt/Exec/Sm.h"

#include <functional>
#include <memory>
#include <vector>

namespace kperfir::simt {

struct RunResult {
  /// When the last thing ended; in a sampled launch, an estimate.
  uint64_t endCycle = 0;
  std::vector<CtaRange> untimed; // linear CTAs, in order
  // Of a sampled launch.
  double cyclesPerWave = 0;
  uint64_t untimedWaves = 0;
  SmStatistics statistics;
  EventLog log;
  std::vector<std::string> printed;
};

/// What the host does while a kernel runs, such as to empty a buffer that the
/// kernel fills. Called between two exchanges, once `cycles` or more have
/// passed since the last time: when, and what it sees of memory, depends on
/// simulated time alone. An exception ends the run.
struct HostService {
  std::function<void()> call;
  uint64_t cycles = 0;
};

struct RunOptions {
  uint64_t startCycle = 0;
  unsigned threads = 1;
  uint64_t instructionLimit = ~0ull;
  unsigned detailedWaves = 0; // see Sampling.h
  /// Called every few milliseconds; true ends the run (Interrupted is thrown).
  std::function<bool()> interrupt;
  HostService service;
};

/// The caller's `interrupt` asked to end.
struct Interrupted {};

/// Runs the launch to its end. Throws Error.
RunResult runMachine(const Launch &launch, MemorySystem &system,
                     LaunchMemory &memory, const Occupancy &occupancy,
                     const RunOptions &options);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_MACHINE_H
