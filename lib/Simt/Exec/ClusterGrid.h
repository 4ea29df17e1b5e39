//===- ClusterGrid.h - Where the clusters of a launch lie in its grid -----===//
//
// CTAs are placed in the order of clusters, and in each in the order of ranks.
// Without clusters, and with clusters along x only, that is the order of the
// grid.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_CLUSTERGRID_H
#define KPERFIR_SIMT_EXEC_CLUSTERGRID_H

#include "Simt/Exec/Launch.h"
#include "Simt/Exec/Sampling.h"

#include <cstdint>
#include <vector>

namespace kperfir::simt {

/// Linear CTA of the grid that has `rank` in a cluster.
uint64_t ctaOfCluster(const Launch &launch, uint64_t cluster, uint32_t rank);
/// Linear CTAs of the clusters from `first` up to but without `end`: in order,
/// as few ranges as can be.
std::vector<CtaRange> ctasOfClusters(const Launch &launch, uint64_t first,
                                     uint64_t end);
/// Fills in the special registers of clusters.
void describeCluster(const Launch &launch, WarpSpecials &specials);

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_CLUSTERGRID_H
