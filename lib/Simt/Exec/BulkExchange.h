//===- BulkExchange.h - Executes bulk copies at the exchange --------------===//
//
// One object per copy: finds the memory that it names, moves the bytes and says
// when they are there. What a wrong copy does wrong is reported at the
// instruction that issued it.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_BULKEXCHANGE_H
#define KPERFIR_SIMT_EXEC_BULKEXCHANGE_H

#include "Simt/Exec/Bulk.h"
#include "Simt/Exec/Sm.h"
#include "Simt/Exec/TensorMap.h"
#include "Simt/Timing/MemorySystem.h"

namespace kperfir::simt {

/// Sizes and addresses are multiples of it.
inline constexpr uint32_t kBulkUnitBytes = 16;

class BulkExchange {
public:
  BulkExchange(const Launch &launch, MemorySystem &system, Sm &sm,
               const GlobalRequest &request);

  /// Executes it; `earliest` is where the SMs go on.
  BulkTimes run(uint64_t earliest);

private:
  /// `bytes` bytes of one row of a box, or of a copy without a tensor map.
  struct Row {
    uint32_t shared = 0; // before swizzling
    uint64_t global = 0;
    uint32_t bytes = 0;
    uint32_t validBegin = 0, validEnd = 0; // the part inside of the tensor
  };

  void loadMap();
  void checkShape();
  template <class Visit> void forEachRow(Visit visit) const;
  template <class Visit> void forEachTensorRow(Visit visit) const;
  Row tensorRow(const int64_t *coordinate, uint32_t index) const;
  uint32_t totalBytes() const;

  void load(uint64_t earliest);
  void store();
  void reduce();
  void toCluster(uint64_t earliest);
  void prefetch();

  /// A part of shared memory of some CTA of the cluster.
  struct Place {
    ClusterMember member;
    uint32_t offset = 0;
  };
  Place placeOf(uint32_t address, uint32_t bytes, const char *what) const;
  void checkMbarrier(const Place &place) const;
  const uint8_t *readable(const Place &place, uint32_t bytes) const;
  uint8_t *global(uint64_t address, uint64_t bytes, bool writes);
  void copyRowIn(const Row &row, uint8_t *shared, uint32_t base);
  void copyRowOut(const Row &row, const uint8_t *shared, uint8_t *to) const;
  void deliver(const Place &to, uint64_t cycle);

  /// Accounts for [address, address + bytes) of global memory.
  void touch(uint64_t address, uint32_t bytes);
  void flush();
  bool touchesL2() const { return !request.free || request.warms; }

  [[noreturn]] void fail(ErrorKind kind, const std::string &message,
                         std::optional<uint64_t> address = std::nullopt) const;

  const Launch &launch;
  const Chip &chip;
  MemorySystem &system;
  Sm &sm;
  const GlobalRequest &request;
  const BulkCopyShape &shape;
  BulkOperands operands;
  TensorMap map;
  const GlobalRange *range = nullptr; // of the last access
  // The line that is being gathered.
  uint64_t line = 0;
  uint8_t sectors = 0;
  uint64_t begin = 0; // of the first request
  uint64_t requestedBytes = 0;
  BulkTimes times;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_BULKEXCHANGE_H
