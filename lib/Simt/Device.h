//===- Device.h - The embedded SIMT device --------------------------------===//
//
// The public interface of lib/Simt: load a program (loadProgram in
// Exec/Program.h), make a Device from a chip file, tell it which host memory
// kernels may touch, launch.
//
//   Device device({.chip = jsonText});
//   device.memory().map(address, bytes, "x", true);
//   LaunchResult result = device.launch(loadProgram(ptx), request);
//
// A Device is not thread safe: one launch at a time.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_DEVICE_H
#define KPERFIR_SIMT_DEVICE_H

#include "Simt/Error.h"
#include "Simt/Exec/EventLog.h"
#include "Simt/Exec/Launch.h"
#include "Simt/Exec/Machine.h"
#include "Simt/Exec/Memory.h"
#include "Simt/Exec/Program.h"
#include "Simt/Timing/Chip.h"
#include "Simt/Timing/MemorySystem.h"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kperfir::simt {

struct DeviceOptions {
  std::string chip;     // JSON text of a chip file
  unsigned threads = 1; // host threads; no result depends on it
  uint64_t seed = 0;  // 0: greedy then oldest. Others: another order of warps,
                      // and so another outcome of a race
  bool timing = true; // false: every instruction takes one cycle
  /// Whole waves of CTAs that are simulated in detail, at least 3, of a grid
  /// that has more (Exec/Sampling.h). 0: all.
  unsigned detailedWaves = 0;
  /// Warp instructions that a launch may execute.
  uint64_t instructionLimit = uint64_t(4) << 30;
};

constexpr uint8_t kFreeOnceReady = 2;

struct LaunchRequest {
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  /// One byte string per parameter of the kernel, little-endian.
  std::vector<std::string> params;
  uint32_t registers = 0; // per thread; 0: the program's estimate
  bool log = false;
  /// Per PTX instruction (Program::instructions), if not 0: it takes no time
  /// (ghost mode), and waits for nothing, or, if `kFreeOnceReady`, for its
  /// operands.
  std::vector<uint8_t> freeInstructions;
  /// Where these are given, as many CTAs share an SM as would if a thread had
  /// this many registers by estimate, and a CTA this much dynamic shared memory
  /// (ghost mode: those of the kernel without what is free).
  std::optional<uint32_t> residentRegisters, residentSharedBytes;
  /// Called every few milliseconds; true ends the launch with Interrupted.
  std::function<bool()> interrupt;
  /// May change memory that the kernel uses.
  HostService service;
};

struct LaunchResult {
  uint64_t startCycle = 0;
  /// From the start to the last completion; an estimate if CTAs were untimed.
  uint64_t cycles = 0;
  uint64_t ns = 0;
  uint64_t ctas = 0;
  std::vector<CtaRange> untimed; // linear CTAs not simulated in detail
  double cyclesPerWave = 0;
  uint64_t untimedWaves = 0;
  Occupancy occupancy;
  SmStatistics statistics;
  MemoryStatistics memory;
  std::vector<std::string> printed;
  EventLog log;
};

class Device {
public:
  /// Throws std::invalid_argument for a bad chip file.
  explicit Device(const DeviceOptions &options);
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// Throws Error for what the program does wrong, std::invalid_argument for a
  /// wrong request, Interrupted.
  LaunchResult launch(const std::shared_ptr<const Program> &program,
                      const LaunchRequest &request);

  GlobalMemory &memory() { return globalMemory; }
  const Chip &chip() const { return theChip; }
  uint64_t cycle() const { return nextCycle; }
  DeviceOptions &options() { return settings; }

private:
  void prepare(Launch &launch, const Program &program,
               const LaunchRequest &request) const;

  DeviceOptions settings;
  Chip theChip;
  GlobalMemory globalMemory;
  MemorySystem system;
  LaunchMemory memoryOfLaunches;
  uint64_t nextCycle = 0; // the clock goes on over launches
  uint64_t launches = 0;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_DEVICE_H
