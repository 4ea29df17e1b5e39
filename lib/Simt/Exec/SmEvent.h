//===- SmEvent.h - What an SM has to do at a later cycle ------------------===//

#ifndef KPERFIR_SIMT_EXEC_SMEVENT_H
#define KPERFIR_SIMT_EXEC_SMEVENT_H

#include "Simt/Exec/Bulk.h"
#include "Simt/Exec/Cta.h"

#include <cstdint>

namespace kperfir::simt {

/// Something that happens to a CTA of an SM at a later cycle: copies are
/// complete, a bulk copy has filled its place, another CTA arrives.
struct SmEvent {
  uint64_t cycle;
  uint64_t order; // ties are resolved by the order of creation
  Warp *warp;
  uint32_t mbarrier;
  uint32_t arrivals;
  uint64_t group;     // copies up to here are complete: all of older groups,
  size_t spans;       // and so many of this one
  Cta *cta = nullptr; // of a bulk copy, which has no warp
  BulkFill fill;
  /// Of an arrival from another CTA: what arrives, and who sent it.
  const MicroOp *remote = nullptr;
  uint32_t senderCta = 0, senderWarp = 0, senderLane = 0;
  bool operator<(const SmEvent &other) const {
    return cycle != other.cycle ? cycle > other.cycle : order > other.order;
  }
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_SMEVENT_H
