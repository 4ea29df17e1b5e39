//===- Sm.h - One streaming multiprocessor --------------------------------===//
//
// Issues instructions of its resident CTAs and accounts for their time. Knows
// nothing of other SMs. Between two exchanges (Machine) it runs alone, for at
// most the cycles that an answer from L2 takes: whatever it asks of global
// memory is queued as a GlobalRequest, and answered at the exchange.
//
// Members are spread over files by family: Sm.cpp schedules and issues,
// Residency places CTAs, Functional runs CTAs without time, the others execute.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_EXEC_SM_H
#define KPERFIR_SIMT_EXEC_SM_H

#include "Simt/Error.h"
#include "Simt/Exec/Cta.h"
#include "Simt/Exec/EventLog.h"
#include "Simt/Exec/GlobalRequest.h"
#include "Simt/Exec/IssueQueue.h"
#include "Simt/Exec/Launch.h"
#include "Simt/Exec/Mbarrier.h"
#include "Simt/Exec/SmEvent.h"
#include "Simt/Exec/SmReports.h"
#include "Simt/Exec/WarpStorage.h"
#include "Simt/Timing/Caches.h"
#include "Simt/Timing/Coalescer.h"

#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

namespace kperfir::simt {

inline constexpr uint32_t kMaxWarpsPerSubCore = kMaxWarpsPerSm / kSubCores;
static_assert(kMaxWarpsPerSubCore <= IssueQueue::kCapacity);

class Sm {
public:
  /// Its warps are those of `storage` from `firstWarp` on. An SM without L1 is
  /// none of the chip's: it runs its CTAs without time.
  enum class Mode : uint8_t { Detailed, Untimed };
  Sm(const Launch &launch, uint32_t id, Mode mode, const Cache &emptyL1,
     const WarpStorage &storage, size_t firstWarp);

  /// Makes a CTA resident; its warps may issue from `cycle` on.
  Cta &place(uint64_t linearCta, uint64_t cycle);
  /// The same, at the beginning of the next run(), on its host thread.
  void plan(uint64_t linearCta, uint64_t cycle) {
    planned.push_back({linearCta, cycle});
  }
  /// Issues everything that can issue before `end`. Errors are kept in `error`.
  void run(uint64_t end);
  /// Asks the host for what run(end) will touch. With many resident warps the
  /// host's caches hold only those of a few SMs.
  void prefetch(uint64_t end) const;
  /// Cycle of the next thing to do; kNever if nothing can happen by itself.
  uint64_t nextCycle() const;
  /// The same for an SM without time: it has something to do.
  bool canRunUntimed() const;

  // --- For the exchange ---
  RequestQueue requests;
  /// What an SM without time has loaded past the queue; L2 is to have it.
  std::vector<LineAccess> warmed;
  /// What has been written since the last exchange; null: anything. Requests
  /// that come prepared are in RequestQueue::prepared.
  std::vector<const GlobalRange *> written;
  /// The exchange has executed the prepared requests: their consequences here,
  /// where time goes on at `end`. Once for each exchange: the second time does
  /// nothing.
  void takeAnswers(uint64_t end);
  /// A request has been answered at `done`.
  void answer(GlobalRequest &request, uint64_t done);
  /// The copies before a cp.async.mbarrier.arrive are resolved: when it
  /// arrives.
  uint64_t answerArrive(const GlobalRequest &request, uint64_t earliest);
  /// Takes the answers, lets warps go on that have waited for them, and empties
  /// the queue.
  void finishExchange(uint64_t end);
  /// A bulk copy has been executed.
  void answerBulk(const GlobalRequest &request, const BulkTimes &times,
                  uint64_t earliest);
  /// Shared memory of `cta`, which is here, will be filled at `cycle`.
  void scheduleFill(Cta &cta, const BulkFill &fill, uint64_t cycle);
  /// The CTA that an address in shared memory belongs to; none if it does not
  /// exist.
  ClusterMember memberAt(const Warp &warp, uint32_t address);
  /// Executes an access to other CTAs of the cluster, and answers it.
  void executeRemote(GlobalRequest &request, uint64_t earliest);
  /// An mbarrier of `cta`, which is here, will change at `cycle`, as lane
  /// `lane` of `request` wants.
  void scheduleArrival(Cta &cta, const GlobalRequest &request, unsigned lane,
                       uint32_t count, uint64_t cycle);
  /// `warp` may not write, at `pc`, what a product of `cta` still reads.
  void checkProductOperands(const Cta &cta, const Warp &warp, uint32_t pc,
                            const SharedWrite &write) const;
  /// Whether its warps have executed so many barrier.cluster.arrive; `last`
  /// becomes the cycle of the last one if that is later.
  static bool hasArrivedAtCluster(const Cta &cta, uint64_t barriers,
                                  uint64_t &last);
  void releaseFromCluster(Cta &cta, uint64_t cycle);
  /// Sectors asked for by loads: read by the exchange, which fills them.
  Cache l1;
  uint64_t portFree = 0; // from L2 to this SM
  uint64_t tmaFree = 0;  // its unit for bulk copies
  /// CTAs that have finished make room, and their ends are added to `departed`.
  void releaseFinished();
  /// Emptied by who places CTAs.
  std::vector<uint64_t> departed;

