//===- InsertRegions.cpp - Put records around the operations of a kernel --===//
//
// Owns where records go and how regions are named. Which operations deserve a
// region is RegionKinds; which line they come from is SourceNames.
//
//===----------------------------------------------------------------------===//

#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/RegionEnds.h"
#include "passes/RegionKinds.h"
#include "passes/RegionPolicy.h"
#include "passes/SourceNames.h"
#include "passes/Unverified.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_INSERTREGIONS
#include "Passes.h.inc"

namespace {

class Inserter {
public:
  Inserter(const RegionPolicy &policy, uint32_t budget,
           FunctionOpInterface kernel)
      : policy(policy), budget(budget), kernel(kernel) {}

  void run() {
    instrumentBody(kernel.getFunctionBody(), policy);
    recordKernel(kernel.getFunctionBody());
  }

  /// What a reader of the records has to know.
  ArrayRef<std::string> getNotes() const { return notes; }

private:
  void record(OpBuilder &builder, Location loc, Edge edge, StringRef name,
              Kind kind, StringRef origin) {
    StringAttr originAttr;
    if (edge == Edge::Start)
      originAttr = builder.getStringAttr(origin);
    RecordOp::create(builder, loc, edge, name, kind, originAttr);
  }

  /// Puts a region of `kind` around everything from `first` to `last`.
  void enclose(Operation *first, Operation *last, Kind kind) {
    enclose(first, last, kind, first->getLoc(),
            first->getName().getStringRef());
  }

  void enclose(Operation *first, Operation *last, Kind kind, Location loc,
               StringRef origin) {
    std::string name = names.make(stringifyKind(kind), loc);
    OpBuilder builder(first);
    record(builder, loc, Edge::Start, name, kind, origin);
    builder.setInsertionPointAfter(last);
    record(builder, last->getLoc(), Edge::End, name, kind, origin);
  }

  /// The region of the kernel, or of what a partition does of it.
  void recordKernel(Region &region) {
    if (!policy.contains(Kind::Kernel))
      return;
    StringRef name = kernel.getName(), origin = "tt.func";
    Location loc = kernel.getLoc();
    OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
    record(builder, loc, Edge::Start, name, Kind::Kernel, origin);
    for (Block &block : region) {
      if (block.getNumSuccessors() != 0)
        continue;
      builder.setInsertionPoint(block.getTerminator());
      record(builder, loc, Edge::End, name, Kind::Kernel, origin);
    }
  }

  /// Returns the last operation of the loop: itself, or its end record.
  Operation *recordLoop(Operation *loop) {
    bool isRegion = policy.contains(Kind::Loop);
    if (isRegion)
      enclose(loop, loop, Kind::Loop);
    // Without the loop's end, nothing would close the last iteration.
    std::string iteration;
    if (isRegion && policy.contains(Kind::Iteration))
      iteration = names.make(stringifyKind(Kind::Iteration), loop->getLoc());
    RegionPolicy trimmed = trim(loop, policy);
    for (Region &region : loop->getRegions())
      instrumentBody(region, trimmed);
    if (!iteration.empty()) {
      Block &body = loop->getRegions().back().front();
      OpBuilder builder = OpBuilder::atBlockBegin(&body);
      record(builder, loop->getLoc(), Edge::Start, iteration, Kind::Iteration,
             loop->getName().getStringRef());
    }
    return isRegion ? loop->getNextNode() : loop;
  }

  /// Takes kinds away until an iteration of `loop` keeps to the budget.
  RegionPolicy trim(Operation *loop, RegionPolicy kept) {
    std::string lost;
    for (Kind kind : RegionPolicy::listByValue()) {
      if (budget == 0 || countStamps(loop, kept) <= budget)
        break;
      if (kept.contains(kind) && countStamps(loop, RegionPolicy::only(kind)))
        lost += (lost.empty() ? "" : ", ") + stringifyKind(kind).str();
      kept.remove(kind);
    }
    if (!lost.empty())
      notes.push_back(describePlace("loop", loop->getLoc()) +
                      ": not recorded, for the budget of " +
                      std::to_string(budget) +
                      " records per iteration: " + lost);
    return kept;
  }

  /// Stamps of one iteration, its own and its branches'; of a loop in it, those
  /// of its borders.
  unsigned countStamps(Operation *loop, const RegionPolicy &kept) const {
    unsigned stamps = kept.contains(Kind::Iteration);
    for (Region &region : loop->getRegions())
      for (Block &block : region)
        stamps += countStamps(block, kept);
    return stamps;
  }

