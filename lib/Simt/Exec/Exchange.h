//===- Exchange.h - Answers what SMs have asked of global memory ----------===//
//
// Between two runs of the SMs: executes their requests in the order of cycle,
// SM, queue. This is the only place where global memory changes and where SMs
// meet, and it is one thread: data and time do not depend on host threads.
// Most requests come prepared (GlobalRequest.h): only L2 and what they write is
// left to do. SMs take the answers afterwards (Sm::finishExchange).
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_EXCHANGE_H
#define KPERFIR_SIMT_EXEC_EXCHANGE_H

#include "Simt/Exec/Sm.h"
#include "Simt/Timing/MemorySystem.h"

#include <memory>
#include <vector>

namespace kperfir::simt {

class Exchange {
public:
  Exchange(const Launch &launch, MemorySystem &system)
      : launch(launch), program(*launch.program), chip(*launch.chip),
        system(system), rangeHint(launch.program->ops.size(), nullptr) {}

  /// Executes everything that was asked before `end`, where the next run
  /// begins. Throws Error for a wrong access; the first in the order of
  /// execution, also considering the errors that SMs have kept.
  void run(std::vector<std::unique_ptr<Sm>> &sms, uint64_t end);

private:
  struct Entry {
    uint64_t cycle;
    Sm *sm;
    uint32_t index; // in RequestQueue::order and, if it is that long, prepared
  };

  /// Brings `order`, which has the entries of each SM in turn, into the order
  /// of cycle, SM, queue.
  void sortByCycle();
  /// Asks the host for what the access to L2 at `ahead` will touch, and moves
  /// on: one for each that is executed, since many at once are of no use.
  void prefetchNext();
  /// What the SM's requests may write.
  void noteWrites(const Sm &sm);
  bool isWritten(const GlobalRange *range) const;
  void executePrepared(Sm &sm, const PreparedRequest &prepared);
  void execute(Sm &sm, GlobalRequest &request, uint64_t end);
  /// The data of a request, in its place in the order.
  void reload(GlobalRequest &request);
  void moveStore(Sm &sm, const GlobalRequest &request);
  void moveAtomic(Sm &sm, const GlobalRequest &request);
  void moveAsync(Sm &sm, const GlobalRequest &request);
  void load(Sm &sm, GlobalRequest &request);
  void store(Sm &sm, GlobalRequest &request);
  void atomic(Sm &sm, GlobalRequest &request);
  void copyAsync(Sm &sm, GlobalRequest &request);
  /// Throws when a lane is outside of every range, or writes a read-only one.
  void check(Sm &sm, const GlobalRequest &request, LaneMask lanes, bool writes);
  void collectLines(const GlobalRequest &request, LaneMask lanes,
                    LineList &list);
  /// Fills `list` with what the lanes touch; false if that takes no time.
  bool takesTime(const GlobalRequest &request, LaneMask lanes, bool writes,
                 LineList &list);
  /// The SM's L1 line for the answer, or none.
  Cache::Line findInL1(Sm &sm, const GlobalRequest &request, uint64_t line);
  uint64_t readLines(Sm &sm, const GlobalRequest &request,
                     const LineList &list);

  const Launch &launch;
  const Program &program;
  const Chip &chip;
  MemorySystem &system;
  std::vector<const GlobalRange *> rangeHint;
  const GlobalRange *common =
      nullptr; // holds all lanes of the current request, or null
  std::vector<Entry> order;
  struct {
    size_t entry = 0;    // in `order`
    uint32_t access = 0; // of that entry
  } ahead;
  /// Ranges that requests of this step write, or anything.
  std::vector<const GlobalRange *> written;
  bool writtenAnywhere = false;
  // Of sortByCycle.
  std::vector<Entry> sorted;
  std::vector<uint32_t> places;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_EXCHANGE_H
