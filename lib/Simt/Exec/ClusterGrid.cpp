//===- ClusterGrid.cpp ----------------------------------------------------===//

#include "Simt/Exec/ClusterGrid.h"

#include <algorithm>
#include <array>

namespace kperfir::simt {

/// Clusters along each dimension of the grid.
static std::array<uint32_t, 3> clusterExtents(const Launch &launch) {
  return {launch.grid[0] / launch.cluster[0],
          launch.grid[1] / launch.cluster[1],
          launch.grid[2] / launch.cluster[2]};
}

uint64_t ctaOfCluster(const Launch &launch, uint64_t cluster, uint32_t rank) {
  std::array<uint32_t, 3> extents = clusterExtents(launch);
  uint64_t at[3] = {cluster % extents[0], cluster / extents[0] % extents[1],
                    cluster / extents[0] / extents[1]};
  for (unsigned i = 0; i < 3; ++i) {
    at[i] = at[i] * launch.cluster[i] + rank % launch.cluster[i];
    rank /= launch.cluster[i];
  }
  return at[0] + launch.grid[0] * (at[1] + launch.grid[1] * at[2]);
}

std::vector<CtaRange> ctasOfClusters(const Launch &launch, uint64_t first,
                                     uint64_t end) {
  const auto &size = launch.cluster;
  uint64_t alongX = clusterExtents(launch)[0];
  std::vector<CtaRange> rows;
  while (first < end) {
    // Neighbours along x: a row of CTAs for each y and z of the cluster.
    uint64_t last = std::min(end, (first / alongX + 1) * alongX);
    for (uint32_t row = 0; row < size[1] * size[2]; ++row) {
      uint64_t begin = ctaOfCluster(launch, first, row * size[0]);
      rows.push_back({begin, begin + (last - first) * size[0]});
    }
    first = last;
  }
  std::ranges::sort(rows, {}, &CtaRange::begin);
  std::vector<CtaRange> ranges;
  for (const CtaRange &row : rows)
    if (!ranges.empty() && ranges.back().end == row.begin)
      ranges.back().end = row.end;
    else
      ranges.push_back(row);
  return ranges;
}

void describeCluster(const Launch &launch, WarpSpecials &specials) {
  std::array<uint32_t, 3> extents = clusterExtents(launch);
  specials.clusterCtarank = 0;
  for (unsigned i = 3; i-- > 0;) {
    specials.clusterid[i] = specials.ctaid[i] / launch.cluster[i];
    specials.nclusterid[i] = extents[i];
    specials.clusterCtaid[i] = specials.ctaid[i] % launch.cluster[i];
    specials.clusterNctaid[i] = launch.cluster[i];
    specials.clusterCtarank =
        specials.clusterCtarank * launch.cluster[i] + specials.clusterCtaid[i];
  }
  specials.clusterNctarank = launch.ctasPerCluster();
}

} // namespace kperfir::simt