  unsigned countStamps(Block &block, const RegionPolicy &kept) const {
    unsigned stamps = 0;
    bool isAdjacent = false; // The next region's start is the last one's end.
    for (Operation *op = &block.front(); op; op = op->getNextNode()) {
      if (Operation *last = findEnd(op, kept)) {
        stamps += isAdjacent ? 1 : 2;
        isAdjacent = true;
        op = last;
      } else if (isLoop(op)) {
        stamps += kept.contains(Kind::Loop) ? 2 : 0;
        isAdjacent = false;
      } else if (isControlFlow(op)) {
        for (Region &region : op->getRegions())
          for (Block &inner : region)
            stamps += countStamps(inner, kept);
        isAdjacent = false;
      } else {
        isAdjacent &= isTransparent(op);
      }
    }
    return stamps;
  }

  /// The last operation of the region that begins at `op`; null if none does.
  static Operation *findEnd(Operation *op, const RegionPolicy &kept) {
    std::optional<Kind> kind = classifyOp(op);
    if (!kind || !kept.contains(*kind))
      return nullptr;
    Operation *last = op;
    for (Operation *next = op->getNextNode(); next; next = next->getNextNode())
      if (continuesRegion(*kind, next))
        last = next;
      else if (!isTransparent(next))
        break;
    return last;
  }

  void instrument(Region &region, const RegionPolicy &kept) {
    for (Block &block : region)
      for (Operation *op = &block.front(); op; op = op->getNextNode())
        op = instrument(op, kept);
  }

  /// The body of a kernel, a partition or a loop: what is before its loops and
  /// behind them gets regions, too.
  void instrumentBody(Region &region, const RegionPolicy &kept) {
    instrument(region, kept);
    if (!policy.contains(Kind::Loop))
      return;
    for (Block &block : region) {
      encloseStretch(findPrologue(block), Kind::Prologue);
      encloseStretch(findEpilogue(block), Kind::Epilogue);
    }
  }

  void encloseStretch(const std::optional<Stretch> &stretch, Kind kind) {
    if (!stretch || !policy.contains(kind))
      return;
    Operation *around = stretch->first->getParentOp();
    enclose(stretch->first, stretch->end->getPrevNode(), kind,
            stretch->record->getLoc(), around->getName().getStringRef());
  }

  /// Returns the last operation that has been taken care of.
  Operation *instrument(Operation *op, const RegionPolicy &kept) {
    if (isLoop(op))
      return recordLoop(op);
    if (isNamed(op, "ttg.warp_specialize")) {
      instrumentPartitions(op, kept);
      return op;
    }
    if (isControlFlow(op)) {
      for (Region &region : op->getRegions())
        instrument(region, kept);
      return op;
    }
    if (isNamed(op, "tt.call"))
      noteCall(op);
    Operation *last = findEnd(op, kept);
    if (!last)
      return op;
    enclose(op, last, *classifyOp(op));
    return last->getNextNode();
  }

  void instrumentPartitions(Operation *op, const RegionPolicy &kept) {
    SmallVector<Region *> regions = listWarpRegions(op);
    for (auto [index, region] : llvm::enumerate(regions)) {
      bool isIdle =
          llvm::hasSingleElement(region->front()) && region->hasOneBlock();
      if (index != 0 && isIdle)
        continue; // Warps that only fill up the last warp group.
      instrumentBody(*region, kept);
      if (index != 0)
        recordKernel(*region);
    }
  }

  void noteCall(Operation *call) {
    auto callee = dyn_cast_or_null<SymbolRefAttr>(call->getAttr("callee"));
    notes.push_back(describePlace("call", call->getLoc()) +
                    ": no records from inside of " +
                    (callee ? callee.getLeafReference().str() : "a function") +
                    ", which is not inlined (noinline)");
  }

  const RegionPolicy &policy;
  uint32_t budget; // Stamps per iteration of a loop; 0: any number.
  FunctionOpInterface kernel;
  RegionNames names;
  SmallVector<std::string> notes;
};

struct InsertRegions : Unverified<impl::InsertRegionsBase<InsertRegions>> {
  InsertRegions(SmallVector<std::string> regions, uint32_t budget)
      : regions(std::move(regions)), budget(budget) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<RegionPolicy> policy =
        RegionPolicy::read(regions, module, "kperf-insert-regions");
    if (failed(policy))
      return signalPassFailure();
    FailureOr<FunctionOpInterface> kernel = findKernel(module);
    if (failed(kernel))
      return signalPassFailure();
    Inserter inserter(*policy, budget, *kernel);
    inserter.run();
    addNotes(module, inserter.getNotes());
    leaveToNextVerifier();
  }

  SmallVector<std::string> regions;
  uint32_t budget;
};

} // namespace

std::unique_ptr<Pass> createInsertRegions(OptionTexts texts) {
  OptionReader reader("kperf-insert-regions", texts);
  SmallVector<std::string> regions;
  uint32_t budget = 0;
  reader.readList("regions", regions);
  reader.readCount("budget", budget);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<InsertRegions>(std::move(regions), budget);
}

} // namespace mlir::kperf
