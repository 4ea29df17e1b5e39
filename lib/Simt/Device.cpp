//===- Device.cpp ---------------------------------------------------------===//

#include "Simt/Device.h"

#include <algorithm>
#include <stdexcept>

namespace kperfir::simt {

namespace {
/// Lets a kernel see its module's variables while it runs.
class MappedGlobals {
public:
  MappedGlobals(GlobalMemory &memory, const Program &program) : memory(memory) {
    for (const GlobalVariable &variable : program.globals) {
      auto address = reinterpret_cast<uint64_t>(variable.data);
      if (variable.bytes == 0 || memory.find(address))
        continue;
      memory.map(address, variable.bytes, variable.name, variable.writable);
      mapped.push_back(address);
    }
  }
  ~MappedGlobals() {
    for (uint64_t address : mapped)
      memory.unmap(address);
  }
  MappedGlobals(const MappedGlobals &) = delete;
  MappedGlobals &operator=(const MappedGlobals &) = delete;

private:
  GlobalMemory &memory;
  std::vector<uint64_t> mapped;
};

[[noreturn]] void reject(const Program &program, const std::string &what) {
  throw std::invalid_argument("launch of " + program.kernel + ": " + what);
}

std::vector<uint8_t> packParams(const Program &program,
                                const LaunchRequest &request) {
  if (request.params.size() != program.params.size())
    reject(program, "found " + std::to_string(request.params.size()) +
                        " parameters, expected " +
                        std::to_string(program.params.size()));
  std::vector<uint8_t> block(std::max<size_t>(program.paramBytes, 8));
  for (size_t i = 0; i < request.params.size(); ++i) {
    const Parameter &param = program.params[i];
    if (request.params[i].size() != param.bytes)
      reject(program, "parameter " + std::to_string(i) + " (" + param.name +
                          ", " + param.type + "): found " +
                          std::to_string(request.params[i].size()) +
                          " bytes, expected " + std::to_string(param.bytes));
    std::copy(request.params[i].begin(), request.params[i].end(),
              block.begin() + param.offset);
  }
  return block;
}

std::string describe(const MmaShape &shape) {
  return "m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k" +
         std::to_string(shape.k) + "." + typeName(shape.typeD) + "." +
         typeName(shape.typeA) + "." + typeName(shape.typeB) + "." +
         typeName(shape.typeC);
}

ErrorSite siteOf(const Program &program, const Instruction &instruction) {
  ErrorSite site;
  site.kernel = program.kernel;
  site.opcode = instruction.mnemonic;
  site.ptxLine = instruction.ptxLine;
  site.file = program.files[instruction.file];
  site.line = instruction.line;
  return site;
}

std::vector<MmaKernel> findMmaKernels(const Program &program) {
  std::vector<MmaKernel> kernels;
  for (size_t i = 0; i < program.mmas.size(); ++i) {
    kernels.push_back(findMmaKernel(program.mmas[i], program.isa));
    if (kernels.back())
      continue;
    ErrorSite site;
    site.kernel = program.kernel;
    for (size_t pc = 0; pc < program.ops.size(); ++pc) {
      if (program.ops[pc].opcode != Opcode::Mma ||
          static_cast<size_t>(program.ops[pc].imm) != i)
        continue;
      site = siteOf(program, program.instructionAt(static_cast<uint32_t>(pc)));
      break;
    }
    throw Error(ErrorKind::Unsupported,
                "mma shape " + describe(program.mmas[i]) + " is not supported",
                site);
  }
  return kernels;
}

std::vector<WgmmaKernel> findWgmmaKernels(const Program &program) {
  std::vector<WgmmaKernel> kernels;
  for (const WgmmaShape &shape : program.wgmmas)
    kernels.push_back(findWgmmaKernel(shape, program.isa));
  return kernels;
}

/// A kernel for sm_90 needs a chip that has its units.
void checkChip(const Program &program, const Chip &chip) {
  if (chip.isSm90())
    return;
  for (size_t pc = 0; pc < program.ops.size(); ++pc) {
    if (!needsSm90(program.ops[pc].latency))
      continue;
    const Instruction &instruction =
        program.instructionAt(static_cast<uint32_t>(pc));
    throw Error(ErrorKind::Unsupported,
                "chip " + chip.name + " has no `" + instruction.mnemonic +
                    "`; compile for it, or choose a chip of compute "
                    "capability 9.0",
                siteOf(program, instruction));
  }
}

/// Without timing: everything takes one cycle, and nothing has to queue.
Chip withoutTiming(Chip chip) {
  for (InstructionCost &cost : chip.costs)
    cost = {1, 1};
  chip.branchTakenCycles = chip.barrierReleaseCycles = chip.mbarrierWakeCycles =
      1;
  chip.sharedLatency = chip.l1Latency = 1;
  chip.lsuQueueCycles = 1u << 30;
  chip.wgmmaTailCycles = chip.tmaIssueCycles = chip.tmaSetupCycles =
      chip.clusterLatency = 1;
  return chip;
}
} // namespace

/// Checks the cluster that the launch or the kernel asks for.
static void prepareClusters(Launch &launch, const Program &program) {
  constexpr uint32_t kMaxCtasPerCluster = 16;
  std::array<uint32_t, 3> none = {1, 1, 1}, wanted = none;
  for (unsigned i = 0; i < 3; ++i)
    wanted[i] = std::max(program.clusterDim[i], 1u);
  if (launch.cluster == none)
    launch.cluster = wanted;
  else if (wanted != none && launch.cluster != wanted)
    reject(program, "the cluster is not the one of .reqnctapercluster");
  uint32_t size = launch.ctasPerCluster();
  for (unsigned i = 0; i < 3; ++i)
    if (launch.cluster[i] == 0 || launch.grid[i] % launch.cluster[i])
      reject(program, "the grid is not a multiple of the cluster");
  if (size > kMaxCtasPerCluster)
    reject(program, std::to_string(size) + " CTAs per cluster; at most 16");
  launch.usesClusters = size > 1;
  for (const MicroOp &op : program.ops)
    launch.usesClusters |=
        op.latency == LatencyClass::Cluster || op.opcode == Opcode::Mapa;
}

Device::Device(const DeviceOptions &options)
    : settings(options),
      theChip(options.timing ? Chip::parse(options.chip)
                             : withoutTiming(Chip::parse(options.chip))),
      system(theChip) {
  if (options.threads == 0)
    throw std::invalid_argument(
        "a device needs at least one host thread (threads)");
}

void Device::prepare(Launch &launch, const Program &program,
                     const LaunchRequest &request) const {
  launch.program = &program;
  launch.chip = &theChip;
  launch.grid = request.grid;
  launch.block = request.block;
  launch.cluster = request.cluster;
  launch.seed = settings.seed;
  launch.log = request.log;
  launch.timing = settings.timing;
  launch.gridId = launches;

  uint64_t threads = 1;
  for (unsigned i = 0; i < 3; ++i) {
    if (request.grid[i] == 0 || request.block[i] == 0)
      reject(program, "a dimension of the grid or of the block is 0");
    threads *= request.block[i];
    if (program.reqntid[i] && program.reqntid[i] != request.block[i])
      reject(program, "found " + std::to_string(request.block[i]) +
                          " threads in dimension " + std::to_string(i) +
                          ", expected " + std::to_string(program.reqntid[i]) +
                          " (.reqntid)");
  }
  if (threads > theChip.maxThreadsPerCta)
    reject(program, std::to_string(threads) + " threads per CTA; at most " +
                        std::to_string(theChip.maxThreadsPerCta));
  prepareClusters(launch, program);
  if (launch.ctaCount() > 0x7FFFFFFF)
    reject(program, "more than 2^31 - 1 CTAs");

  launch.threadsPerCta = static_cast<uint32_t>(threads);
  launch.warpsPerCta = (launch.threadsPerCta + kWarpSize - 1) / kWarpSize;
  launch.dynamicSharedBytes = request.dynamicSharedBytes;
  launch.sharedBytes =
      std::max(program.sharedBytes,
               program.dynamicSharedBegin + request.dynamicSharedBytes);
  launch.params = packParams(program, request);
  checkChip(program, theChip);
  launch.mmaKernels = findMmaKernels(program);
  launch.wgmmaKernels = findWgmmaKernels(program);
  launch.costs = computeCosts(program, theChip);
  if (!request.freeInstructions.empty()) {
    if (request.freeInstructions.size() != program.instructions.size())
      reject(program, "free instructions: found " +
                          std::to_string(request.freeInstructions.size()) +
                          " flags, expected " +
                          std::to_string(program.instructions.size()));
    launch.hasGhosts = true;
    for (size_t pc = 0; pc < program.ops.size(); ++pc) {
      uint8_t flag = request.freeInstructions[program.instructionOf[pc]];
      if (!flag)
        continue;
      OpCost &cost = launch.costs[pc];
      cost.free = cost.ghost = true;
      cost.eager = flag != kFreeOnceReady;
      cost.pipe = Pipe::None;
    }
  }
}

LaunchResult Device::launch(const std::shared_ptr<const Program> &program,
                            const LaunchRequest &request) {
  Launch launch;
  launch.memory = &globalMemory;
  prepare(launch, *program, request);

  LaunchResult result;
  uint32_t registers =
      request.registers ? request.registers
                        : registersThatFit(theChip, launch.warpsPerCta,
                                           request.residentRegisters.value_or(
                                               program->registers));
  uint32_t sharedBytes = launch.sharedBytes;
  if (request.residentSharedBytes)
    sharedBytes =
        std::max(program->sharedBytes,
                 program->dynamicSharedBegin + *request.residentSharedBytes);
  result.occupancy =
      computeOccupancy(theChip, launch.warpsPerCta, registers, sharedBytes);
  if (result.occupancy.ctasPerSm == 0)
    throw Error(ErrorKind::Limit,
                "one CTA does not fit on an SM, limited by " +
                    std::string(result.occupancy.limiter) + ": " +
                    std::to_string(launch.warpsPerCta) + " warps, " +
                    std::to_string(registers) + " registers per thread, " +
                    std::to_string(launch.sharedBytes) +
                    " bytes of shared memory",
                ErrorSite{.kernel = program->kernel});

  uint64_t places = uint64_t(theChip.smCount) * result.occupancy.ctasPerSm;
  if (launch.ctasPerCluster() > places)
    throw Error(ErrorKind::Limit,
                "a cluster of " + std::to_string(launch.ctasPerCluster()) +
                    " CTAs does not fit on the chip, which has room for " +
                    std::to_string(places),
                ErrorSite{.kernel = program->kernel});

  // Memory that stays mapped keeps its place and what L2 holds of it. Else a
  // launch takes as long as it would as the first one.
  if (globalMemory.startOver())
    system.forget();
  MappedGlobals globals(globalMemory, *program);
  system.resetStatistics();
  RunOptions options;
  options.startCycle = nextCycle + theChip.launchCycles;
  options.threads = settings.threads;
  options.instructionLimit = settings.instructionLimit;
  options.detailedWaves = settings.timing ? settings.detailedWaves : 0;
  options.interrupt = request.interrupt;
  options.service = request.service;
  RunResult run =
      runMachine(launch, system, memoryOfLaunches, result.occupancy, options);

  ++launches;
  nextCycle = run.endCycle;
  result.startCycle = options.startCycle;
  result.cycles = run.endCycle - options.startCycle;
  result.ns = theChip.cyclesToNs(result.cycles);
  result.ctas = launch.ctaCount();
  result.untimed = run.untimed;
  result.cyclesPerWave = run.cyclesPerWave;
  result.untimedWaves = run.untimedWaves;
  result.statistics = run.statistics;
  result.memory = system.statistics();
  result.printed = std::move(run.printed);
  result.log = std::move(run.log);
  return result;
}

} // namespace kperfir::simt
