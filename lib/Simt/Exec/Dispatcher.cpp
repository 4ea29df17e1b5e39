//===- Dispatcher.cpp -----------------------------------------------------===//

#include "Simt/Exec/Dispatcher.h"

#include "Simt/Exec/ClusterGrid.h"

#include <algorithm>
#include <utility>

namespace kperfir::simt {

namespace {
constexpr uint64_t kFirstUntimedSms = 8;
/// Steps in which no CTA without time ends before there is room for twice as
/// many, and before time runs. A CTA in earnest takes a handful.
constexpr unsigned kStepsBeforeMore = 64, kStepsBeforeTime = 2048;
} // namespace

Dispatcher::Dispatcher(const Launch &launch, const Occupancy &occupancy,
                       unsigned detailedWaves, uint64_t smCount,
                       std::vector<std::unique_ptr<Sm>> &sms)
    : launch(launch), occupancy(occupancy), smCount(smCount), sms(sms),
      waveCtas(uint64_t(launch.chip->smCount) * occupancy.ctasPerSm /
               launch.ctasPerCluster() * launch.ctasPerCluster()),
      untimedCtas(chooseUntimed(launch.ctaCount(), waveCtas, detailedWaves)),
      waves(waveCtas, std::max(detailedWaves, 3u)),
      nextUntimed(untimedCtas.begin), untimedLeft(untimedCtas.count()) {}

std::vector<CtaRange> Dispatcher::untimed() const {
  uint64_t size = launch.ctasPerCluster();
  return ctasOfClusters(launch, untimedCtas.begin / size,
                        untimedCtas.end / size);
}

//===----------------------------------------------------------------------===//
// Sampled launches
//===----------------------------------------------------------------------===//

uint64_t Dispatcher::firstUntimedSms() const {
  return std::min(kFirstUntimedSms, untimedCtas.count());
}

uint64_t Dispatcher::wantedUntimedSms() const {
  if (!untimedRun() || nextUntimed == untimedCtas.end || stepsInVain == 0 ||
      stepsInVain % kStepsBeforeMore)
    return 0;
  uint64_t present = sms.size() - smCount;
  uint64_t most = (waveCtas + kCtasPerUntimedSm - 1) / kCtasPerUntimedSm;
  return most > present ? std::min(present, most - present) : 0;
}

bool Dispatcher::timeRuns() const {
  return !untimedRun() || lastMayStart || stepsInVain >= kStepsBeforeTime;
}

std::string Dispatcher::describeStall() const {
  if (!untimedRun() || stepsInVain < kStepsBeforeTime)
    return {};
  return "; of the sampled launch " + std::to_string(untimedLeft) +
         " CTAs without time do not end: if they wait for CTAs further behind "
         "than the " +
         std::to_string(waveCtas) +
         " that the chip has room for, no GPU runs the kernel; else simulate "
         "all of it (waves = 0)";
}

bool Dispatcher::mustPause() {
  if (nextCta != untimedCtas.begin || untimedLeft == 0 || lastMayStart)
    return false;
  if (!untimedHaveBegun)
    stepsInVain = 0; // Patience is with CTAs that run.
  untimedHaveBegun = true;
  return true;
}

void Dispatcher::noteStart(uint64_t place, uint64_t cycle) {
  if (untimedCtas.count())
    waves.start(place < untimedCtas.begin ? place : place - untimedCtas.count(),
                cycle);
}

//===----------------------------------------------------------------------===//
// Placing
//===----------------------------------------------------------------------===//

void Dispatcher::start(uint64_t cycle) {
  if (launch.usesClusters)
    placeClusters(cycle);
  else // One CTA per SM, then a second one, and so on.
    for (uint32_t round = 0; round < occupancy.ctasPerSm; ++round)
      for (size_t i = 0; i < smCount; ++i)
        placeNext(*sms[i], cycle);
  placeUntimed(cycle);
}

/// Gives an SM of the chip the next CTA, if there is one.
void Dispatcher::placeNext(Sm &sm, uint64_t cycle) {
  if (mustPause())
    return waiting.push_back({cycle, &sm});
  if (nextCta == untimedCtas.begin)
    nextCta += untimedCtas.count();
  if (nextCta == launch.ctaCount())
    return;
  noteStart(nextCta, cycle);
  sm.plan(nextCta++, cycle);
}

void Dispatcher::placeUntimed(uint64_t cycle) {
  uint64_t size = launch.ctasPerCluster();
  uint64_t room = (sms.size() - smCount) * kCtasPerUntimedSm;
  uint64_t resident = residentCtas(smCount, sms.size());
  for (; nextUntimed < untimedCtas.end && resident + size <= room;
       nextUntimed += size, resident += size)
    placeCluster(nextUntimed, cycle, smCount, sms.size());
}

void Dispatcher::placeClusters(uint64_t cycle) {
  uint64_t size = launch.ctasPerCluster();
  while (nextCta < launch.ctaCount() &&
         residentCtas(0, smCount) + size <= smCount * occupancy.ctasPerSm) {
    if (mustPause())
      return;
    if (nextCta == untimedCtas.begin)
      nextCta += untimedCtas.count();
    if (nextCta == launch.ctaCount())
      return;
    for (uint64_t i = 0; i < size; ++i)
      noteStart(nextCta + i, cycle);
    placeCluster(nextCta, cycle, 0, smCount);
    nextCta += size;
  }
}

/// Places the CTAs that belong together, of which `first` is the first, each on
/// the SM with the fewest CTAs of those from `begin` up to but without `end`.
void Dispatcher::placeCluster(uint64_t first, uint64_t cycle, size_t begin,
                              size_t end) {
  auto emptiest = [&]() -> Sm & {
    return **std::min_element(
        sms.begin() + static_cast<ptrdiff_t>(begin),
        sms.begin() + static_cast<ptrdiff_t>(end),
        [](const std::unique_ptr<Sm> &a, const std::unique_ptr<Sm> &b) {
          return a->residentCtas() < b->residentCtas();
        });
  };
  if (!launch.usesClusters) {
    emptiest().plan(first, cycle);
    return;
  }
  uint32_t size = launch.ctasPerCluster();
  auto cluster = std::make_shared<Cluster>();
  for (uint32_t rank = 0; rank < size; ++rank) {
    Sm &sm = emptiest();
    Cta &cta = sm.place(ctaOfCluster(launch, first / size, rank), cycle);
    cta.cluster = cluster;
    cta.rank = rank;
    cluster->members.push_back({&sm, &cta});
  }
  clusters.push_back(std::move(cluster));
}

void Dispatcher::replaceFinished(uint64_t end) {
  std::vector<Place> places;
  ++stepsInVain;
  bool untimedFinished = false;
  for (size_t i = 0; i < sms.size(); ++i) {
    for (uint64_t endCycle : sms[i]->departed) {
      if (isUntimed(i)) {
        --untimedLeft;
        stepsInVain = 0;
        untimedFinished = true;
      } else {
        places.push_back({endCycle, sms[i].get()});
      }
    }
    sms[i]->departed.clear();
  }
  if (launch.usesClusters && (untimedFinished || !places.empty()))
    std::erase_if(clusters, [](const std::shared_ptr<Cluster> &cluster) {
      return std::all_of(cluster->members.begin(), cluster->members.end(),
                         [](const ClusterMember &m) { return !m.cta; });
    });
  std::stable_sort(
      places.begin(), places.end(),
      [](const Place &a, const Place &b) { return a.cycle < b.cycle; });
  for (Place &place : places)
    place.cycle = std::max(end, place.cycle + launch.chip->ctaLaunchCycles);
  bool mayGoOn = untimedLeft == 0;
  if (stepsInVain >= kStepsBeforeTime && nextUntimed == untimedCtas.end)
    mayGoOn = lastMayStart = untimedHaveBegun;
  if (launch.usesClusters && (!places.empty() || mayGoOn))
    placeClusters(places.empty() ? end : places.back().cycle);
  for (const Place &place : places)
    if (!launch.usesClusters)
      placeNext(*place.sm, place.cycle);
  if (mayGoOn)
    for (const Place &place : std::exchange(waiting, {}))
      placeNext(*place.sm, std::max(end, place.cycle));
  if (untimedLeft)
    placeUntimed(end);
}

bool Dispatcher::isDone() const {
  return nextCta == launch.ctaCount() && residentCtas(0, sms.size()) == 0;
}

uint64_t Dispatcher::residentCtas(size_t begin, size_t end) const {
  uint64_t count = 0;
  for (size_t i = begin; i < end; ++i)
    count += sms[i]->residentCtas();
  return count;
}

} // namespace kperfir::simt