  uint32_t residentCtas() const {
    return static_cast<uint32_t>(ctas.size() + planned.size());
  }
  /// Throws when a CTA can never go on.
  void checkDeadlock() const;
  [[noreturn]] void fail(const Warp &warp, uint32_t pc,
                         const Fault &fault) const;

  /// The kernel's name, and where the instruction comes from.
  ErrorSite siteOf(uint32_t pc) const;

  const uint32_t id;
  SmStatistics statistics;
  EventLog log;
  std::vector<PrintedText> printed;
  std::optional<Error> error;
  uint64_t errorCycle = 0;
  uint64_t lastCycle = 0; // completion of the last thing that ended

private:
  static constexpr uint32_t kNoWarp = IssueQueue::kNoWarp;
  struct SubCore {
    IssueQueue queue;       // by age (or by the seed's order)
    uint64_t wgmmaFree = 0; // its tensor core, for wgmma
    /// Position of the warp that issues next, if that is known.
    uint32_t chosen = kNoWarp;
    /// Position of the warp that issued last. Greedy: it goes first.
    uint32_t last = kNoWarp;
    uint32_t count = 0;
    std::array<Warp *, kMaxWarpsPerSubCore> warps{};
  };
  struct Addresses {
    alignas(64) uint64_t lane[kWarpSize];
  };

  // Sm.cpp
  void issueUntil(uint64_t end);
  void issueFrom(uint32_t index);
  /// Issues all that is free and can: it takes no slot, so it waits for none,
  /// and leaves the order of the warps as it was.
  void issueGhosts(SubCore &core);
  /// The warp of the sub-core that issues now, or kNoWarp: then it is known
  /// when to look again.
  uint32_t chooseNow(uint32_t index);
  /// Sets when the sub-core goes on, after an issue.
  void planNext(uint32_t index);
  void issue(SubCore &core, Warp &warp, const OpCost &cost);
  void issueAndExecute(Warp &warp, const OpCost &cost);
  /// What the op writes may be read from `cycle` on.
  void setReady(const Warp &warp, const OpCost &cost, uint64_t cycle) const;
  /// When the scoreboard lets the warp issue the op.
  uint64_t wakeOf(const Warp &warp, const OpCost &cost) const;
  void execute(Warp &warp, const MicroOp &op, LaneMask active);
  /// Executes what has issued before `end`. An instruction that only its own
  /// warp can see is executed together with those that follow it, when one
  /// comes that others can see: the host finds the registers of one warp in its
  /// nearest cache, but not those of all warps in turn.
  void executePending(Warp &warp, uint32_t end);
  void countThreads(const OpCost &cost, LaneMask active);
  void executeControl(Warp &warp, const MicroOp &op, LaneMask active);
  void updateWake(Warp &warp);
  /// When the load/store unit lets in the next instruction: issue stalls while
  /// it is too far behind.
  uint64_t lsuReady() const {
    return lsuFree > chip.lsuQueueCycles ? lsuFree - chip.lsuQueueCycles : 0;
  }
  void setWake(Warp &warp, uint64_t cycle);
  void setReady(Warp &warp, const MicroOp &op, uint64_t cycle);
  void exitLanes(Warp &warp, LaneMask lanes);
  void finish(Warp &warp);
  /// Fills in what is the same for every CTA.
  void describe(Warp &warp, uint32_t index) const;
  void initialise(Cta &cta, uint64_t linear, uint64_t cycle);
  uint32_t pickSubCore(const Warp &warp) const;
  void enlist(Warp &warp, uint64_t cycle);
  /// By the launch's seed: another interleaving, not only another order.
  uint64_t startDelay(uint64_t linearCta, uint32_t warpIndex) const;
  /// When the first warp of those that are planned may issue.
  uint64_t plannedStart() const;
  void delist(std::span<const std::unique_ptr<Cta>> leaving);
  static void moveWarp(SubCore &core, uint32_t from, uint32_t to);
  void logIssue(const Warp &warp, const MicroOp &op, uint32_t pc);
  void logComplete(uint64_t cycle) {
    if (currentLog != kNoLog)
      log.complete[currentLog] = cycle;
  }
  void logUnits(unsigned units) {
    if (currentLog != kNoLog)
      log.units[currentLog] += units;
  }
  bool currentIsFree() const { return issuingFree; }
  /// Takes the load/store unit for `cycles`; returns when it begins.
  uint64_t occupyLsu(uint64_t cycles);
  Addresses addressesOf(const Warp &warp, const MicroOp &op) const;

