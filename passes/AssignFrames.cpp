//===- AssignFrames.cpp - Give regions ids, and records frames and slots --===//
//
// Owns what a stamp and a frame mean. How many bytes they take and where they
// land belongs to RecordLayout, kperf-plan-buffer and the lowering.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerfGPU/KPerfGPU.h"
#include "passes/ForeignOps.h"
#include "passes/IterationSelection.h"
#include "passes/Options.h"
#include "passes/RegionKinds.h"
#include "passes/RegionTree.h"
#include "passes/SourceNames.h"
#include "passes/Unverified.h"

#include "Record/RecordLayout.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_ASSIGNFRAMES
#include "Passes.h.inc"

namespace {

using kperf_gpu::EventAttr;
using kperf_gpu::StoreValueOp;

/// More scalar operations than this between two records are worth a stamp.
constexpr unsigned kMaxOpsUnderStamp = 16;

struct Stamp {
  Operation *at; // The first record that it stands for.
  SmallVector<Attribute> events;
  SmallVector<MarkOp> values; // Marks among them that carry one.
  DenseI32ArrayAttr chosen;   // Frame and stamp, if that was chosen.
};

DenseI32ArrayAttr getChosen(Operation *record) {
  return record->getAttrOfType<DenseI32ArrayAttr>(kStampAttribute);
}

/// Of two records in a row.
bool areOfOneFrame(DenseI32ArrayAttr before, DenseI32ArrayAttr after) {
  return before && after ? before[0] == after[0] : before == after;
}

bool isRecord(Operation *op) { return isa<RecordOp, MarkOp>(op); }

bool isGap(Operation *op) {
  auto record = dyn_cast<RecordOp>(op);
  return record && record.getEdge() == Edge::Gap;
}

/// Replaces the records of one kernel.
class FrameBuilder {
public:
  FrameBuilder(const RegionTree &tree, const IterationSelection &selection,
               unsigned maxSlots)
      : tree(tree), selection(selection), maxSlots(maxSlots) {}

  void run(FunctionOpInterface kernel) {
    kernel->walk([&](Operation *op) {
      if (isRecord(op))
        for (Operation *up = op->getParentOp(); up != kernel;
             up = up->getParentOp())
          recording.insert(up);
    });
    build(kernel.getFunctionBody(), Value());
  }

  /// Per frame an array of stamps, each an array of events.
  ArrayRef<Attribute> getFrames() const { return frames; }

private:
  /// `when`, if it is not null, says whether what is here is recorded.
  void build(Region &region, Value when) {
    for (Block &block : region)
      build(block, when);
  }

