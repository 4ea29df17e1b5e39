//===- simt_result.cpp ----------------------------------------------------===//

#include "simt_result.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

namespace nb = nanobind;

namespace kperfir::python {

namespace {
template <typename T> nb::object toNumpy(std::vector<T> &&values) {
  auto *owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void *pointer) noexcept {
    delete static_cast<std::vector<T> *>(pointer);
  });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(
      owned->data(), {owned->size()}, owner));
}

} // namespace

nb::object eventLog(simt::EventLog &&log) {
  nb::dict columns;
  columns["sm"] = toNumpy(std::move(log.sm));
  columns["cta"] = toNumpy(std::move(log.cta));
  columns["warp"] = toNumpy(std::move(log.warp));
  columns["pc"] = toNumpy(std::move(log.instruction));
  columns["opcode"] = toNumpy(std::move(log.opcode));
  columns["issue"] = toNumpy(std::move(log.issue));
  columns["complete"] = toNumpy(std::move(log.complete));
  columns["value"] = toNumpy(std::move(log.value));
  columns["units"] = toNumpy(std::move(log.units));
  return columns;
}

static nb::dict statistics(const simt::LaunchResult &result) {
  nb::dict stats;
  const simt::SmStatistics &sm = result.statistics;
  stats["l1_sector_hits"] = sm.l1SectorHits;
  stats["l1_sector_misses"] = sm.l1SectorMisses;
  stats["shared_accesses"] = sm.sharedAccesses;
  stats["shared_wavefronts"] = sm.sharedWavefronts;
  stats["shared_conflict_wavefronts"] = sm.sharedConflictWavefronts;
  nb::dict issued;
  for (unsigned i = 0; i < simt::kNumPipes; ++i)
    issued[simt::pipeName(static_cast<simt::Pipe>(i))] = sm.issued[i];
  stats["issued"] = issued;
  const simt::MemoryStatistics &memory = result.memory;
  stats["l2_sector_reads"] = memory.l2SectorReads;
  stats["l2_sector_writes"] = memory.l2SectorWrites;
  stats["l2_sector_hits"] = memory.l2SectorHits;
  stats["l2_atomics"] = memory.l2Atomics;
  stats["dram_read_bytes"] = memory.dramReadBytes;
  stats["dram_write_bytes"] = memory.dramWriteBytes;
  const simt::Occupancy &occupancy = result.occupancy;
  stats["occupancy_limiter"] = occupancy.limiter;
  stats["occupancy_by_warps"] = occupancy.byWarps;
  stats["occupancy_by_registers"] = occupancy.byRegisters;
  stats["occupancy_by_shared"] = occupancy.byShared;
  stats["l1_bytes"] = occupancy.l1Bytes;
  return stats;
}

void bindSimtResult(nb::module_ &module) {
  nb::class_<SimtResult>(module, "Result", "What a launch did.")
      .def_prop_ro("cycles",
                   [](const SimtResult &self) { return self.launch.cycles; })
      .def_prop_ro(
          "start_cycles",
          [](const SimtResult &self) { return self.launch.startCycle; })
      .def_prop_ro("ns", [](const SimtResult &self) { return self.launch.ns; })
      .def_prop_ro("ctas",
                   [](const SimtResult &self) { return self.launch.ctas; })
      .def_prop_ro(
          "untimed_ctas",
          [](const SimtResult &self) {
            std::vector<std::pair<uint64_t, uint64_t>> ranges;
            for (const simt::CtaRange &range : self.launch.untimed)
              ranges.emplace_back(range.begin, range.end);
            return ranges;
          },
          "First and end of each range of CTAs that were not simulated in "
          "detail")
      .def_prop_ro(
          "untimed_waves",
          [](const SimtResult &self) { return self.launch.untimedWaves; })
      .def_prop_ro(
          "cycles_per_wave",
          [](const SimtResult &self) { return self.launch.cyclesPerWave; })
      .def_prop_ro("occupancy",
                   [](const SimtResult &self) {
                     return self.launch.occupancy.ctasPerSm;
                   })
      .def_prop_ro("warp_instructions",
                   [](const SimtResult &self) {
                     return self.launch.statistics.warpInstructions();
                   })
      .def_prop_ro("thread_instructions",
                   [](const SimtResult &self) {
                     return self.launch.statistics.threadInstructions;
                   })
      .def_prop_ro("printf",
                   [](const SimtResult &self) { return self.launch.printed; })
      .def_prop_ro(
          "stats",
          [](const SimtResult &self) { return statistics(self.launch); },
          getter("def stats(self, /) -> dict[str, object]"))
      .def_prop_ro(
          "log", [](const SimtResult &self) { return self.log; },
          getter("def log(self, /) -> dict[str, "
                 "numpy.typing.NDArray[numpy.generic]] | None"),
          "The event log: columns of equal length");
}

} // namespace kperfir::python