  // Functional.cpp
  void runUntimed(uint64_t end);
  void runUntimed(Warp &warp);
  /// After `op`: the warp needs answers of the exchange before it goes on.
  bool mustWait(Warp &warp, const MicroOp &op);
  /// Since the last exchange. No range: anything may have been written.
  void noteUntimedWrite(const GlobalRange *range);
  /// This SM has written nothing of the range since the last exchange.
  bool isReadableUntimed(const GlobalRange *range) const;
  void noteWarmed(const LineList &list);
  /// Loads at once, if that is what the exchange would load.
  bool loadUntimed(Warp &warp, const MicroOp &op, LaneMask active,
                   const Addresses &addresses, const GlobalRange *range);

  // LoadStore.cpp
  void executeMemory(Warp &warp, const MicroOp &op, LaneMask active);
  void load(Warp &warp, const MicroOp &op, LaneMask active);
  void store(Warp &warp, const MicroOp &op, LaneMask active);
  void loadCluster(Warp &warp, const MicroOp &op, LaneMask active,
                   Addresses &addresses);
  void storeCluster(Warp &warp, const MicroOp &op, LaneMask active,
                    Addresses &addresses);
  void accessLocal(Warp &warp, const MicroOp &op, LaneMask active,
                   const Addresses &addresses);
  void loadParam(Warp &warp, const MicroOp &op, LaneMask active,
                 const Addresses &addresses);
  void fence(Warp &warp, const MicroOp &op);
  void checkAlignment(const Warp &warp, const MicroOp &op, LaneMask active,
                      const Addresses &addresses, unsigned bytes) const;

  // SharedAccess.cpp
  void loadShared(Warp &warp, const MicroOp &op, LaneMask active,
                  const Addresses &addresses);
  void storeShared(Warp &warp, const MicroOp &op, LaneMask active,
                   const Addresses &addresses);
  /// The shared memory that the lanes of an access touch lies in [begin, end).
  struct SharedSpan {
    uint32_t begin, end;
  };
  /// Offsets in shared memory, checked. `bytes` per lane.
  SharedSpan sharedOffsets(const Warp &warp, LaneMask active,
                           const Addresses &addresses, unsigned bytes,
                           uint32_t *offsets) const;
  void checkWritten(const Warp &warp, LaneMask active, const uint32_t *offsets,
                    unsigned bytes, SharedSpan span) const;
  [[noreturn]] void failUnwritten(const Warp &warp, unsigned lane,
                                  uint32_t offset, unsigned bytes) const;
  unsigned wavefrontsOf(const uint32_t *offsets, unsigned bytes,
                        LaneMask active) const;
  uint64_t accountShared(unsigned wavefronts, unsigned best);

  // GlobalAccess.cpp
  void loadGlobal(Warp &warp, const MicroOp &op, LaneMask active,
                  const Addresses &addresses);
  void storeGlobal(Warp &warp, const MicroOp &op, LaneMask active,
                   const Addresses &addresses);
  /// Cycle at which L1 has all sectors; kUnresolved when some come from L2.
  /// Makes room for those.
  uint64_t lookUpL1(const LineList &list);
  void dropFromL1(const LineList &list);
  /// L1 may hold lines of the range: most kernels do not read what they write.
  bool mayBeInL1(const GlobalRange *range) const;
  void noteInL1(const GlobalRange *range);
  GlobalRequest &queue(Warp &warp, const MicroOp &op, GlobalRequest::Kind kind,
                       LaneMask active, uint64_t cycle);