  void build(Block &block, Value when) {
    SmallVector<Stamp> stamps;
    SmallVector<Operation *> done;
    unsigned sinceLast = kMaxOpsUnderStamp; // Operations since the last record.
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isRecord(&op) && !tree.getId(&op)) {
        op.erase(); // No path leads here.
      } else if (isGap(&op)) {
        if (!stamps.empty() && sinceLast == 0)
          stamps.back().events.push_back(getEvent(&op));
        done.push_back(&op); // Without a stamp to share, it is nothing.
      } else if (isRecord(&op)) {
        DenseI32ArrayAttr chosen = getChosen(&op);
        if (!stamps.empty() && !areOfOneFrame(stamps.back().chosen, chosen))
          flush(stamps, when);
        bool isNear = chosen ? !stamps.empty() && stamps.back().chosen == chosen
                             : sinceLast < kMaxOpsUnderStamp;
        bool shares =
            !stamps.empty() && isNear && canShare(stamps.back(), getEvent(&op));
        if (!shares && stamps.size() == maxSlots)
          flush(stamps, when);
        if (!shares)
          stamps.push_back({&op, {}, {}, chosen});
        stamps.back().events.push_back(getEvent(&op));
        if (auto mark = dyn_cast<MarkOp>(op); mark && mark.getValue())
          stamps.back().values.push_back(mark);
        done.push_back(&op);
        sinceLast = 0;
      } else if (recording.contains(&op)) {
        flush(stamps, when);
        buildInside(&op, when);
        sinceLast = kMaxOpsUnderStamp;
      } else {
        sinceLast = isTransparent(&op) ? sinceLast + 1 : kMaxOpsUnderStamp;
      }
    }
    flush(stamps, when);
    for (Operation *op : done)
      op->erase();
  }

  /// A region's own two borders stay apart, or its duration would be lost.
  bool canShare(const Stamp &stamp, EventAttr event) const {
    return llvm::none_of(stamp.events, [&](Attribute other) {
      return cast<EventAttr>(other).getRegion() == event.getRegion();
    });
  }

  EventAttr getEvent(Operation *op) const {
    auto record = dyn_cast<RecordOp>(op);
    Edge edge = record ? record.getEdge() : Edge::Mark;
    // Records that no path leads to are erased before.
    return EventAttr::get(op->getContext(), edge, tree.getId(op).value_or(0));
  }

  void flush(SmallVectorImpl<Stamp> &stamps, Value when) {
    if (stamps.empty())
      return;
    MLIRContext *context = stamps.front().at->getContext();
    auto type = kperf_gpu::FrameType::get(
        context, static_cast<uint32_t>(frames.size()),
        static_cast<uint32_t>(stamps.size()), countValueWords(stamps));
    OpBuilder builder(stamps.front().at);
    Value frame = kperf_gpu::OpenFrameOp::create(
        builder, stamps.front().at->getLoc(), type, when);
    SmallVector<Attribute> meaning;
    uint32_t word = 0;
    Operation *last = stamps.back().at;
    for (auto [slot, stamp] : llvm::enumerate(stamps)) {
      builder.setInsertionPoint(stamp.at);
      ArrayAttr events = builder.getArrayAttr(stamp.events);
      kperf_gpu::StampOp::create(builder, stamp.at->getLoc(), frame,
                                 static_cast<uint32_t>(slot), events);
      meaning.push_back(events);
      for (MarkOp mark : stamp.values) {
        // A value may be newer than the stamp that its mark shares.
        builder.setInsertionPoint(mark);
        kperf_gpu::StoreValueOp::create(builder, mark.getLoc(), frame, word,
                                        mark.getValue());
        word += StoreValueOp::countWords(mark.getValue().getType());
        last = last->isBeforeInBlock(mark) ? mark : last;
      }
    }
    builder.setInsertionPoint(last);
    kperf_gpu::CloseFrameOp::create(builder, last->getLoc(), frame);
    frames.push_back(builder.getArrayAttr(meaning));
    stamps.clear();
  }

  static uint32_t countValueWords(ArrayRef<Stamp> stamps) {
    uint32_t words = 0;
    for (const Stamp &stamp : stamps)
      for (MarkOp mark : stamp.values)
        words += StoreValueOp::countWords(mark.getValue().getType());
    return words;
  }

  /// Frames of an operation that is control flow; where it changes warps, their
  /// state passes through the segment headers.
  void buildInside(Operation *op, Value when) {
    if (!isNamed(op, "ttg.warp_specialize")) {
      if (selection.contains(op))
        when = selection.makePredicate(op, when);
      for (Region &region : op->getRegions())
        build(region, when);
      return;
    }
    for (auto [index, region] : llvm::enumerate(listWarpRegions(op))) {
      if (!holdsRecords(*region))
        continue;
      build(*region, Value()); // Roles in a loop are recorded each time.
      OpBuilder builder = OpBuilder::atBlockBegin(&region->front());
      kperf_gpu::AttachOp::create(builder, op->getLoc());
      for (Block &block : *region)
        if (block.getNumSuccessors() == 0) {
          builder.setInsertionPoint(block.getTerminator());
          kperf_gpu::DetachOp::create(builder, op->getLoc());
        }
      if (index != 0)
        continue;
      builder.setInsertionPoint(op);
      kperf_gpu::DetachOp::create(builder, op->getLoc());
      builder.setInsertionPointAfter(op);
      kperf_gpu::AttachOp::create(builder, op->getLoc());
    }
  }

  bool holdsRecords(Region &region) const {
    return llvm::any_of(region.getOps(), [&](Operation &op) {
      return isRecord(&op) || recording.contains(&op);
    });
  }

  const RegionTree &tree;
  const IterationSelection &selection;
  unsigned maxSlots;
  SmallPtrSet<Operation *, 16> recording; // Operations with records inside.
  SmallVector<Attribute> frames;
};

/// How the layout spells the type of what a mark carries.
std::string spellValue(const RecordedRegion &mark) {
  unsigned bits = mark.value.getIntOrFloatBitWidth();
  StringRef letter = isa<FloatType>(mark.value) ? "f"
                     : mark.isUnsigned          ? "u"
                                                : "i";
  return (letter + Twine(bits)).str();
}

