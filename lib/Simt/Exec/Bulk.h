//===- Bulk.h - A bulk copy on its way from its SM to the exchange --------===//

#ifndef KPERFIR_SIMT_EXEC_BULK_H
#define KPERFIR_SIMT_EXEC_BULK_H

#include "Simt/Exec/Program.h"

namespace kperfir::simt {

/// What a queued bulk copy carries (RequestQueue::data): its operands, offsets
/// added.
struct BulkOperands {
  uint64_t map = 0; // address of the tensor map, or the one in global memory
  uint32_t shared = 0;
  uint32_t mbarrier = 0;
  uint32_t source = 0;
  uint32_t bytes = 0;
  uint32_t ctaMask = 0; // 0: only the CTA that `shared` is in
  uint32_t lane = 0;
  int32_t coordinate[5] = {};
};

/// cp.async.bulk between two commit_group, of one warp.
struct BulkGroup {
  uint32_t unresolved = 0; // copies whose completion is not known yet
  uint64_t readDone = 0;   // their sources may be written again
  uint64_t done = 0;
};

/// What a bulk copy or an st.async fills, and the mbarrier that it tells.
struct BulkFill {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  uint32_t mbarrier = 0;
  bool isReadable = false; // before it has ended: a red.async
};

/// When one copy is through.
struct BulkTimes {
  uint64_t readDone = 0;
  uint64_t done = 0;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_BULK_H