  // Requests.cpp
  /// At the end of a run: prepares all requests up to the first one that needs
  /// the exchange for what it does here.
  void prepareRequests();
  void sortRequests();
  void noteWrite(const GlobalRequest &request);
  bool prepare(uint32_t entry);
  /// Lines that the request reads: the way through L1 and the SM's port.
  void prepareReads(const GlobalRequest &request, const LineList &list);
  /// When all that a prepared read asked for is here.
  uint64_t finishReads(const GlobalRequest &request,
                       const PreparedRequest &prepared);

  // Atomic.cpp
  void atomic(Warp &warp, const MicroOp &op, LaneMask active);
  void atomicShared(Warp &warp, const MicroOp &op, LaneMask active,
                    const Addresses &addresses, const uint8_t *operands);

  // Barrier.cpp
  void executeBarrier(Warp &warp, const MicroOp &op, LaneMask active);
  /// All lanes that are left must execute an `.aligned` barrier.
  void checkAligned(const Warp &warp, const MicroOp &op, LaneMask active) const;
  void arriveAtBarrier(Warp &warp, const MicroOp &op, LaneMask active);
  bool releaseIfComplete(Cta &cta, unsigned id);
  void releaseForExit(Cta &cta);
  void block(Warp &warp, WarpState state);
  void unblock(Warp &warp, uint64_t cycle);

  // Mbarrier.cpp
  void mbarrier(Warp &warp, const MicroOp &op, LaneMask active);
  /// Generic ones lie in the window of shared memory.
  void checkInShared(const Warp &warp, const MicroOp &op, LaneMask active,
                     const Addresses &addresses) const;
  void updateMbarrier(Warp &warp, const MicroOp &op, unsigned lane,
                      uint64_t address);
  void waitMbarrier(Warp &warp, const MicroOp &op, LaneMask active,
                    const Addresses &addresses);
  uint64_t readMbarrier(const Warp &warp, unsigned lane, uint64_t address,
                        bool initialised) const;
  void writeMbarrier(Cta &cta, uint32_t offset, uint64_t word);
  void arriveMbarrier(Cta &cta, uint32_t offset, uint32_t arrivals);
  void addPendingArrivals(Cta &cta, uint32_t offset, uint32_t arrivals);
  void completeTransactions(Cta &cta, uint32_t offset, uint32_t bytes);
  /// Writes it, and ends its phase if that needs nothing more.
  void settleMbarrier(Cta &cta, uint32_t offset, Mbarrier barrier);
  /// Everything but init, inval and waits. What is wrong with it, or null.
  const char *applyToMbarrier(Cta &cta, const MicroOp &op, uint32_t offset,
                              uint32_t count);
  void wakeWaiters(Cta &cta, uint32_t offset);

  // AsyncCopy.cpp
  void executeAsync(Warp &warp, const MicroOp &op, LaneMask active);
  void copyAsync(Warp &warp, const MicroOp &op, LaneMask active);
  void arriveAfterCopies(Warp &warp, const MicroOp &op, LaneMask active);
  /// Cycle at which all groups below `serial` are complete.
  uint64_t groupsDone(const Warp &warp, uint64_t serial) const;
  /// Makes the data of groups below `serial` readable and forgets them.
  void retireGroups(Warp &warp, uint64_t serial);
  void schedule(SmEvent event, uint64_t cycle);
  void runEvents(uint64_t cycle);

  // Bulk.cpp
  void executeBulk(Warp &warp, const MicroOp &op, LaneMask active);
  void bulkCopy(Warp &warp, const MicroOp &op, LaneMask active);
  void waitBulkGroup(Warp &warp, const MicroOp &op);
  /// Cycle at which what the warp waits for is there, or kUnresolved.
  uint64_t bulkGroupsDone(const Warp &warp) const;
  void retireBulkGroups(Warp &warp);
  void finishFill(const SmEvent &event);
  void tensormapReplace(Warp &warp, const MicroOp &op, LaneMask active);
  void tensormapCopy(Warp &warp, const MicroOp &op, LaneMask active);