/// What the layout says about a region; `range`: which of its executions are
/// recorded.
Attribute describe(const RecordedRegion &region, const IterationRange &range,
                   OpBuilder &builder) {
  SourcePlace place = findSource(region.loc);
  SmallVector<NamedAttribute> fields;
  auto add = [&](StringRef name, Attribute value) {
    fields.push_back(builder.getNamedAttr(name, value));
  };
  auto i32 = [&](int64_t value) {
    return builder.getI32IntegerAttr(static_cast<int32_t>(value));
  };
  add("name", builder.getStringAttr(region.name));
  add("kind", builder.getStringAttr(stringifyKind(region.kind)));
  add("op", builder.getStringAttr(region.origin));
  add("parent", i32(region.parent));
  add("file", builder.getStringAttr(place.file));
  add("line", i32(place.line));
  add("column", i32(place.column));
  if (region.value)
    add("value", builder.getStringAttr(spellValue(region)));
  if (!range.isEvery()) {
    add("first", i32(range.first));
    add("last", i32(range.last));
    add("step", i32(range.step));
  }
  return builder.getDictionaryAttr(fields);
}

struct AssignFrames : Unverified<impl::AssignFramesBase<AssignFrames>> {
  AssignFrames(uint32_t maxSlots, IterationRange iterations)
      : maxSlots(maxSlots), iterations(iterations) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<FunctionOpInterface> kernel = findKernel(module);
    if (failed(kernel))
      return signalPassFailure();
    IterationSelection selection(iterations, *kernel);
    FailureOr<RegionTree> tree = RegionTree::build(*kernel);
    if (failed(tree))
      return signalPassFailure();
    if (tree->getRegions().empty())
      return markAllAnalysesPreserved();

    OpBuilder builder(&getContext());
    auto isOwnRegion = [&](uint32_t region) {
      Kind kind = tree->getRegions()[region].kind;
      return kind != Kind::Kernel && kind != Kind::Loop &&
             kind != Kind::Iteration && kind != Kind::Prologue &&
             kind != Kind::Epilogue && kind != Kind::User;
    };
    SmallVector<PlacedOp> asyncOps = tree->listAsyncOps();
    for (PlacedOp &placed : asyncOps)
      if (selection.mayLeaveOut(placed.op))
        placed.region = std::nullopt; // Its executions cannot be counted.
    if (ArrayAttr flows = findFlows(asyncOps, isOwnRegion, builder);
        !flows.empty())
      module->setAttr("kperf.flows", flows);

    llvm::SmallDenseSet<uint32_t> selected;
    for (RecordOp start : selection.getStarts())
      if (std::optional<uint32_t> id = tree->getId(start))
        selected.insert(*id);
    FrameBuilder frames(*tree, selection, maxSlots);
    frames.run(*kernel);
    if (frames.getFrames().size() > kperfir::record::kMaxFrames) {
      kernel->emitError() << "the kernel needs " << frames.getFrames().size()
                          << " frames, a tag can name "
                          << kperfir::record::kMaxFrames;
      return signalPassFailure();
    }
    encloseKernel(*kernel);

    SmallVector<Attribute> regions;
    for (auto [id, region] : llvm::enumerate(tree->getRegions()))
      regions.push_back(describe(
          region, selected.contains(id) ? iterations : IterationRange(),
          builder));
    addNotes(module, selection.getNotes());
    module->setAttr("kperf.regions", builder.getArrayAttr(regions));
    module->setAttr("kperf.frames", builder.getArrayAttr(frames.getFrames()));
    leaveToNextVerifier();
  }

  void encloseKernel(FunctionOpInterface kernel) {
    Region &body = kernel.getFunctionBody();
    OpBuilder builder = OpBuilder::atBlockBegin(&body.front());
    kperf_gpu::InitOp::create(builder, kernel.getLoc(), Value());
    for (Block &block : body)
      if (block.getNumSuccessors() == 0) {
        builder.setInsertionPoint(block.getTerminator());
        kperf_gpu::FinalizeOp::create(builder, kernel.getLoc(), Value());
      }
  }

  uint32_t maxSlots;
  IterationRange iterations;
};

} // namespace

std::unique_ptr<Pass> createAssignFrames(OptionTexts texts) {
  OptionReader reader("kperf-assign-frames", texts);
  uint32_t maxSlots = 64;
  IterationRange range;
  reader.readCount("max-slots", maxSlots, /*minimum=*/1);
  reader.readCount("first-iteration", range.first);
  reader.readCount("last-iteration", range.last);
  reader.readCount("iteration-step", range.step, /*minimum=*/1);
  for (uint32_t *number : {&range.first, &range.last, &range.step})
    *number = std::min<uint32_t>(*number, std::numeric_limits<int32_t>::max());
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<AssignFrames>(maxSlots, range);
}

} // namespace mlir::kperf
