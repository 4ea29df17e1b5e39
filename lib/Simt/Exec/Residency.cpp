//===- Residency.cpp - CTAs that come to an SM and leave it ---------------===//

#include "Simt/Exec/ClusterGrid.h"
#include "Simt/Exec/Sm.h"

#include <algorithm>

namespace kperfir::simt {

namespace {
uint64_t hashSeed(uint64_t seed, uint64_t a, uint64_t b) {
  return mixAddress(seed * 0x9E3779B97F4A7C15ull +
                    mixAddress(a * 0x100000001B3ull + b + 1));
}
} // namespace

Cta &Sm::place(uint64_t linearCta, uint64_t cycle) {
  std::unique_ptr<Cta> cta;
  if (spareCtas.empty()) {
    cta = std::make_unique<Cta>();
    for (uint32_t i = 0; i < launch.warpsPerCta; ++i) {
      cta->warps.push_back(
          storage.make(nextWarp++, program, launch.params.data()));
      describe(*cta->warps.back(), i);
    }
  } else {
    cta = std::move(spareCtas.back());
    spareCtas.pop_back();
  }
  initialise(*cta, linearCta, cycle);
  ctas.push_back(std::move(cta));
  return *ctas.back();
}

void Sm::describe(Warp &warp, uint32_t index) const {
  warp.index = index;
  WarpSpecials &specials = warp.specials;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    uint32_t thread = index * kWarpSize + lane;
    if (launch.block[1] == 1 && launch.block[2] == 1) {
      specials.tid[0][lane] = thread; // The others are 0 already.
      continue;
    }
    specials.tid[0][lane] = thread % launch.block[0];
    specials.tid[1][lane] = thread / launch.block[0] % launch.block[1];
    specials.tid[2][lane] = thread / launch.block[0] / launch.block[1];
  }
  for (unsigned i = 0; i < 3; ++i) {
    specials.ntid[i] = launch.block[i];
    specials.nctaid[i] = launch.grid[i];
  }
  specials.warpid = index;
  specials.nwarpid = launch.warpsPerCta;
  specials.smid = id % chip.smCount;
  specials.nsmid = chip.smCount;
  specials.gridid = launch.gridId;
  specials.dynamicSmemBytes = launch.dynamicSharedBytes;
  specials.totalSmemBytes = launch.sharedBytes;
}

void Sm::initialise(Cta &cta, uint64_t linear, uint64_t cycle) {
  cta.linear = static_cast<uint32_t>(linear);
  cta.shared.reset(launch.sharedBytes);
  cta.localBytes = program.localBytes;
  cta.local.assign(size_t(cta.localBytes) * launch.threadsPerCta, 0);
  cta.barriers = {};
  cta.waiters.clear();
  cta.products.clear();
  cta.threads = launch.threadsPerCta;
  cta.unfinishedWarps = launch.warpsPerCta;
  cta.blockedWarps = cta.pendingEvents = 0;
  cta.endCycle = 0;
  cta.cluster = nullptr;
  cta.rank = 0;

  const auto &[gridX, gridY, gridZ] = launch.grid;
  uint32_t ctaid[3] = {static_cast<uint32_t>(linear % gridX),
                       static_cast<uint32_t>(linear / gridX % gridY),
                       static_cast<uint32_t>(linear / gridX / gridY)};
  for (uint32_t index = 0; index < launch.warpsPerCta; ++index) {
    Warp &warp = *cta.warps[index];
    warp.cta = &cta;
    warp.clear(program);
    for (unsigned i = 0; i < 3; ++i)
      warp.specials.ctaid[i] = ctaid[i];
    describeCluster(launch, warp.specials);

    uint32_t threads =
        std::min(kWarpSize, launch.threadsPerCta - index * kWarpSize);
    warp.start(threads == kWarpSize ? kFullMask : (1u << threads) - 1);
    enlist(warp, cycle);
  }
}

uint32_t Sm::pickSubCore(const Warp &warp) const {
  // The warps of a CTA go to the sub-cores in turn, the first one to the
  // emptiest.
  if (warp.index > 0) {
    uint32_t next = (warp.cta->warps[warp.index - 1]->subCore + 1) % kSubCores;
    if (cores[next].count < kMaxWarpsPerSubCore)
      return next;
  }
  auto emptiest = std::min_element(
      cores.begin(), cores.end(),
      [](const SubCore &a, const SubCore &b) { return a.count < b.count; });
  return static_cast<uint32_t>(emptiest - cores.begin());
}

void Sm::enlist(Warp &warp, uint64_t cycle) {
  warp.subCore = pickSubCore(warp);
  warp.priority = 0;
  if (launch.seed)
    warp.priority = static_cast<uint32_t>(
        hashSeed(launch.seed, warp.cta->linear, warp.index) >> 32);
  SubCore &core = cores[warp.subCore];
  core.chosen = kNoWarp;
  uint32_t position = core.count++;
  for (; launch.seed && position > 0 &&
         core.warps[position - 1]->priority > warp.priority;
       --position)
    moveWarp(core, position - 1, position);
  core.warps[position] = &warp;
  warp.position = position;
  warp.state = WarpState::Running;
  warp.nextIssue = cycle + startDelay(warp.cta->linear, warp.index);
  updateWake(warp);
}

uint64_t Sm::startDelay(uint64_t linearCta, uint32_t warpIndex) const {
  return launch.seed ? hashSeed(launch.seed, linearCta, warpIndex) % 64 : 0;
}

uint64_t Sm::plannedStart() const {
  uint64_t start = kNever;
  for (const PlannedCta &cta : planned)
    for (uint32_t i = 0; i < launch.warpsPerCta; ++i)
      start = std::min(start, cta.cycle + startDelay(cta.linear, i));
  return start;
}

void Sm::moveWarp(SubCore &core, uint32_t from, uint32_t to) {
  if (from == to)
    return;
  core.warps[to] = core.warps[from];
  core.queue.setWake(to, core.queue.wakeOf(from));
  core.queue.setWake(from, kNever);
  core.queue.setPipe(to, core.queue.pipeOf(from));
  core.warps[to]->position = to;
  if (core.last == from)
    core.last = to;
}

void Sm::delist(std::span<const std::unique_ptr<Cta>> leaving) {
  std::array<uint32_t, kSubCores> positions{}; // a bit for each that goes
  for (const std::unique_ptr<Cta> &cta : leaving)
    for (const WarpHandle &warp : cta->warps)
      positions[warp->subCore] |= 1u << warp->position;
  for (uint32_t c = 0; c < kSubCores; ++c) {
    SubCore &core = cores[c];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < core.count; ++i)
      if (!(positions[c] >> i & 1))
        moveWarp(core, i, kept++);
      else if (core.last == i)
        core.last = kNoWarp;
    core.count = kept;
    core.chosen = kNoWarp;
  }
}

void Sm::releaseFinished() {
  if (finishedCtas.empty())
    return;
  size_t firstSpare = spareCtas.size();
  for (std::unique_ptr<Cta> &cta : ctas) {
    auto found = std::find(finishedCtas.begin(), finishedCtas.end(), cta.get());
    if (found == finishedCtas.end() || cta->pendingEvents)
      continue;
    finishedCtas.erase(found);
    if (cta->cluster)
      cta->cluster->members[cta->rank].cta = nullptr;
    departed.push_back(cta->endCycle);
    spareCtas.push_back(std::move(cta));
  }
  std::erase(ctas, nullptr);
  delist(std::span(spareCtas).subspan(firstSpare));
}

} // namespace kperfir::simt