  // Cluster.cpp
  void clusterBarrier(Warp &warp, const MicroOp &op, LaneMask active);
  /// Lanes that address another CTA. Addresses of the CTA's own become offsets.
  LaneMask splitRemote(const Warp &warp, LaneMask active,
                       Addresses &addresses) const;
  void accessRemote(Warp &warp, const MicroOp &op, LaneMask lanes,
                    const Addresses &addresses,
                    std::span<const uint8_t> operands);
  void storeRemote(Warp &warp, const MicroOp &op, LaneMask lanes,
                   const Addresses &addresses);
  /// st.async, red.async: the CTA's own shared memory or that of another one.
  void accessAsync(Warp &warp, const MicroOp &op, LaneMask active);
  /// An mbarrier of the CTA that it has written to will be told.
  void completeAsync(const GlobalRequest &request, unsigned lane,
                     uint32_t offset, uint64_t cycle);
  void updateRemoteMbarrier(Warp &warp, const MicroOp &op, LaneMask lanes,
                            const Addresses &addresses);
  uint8_t *remoteBytes(const GlobalRequest &request, unsigned lane,
                       unsigned bytes, ClusterMember &member);
  void applyRemoteAtomic(const MicroOp &op, uint8_t *memory,
                         const uint8_t *operand, uint8_t *old) const;
  void finishArrival(const SmEvent &event);

  // Wgmma.cpp
  void wgmma(Warp &warp, const MicroOp &op, LaneMask active);
  void wgmmaGroup(Warp &warp, const MicroOp &op, LaneMask active);
  ProductInFlight::Operand gatherWgmma(const Warp &warp, uint64_t descriptor,
                                       bool isTransposed, unsigned first,
                                       unsigned count, uint8_t *to) const;

  // WgmmaChecks.cpp
  /// An op marked kMeetsProduct must not use what a product still uses.
  void checkProductRegisters(const Warp &warp, const MicroOp &op) const;
  /// An op marked kUnfenced has touched its registers, or has moved them.
  void noteUnfenced(Warp &warp, const MicroOp &op) const;
  /// What a product gets in registers has been fenced. From now on those are
  /// its own.
  void checkProductFences(Warp &warp, const MicroOp &op,
                          bool accumulates) const;
  std::string describe(const ProductInFlight &product) const;
  /// Lanes are about to write to shared memory, in the generic proxy.
  void noteGenericWrite(const Warp &warp, LaneMask active,
                        const uint32_t *offsets, unsigned bytes) const;

  // Matrix.cpp
  void executeMatrix(Warp &warp, const MicroOp &op, LaneMask active);
  void loadMatrix(Warp &warp, const MicroOp &op);
  void storeMatrix(Warp &warp, const MicroOp &op);
  SharedSpan matrixRows(const Warp &warp, const MicroOp &op,
                        uint32_t *offsets) const;
  void multiply(Warp &warp, const MicroOp &op) const;

  // Syscall.cpp
  void executeSyscall(Warp &warp, const MicroOp &op, LaneMask active);
  std::string readString(const Warp &warp, unsigned lane,
                         uint64_t address) const;
  std::string formatPrintf(const Warp &warp, unsigned lane, uint64_t format,
                           uint64_t arguments) const;
  const uint8_t *resolveBytes(const Warp &warp, unsigned lane, uint64_t address,
                              unsigned bytes) const;

  const Launch &launch;
  const Program &program;
  const OpCost *const costs;
  const Chip &chip;
  const WarpStorage &storage;
  const bool isUntimed;
  const bool usesAsyncProxy; // bulk copies or wgmma touch shared memory
  size_t nextWarp;           // in `storage`
  uint64_t now = 0;
  uint64_t runEnd = 0;          // of the current step
  uint32_t currentLog = kNoLog; // entry of the instruction that is issuing
  bool issuingFree = false;     // it takes no time
  uint64_t lsuFree = 0;
  /// Per sub-core: nothing can issue before.
  std::array<uint64_t, kSubCores> coreNext;
  std::array<SubCore, kSubCores> cores;
  std::vector<std::unique_ptr<Cta>> ctas;
  std::vector<std::unique_ptr<Cta>> spareCtas;
  struct PlannedCta {
    uint64_t linear;
    uint64_t cycle;
  };
  std::vector<PlannedCta> planned;
  std::vector<const Cta *> finishedCtas; // resident ones without warps
  std::priority_queue<SmEvent> events;
  uint64_t eventCount = 0;
  std::vector<SmEvent> unresolvedEvents; // since the last exchange
  std::vector<Warp *> answered;
  bool hasAnswers = false; // of the prepared requests
  std::vector<const GlobalRange *> l1Ranges;
  bool l1HasAny = false; // of more ranges than the list names
  std::vector<const GlobalRange *> untimedWrites;
  bool untimedWritesAny = false;
  /// Range of the last access of each op: most ops stay in one tensor.
  std::vector<const GlobalRange *> rangeHint;
};

} // namespace kperfir::simt

#endif // KPERFIR_SIMT_EXEC_SM_H
