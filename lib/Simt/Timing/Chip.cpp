//===- Chip.cpp - Reading a chip file -------------------------------------===//

#include "Simt/Timing/Chip.h"

#include "Simt/Timing/Json.h"

#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

namespace kperfir::simt {

namespace {
/// Reads figures and notices, at the end, those that nobody asked for.
class Figures {
public:
  Figures(const json::Value &root, const std::string &section)
      : section(section) {
    figures = root.find(section);
    if (!figures || figures->kind != json::Value::Kind::Object)
      throw std::invalid_argument("chip file: no object \"" + section + "\"");
    sources = root.find("sources");
    if (!sources || sources->kind != json::Value::Kind::Object)
      throw std::invalid_argument("chip file: no object \"sources\"");
  }

  const json::Value &get(const std::string &key) {
    const json::Value *figure = figures->find(key);
    if (!figure || figure->kind != json::Value::Kind::Object)
      fail(key, "is missing");
    const json::Value *source = figure->find("source");
    if (!source || !sources->find(source->string))
      fail(key, R"(has no "source" that "sources" explains)");
    used.insert(key);
    return *figure;
  }

  double real(const std::string &key, const char *field = "value") {
    const json::Value *value = get(key).find(field);
    if (!value || value->kind != json::Value::Kind::Number ||
        !(value->number >= 0))
      fail(key, std::string("has no number \"") + field + "\" of at least 0");
    return value->number;
  }

  uint32_t whole(const std::string &key, const char *field = "value") {
    double number = real(key, field);
    if (number != std::floor(number) ||
        number > std::numeric_limits<uint32_t>::max())
      fail(key, "is not a whole number of 32 bits");
    return static_cast<uint32_t>(number);
  }

  uint32_t positive(const std::string &key) {
    uint32_t number = whole(key);
    if (number == 0)
      fail(key, "must not be 0");
    return number;
  }

  std::vector<uint32_t> list(const std::string &key) {
    const json::Value *value = get(key).find("value");
    if (!value || value->kind != json::Value::Kind::Array)
      fail(key, "has no list \"value\"");
    std::vector<uint32_t> numbers;
    for (const json::Value &item : value->array)
      numbers.push_back(static_cast<uint32_t>(item.number));
    return numbers;
  }

  void rejectUnused() {
    for (const auto &member : figures->object)
      if (!used.count(member.name))
        fail(member.name, "is not a figure of the model");
  }

private:
  [[noreturn]] void fail(const std::string &key,
                         const std::string &what) const {
    throw std::invalid_argument("chip file: \"" + section + "." + key + "\" " +
                                what);
  }

  const json::Value *figures;
  const json::Value *sources;
  std::string section;
  std::set<std::string> used;
};

void readResources(Figures &f, Chip &chip) {
  chip.computeCapability = f.positive("compute_capability");
  chip.clockMhz = f.positive("clock_mhz");
  chip.smCount = f.positive("sm_count");
  chip.maxWarpsPerSm = f.positive("max_warps_per_sm");
  if (chip.maxWarpsPerSm > kMaxWarpsPerSm)
    throw std::invalid_argument(
        "chip file: \"figures.max_warps_per_sm\" must not be above " +
        std::to_string(kMaxWarpsPerSm));
  chip.maxCtasPerSm = f.positive("max_ctas_per_sm");
  chip.maxThreadsPerCta = f.positive("max_threads_per_cta");
  chip.registersPerSm = f.positive("registers_per_sm");
  chip.maxRegistersPerThread = f.positive("max_registers_per_thread");
  chip.registerUnit = f.positive("register_unit");
  chip.sharedBytesPerSm = f.positive("shared_bytes_per_sm");
  chip.maxSharedBytesPerCta = f.positive("max_shared_bytes_per_cta");
  chip.sharedReservedPerCta = f.whole("shared_reserved_per_cta");
  chip.sharedUnit = f.positive("shared_unit");
}

void checkWays(const std::string &key, uint32_t ways) {
  constexpr uint32_t kMaxWays = 16; // of Cache
  if (ways > kMaxWays)
    throw std::invalid_argument("chip file: \"figures." + key +
                                "\" must not be above 16");
}

void readMemory(Figures &f, Chip &chip) {
  chip.lsuQueueCycles = f.whole("lsu_queue_cycles");
  chip.sharedLatency = f.positive("shared_latency");
  chip.l1Latency = f.positive("l1_latency");
  chip.unifiedL1Bytes = f.positive("unified_l1_bytes");
  chip.sharedCarveoutBytes = f.list("shared_carveout_bytes");
  chip.l1Ways = f.positive("l1_ways");
  checkWays("l1_ways", chip.l1Ways);
  chip.l1BytesPerCycle = f.positive("l1_bytes_per_cycle");
  chip.sharedAtomicCycles = f.whole("shared_atomic_cycles");
  chip.smPortBytesPerCycle = f.positive("sm_port_bytes_per_cycle");
  chip.l2Latency = f.positive("l2_latency");
  chip.l2Bytes = f.positive("l2_bytes");
  chip.l2Ways = f.positive("l2_ways");
  checkWays("l2_ways", chip.l2Ways);
  chip.l2Slices = f.positive("l2_slices");
  chip.l2SliceBytesPerCycle = f.positive("l2_slice_bytes_per_cycle");
  chip.l2AtomicLanesPerCycle = f.positive("l2_atomic_lanes_per_cycle");
  chip.dramLatency = f.whole("dram_latency");
  chip.dramChannels = f.positive("dram_channels");
  chip.dramBytesPerSecond = f.real("dram_bytes_per_second");
  if (chip.dramBytesPerSecond <= 0)
    throw std::invalid_argument(
        "chip file: \"figures.dram_bytes_per_second\" must not be 0");
}

void readUnits(Figures &f, Chip &chip) {
  chip.launchCycles = f.whole("launch_cycles");
  chip.ctaLaunchCycles = f.whole("cta_launch_cycles");
  chip.branchTakenCycles = f.positive("branch_taken_cycles");
  chip.barrierReleaseCycles = f.positive("barrier_release_cycles");
  chip.mbarrierWakeCycles = f.positive("mbarrier_wake_cycles");
  chip.mmaF16PerCycle = f.positive("mma_f16_per_cycle");
  chip.mmaTf32PerCycle = f.positive("mma_tf32_per_cycle");
  chip.mmaF8PerCycle = f.positive("mma_f8_per_cycle");
  chip.mmaI8PerCycle = f.positive("mma_i8_per_cycle");
  chip.mmaF64PerCycle = f.positive("mma_f64_per_cycle");
}

void readSm90(Figures &f, Chip &chip) {
  chip.wgmmaF16PerCycle = f.positive("wgmma_f16_per_cycle");
  chip.wgmmaTf32PerCycle = f.positive("wgmma_tf32_per_cycle");
  chip.wgmmaF8PerCycle = f.positive("wgmma_f8_per_cycle");
  chip.wgmmaTailCycles = f.whole("wgmma_tail_cycles");
  chip.wgmmaSharedBytesPerCycle = f.positive("wgmma_shared_bytes_per_cycle");
  chip.tmaIssueCycles = f.whole("tma_issue_cycles");
  chip.tmaSetupCycles = f.whole("tma_setup_cycles");
  chip.tmaBytesPerCycle = f.positive("tma_bytes_per_cycle");
  chip.clusterLatency = f.positive("cluster_latency");
  chip.clusterBytesPerCycle = f.positive("cluster_bytes_per_cycle");
}
} // namespace

Chip Chip::parse(const std::string &text) {
  json::Value root = json::parse(text);
  Chip chip;
  const json::Value *name = root.find("name");
  if (!name || name->kind != json::Value::Kind::String)
    throw std::invalid_argument("chip file: no string \"name\"");
  chip.name = name->string;

  Figures figures(root, "figures");
  readResources(figures, chip);
  readMemory(figures, chip);
  readUnits(figures, chip);
  if (chip.isSm90())
    readSm90(figures, chip);
  figures.rejectUnused();

  Figures instructions(root, "instructions");
  for (unsigned i = 0; i < kNumLatencyClasses; ++i) {
    if (needsSm90(static_cast<LatencyClass>(i)) && !chip.isSm90())
      continue;
    const char *key = latencyClassName(static_cast<LatencyClass>(i));
    chip.costs[i].latency = instructions.whole(key, "latency");
    chip.costs[i].interval = instructions.whole(key, "interval");
  }
  instructions.rejectUnused();
  return chip;
}

} // namespace kperfir::simt
