//===- ConvertKPerfGPUToLLVM.cpp - Lower frames and stamps to LLVM --------===//
//
// Owns the life of a warp's state: where its segment is, when a frame fits, how
// the cursor moves. How a word is stored is TargetLowering; how the state gets
// through the control flow is WarpState; what init and finalize write besides
// is CtaRecording.
//
//===----------------------------------------------------------------------===//

#include "passes/Aggregation.h"
#include "passes/CtaRecording.h"
#include "passes/ForeignOps.h"
#include "passes/Options.h"
#include "passes/TargetLowering.h"
#include "passes/Unverified.h"
#include "passes/WarpState.h"

#include "Dialect/KPerfGPU/KPerfGPU.h"
#include "Record/RecordLayout.h"
#include "mlir/IR/RegionGraphTraits.h"
#include "llvm/ADT/PostOrderIterator.h"

namespace record = kperfir::record;

namespace mlir::kperf {
#define GEN_PASS_DEF_CONVERTKPERFGPUTOLLVM
#include "Passes.h.inc"

namespace {

/// Clocks of a frame that may be on their way at once: each takes a pair of
/// scalar registers.
constexpr size_t kMaxPendingClocks = 8;

/// Lowers one region whose warps have a state of their own: the kernel's body,
/// or a region of `ttg.warp_specialize`.
class RegionLowering {
public:
  /// `aggregation` is null where executions are recorded.
  RegionLowering(Region &region, const CtaRecording &recording,
                 const Aggregation *aggregation)
      : region(region), recording(recording), plan(recording.plan),
        target(recording.target), aggregation(aggregation) {}

  LogicalResult run() {
    Location loc = region.getLoc();
    StateThreading threading(region, IntegerType::get(region.getContext(), 32),
                             loc);
    for (Block *block : listBlocks()) {
      WarpState state = threading.enter(*block);
      for (Operation &op : llvm::make_early_inc_range(*block))
        if (isa<kperf_gpu::KPerfGPUDialect>(op.getDialect()) &&
            failed(lower(&op, state)))
          return failure();
      threading.leave(*block, state);
    }
    if (failed(threading.connect()))
      return failure();
    // These split blocks, so they come when no state is passed any more.
    for (auto [op, state] : borders)
      isa<kperf_gpu::InitOp>(op) ? recording.begin(op, segment)
                                 : recording.end(op, segment, state);
    for (Operation *op : llvm::reverse(done))
      op->erase();
    return success();
  }

private:
  struct OpenFrame {
    Value cursor;
    Value when; // Null: always.
    Value fits; // And `when`.
    StorePlace place;
    SmallVector<std::pair<uint32_t, Value>> pending; // By offset: clocks read.
    SmallVector<Value> batched; // By word: what is not stored yet.
  };

  /// Definitions come before uses; what is not reachable comes last.
  SetVector<Block *> listBlocks() {
    SetVector<Block *> blocks;
    llvm::ReversePostOrderTraversal<Block *> reachable(&region.front());
    blocks.insert(reachable.begin(), reachable.end());
    for (Block &block : region)
      blocks.insert(&block);
    return blocks;
  }

  /// The warp's segment is found once, where it dominates the whole region.
  LogicalResult findSegment(LLVMBuilder &b, Operation *op) {
    if (!op->getBlock()->isEntryBlock())
      return op->emitOpError("must come after a kperf_gpu.init or "
                             "kperf_gpu.attach in the region's entry block");
    Value pointer;
    if (isa<kperf_gpu::InitOp>(op))
      pointer = recording.getScratch(op);
    segment = recording.findSegment(b, pointer);
    return success();
  }

  LogicalResult lower(Operation *op, WarpState &state) {
    done.push_back(op);
    LLVMBuilder b(op);
    bool begins = isa<kperf_gpu::InitOp, kperf_gpu::AttachOp>(op);
    if (isa<kperf_gpu::InitOp, kperf_gpu::FinalizeOp>(op) &&
        op->getNumOperands() == 0)
      return op->emitOpError("has no scratch; run kperf-plan-buffer first");
    if (begins && !segment.header && failed(findSegment(b, op)))
      return failure();
    if (!begins && !segment.header)
      return op->emitOpError("must come after kperf_gpu.init or "
                             "kperf_gpu.attach");

    if (isa<kperf_gpu::InitOp>(op)) {
      state = recording.firstState(b, segment);
      borders.emplace_back(op, state);
    } else if (isa<kperf_gpu::FinalizeOp>(op)) {
      borders.emplace_back(op, state);
    } else if (isa<kperf_gpu::AttachOp>(op)) {
      state = recording.loadState(b, segment);
    } else if (isa<kperf_gpu::DetachOp>(op)) {
      recording.storeState(b, segment, state);
    } else if (aggregation) {
      sumUp(b, op);
    } else if (auto open = dyn_cast<kperf_gpu::OpenFrameOp>(op)) {
      frames[open.getFrame()] =
          openFrame(b, open.getFrame().getType(), open.getWhen(), state);
    } else if (auto stamp = dyn_cast<kperf_gpu::StampOp>(op)) {
      stampSlot(b, frames[stamp.getFrame()],
                {stamp.getFrame().getType().getId(), stamp.getSlot()});
    } else if (auto store = dyn_cast<kperf_gpu::StoreValueOp>(op)) {
      storeValue(b, store);
    } else {
      auto close = cast<kperf_gpu::CloseFrameOp>(op);
      closeFrame(b, close.getFrame().getType(), frames[close.getFrame()],
                 state);
    }
    return success();
  }

  /// Frames have no place in memory then, and values of marks are not kept.
  void sumUp(LLVMBuilder &b, Operation *op) {
    if (auto open = dyn_cast<kperf_gpu::OpenFrameOp>(op)) {
      Value when = open.getWhen();
      frames[open.getFrame()].fits =
          when ? b.both(segment.active, when) : segment.active;
    } else if (auto stamp = dyn_cast<kperf_gpu::StampOp>(op)) {
      aggregation->lower(b, stamp,
                         {plan.global ? segment.base : segment.data,
                          frames[stamp.getFrame()].fits});
    }
  }

  uint32_t wordsOf(kperf_gpu::FrameType type) const {
    return record::frameWords(type.getSlots(), type.getValueWords(),
                              plan.batch);
  }

  OpenFrame openFrame(LLVMBuilder &b, kperf_gpu::FrameType type, Value when,
                      WarpState state) {
    Value fits = b.compare(Compare::Sle, state.cursor, segment.limit);
    if (when)
      fits = b.both(fits, when);
    Value address = state.cursor;
    if (plan.global)
      address = b.add(segment.base, b.extend(state.cursor));
    SmallVector<Value> batched(plan.batch == 1 ? 0 : wordsOf(type));
    return {state.cursor, when,   fits, target.prepare(b, {address, fits}),
            {},           batched};
  }

  /// Stores a word of a frame, or keeps it until its neighbours are there.
  void put(LLVMBuilder &b, OpenFrame &frame, uint32_t word, Value value) {
    if (plan.batch == 1)
      return target.store(b, frame.place, word * record::kWordBytes, value);
    frame.batched[word] = value;
    uint32_t first = word / plan.batch * plan.batch;
    if (llvm::all_of(groupOf(frame, first), [](Value v) { return bool(v); }))
      storeGroup(b, frame, first);
  }

  MutableArrayRef<Value> groupOf(OpenFrame &frame, uint32_t first) const {
    return MutableArrayRef(frame.batched).slice(first, plan.batch);
  }

  void storeGroup(LLVMBuilder &b, OpenFrame &frame, uint32_t first) {
    MutableArrayRef<Value> group = groupOf(frame, first);
    target.storeWords(b, frame.place, first * record::kWordBytes, group);
    llvm::fill(group, Value());
  }

  /// Stores what is left of a frame that is closed; its padding is 0.
  void storeBatched(LLVMBuilder &b, OpenFrame &frame) {
    for (uint32_t first = 0; first < frame.batched.size();
         first += plan.batch) {
      MutableArrayRef<Value> group = groupOf(frame, first);
      if (llvm::none_of(group, [](Value v) { return bool(v); }))
        continue;
      for (Value &word : group)
        if (!word)
          word = b.constant(0);
      storeGroup(b, frame, first);
    }
  }

  void stampSlot(LLVMBuilder &b, OpenFrame &frame, StampPlace stamp) {
    if (plan.batch != 1)
      return put(b, frame, stamp.slot, target.readStamp(b, stamp));
    if (Value clock = target.stamp(b, frame.place, stamp))
      frame.pending.emplace_back(stamp.slot * record::kWordBytes, clock);
    if (frame.pending.size() == kMaxPendingClocks)
      storePending(b, frame);
  }

  void storePending(LLVMBuilder &b, OpenFrame &frame) {
    for (auto [offset, clock] : frame.pending)
      target.store(b, frame.place, offset,
                   b.cast("llvm.trunc", clock, b.i32()));
    frame.pending.clear();
  }

  void storeValue(LLVMBuilder &b, kperf_gpu::StoreValueOp store) {
    Value value = store.getValue();
    uint32_t slots = store.getFrame().getType().getSlots();
    uint32_t word = slots + store.getWord();
    OpenFrame &frame = frames[store.getFrame()];
    bool isWide = value.getType().getIntOrFloatBitWidth() == 64;
    if (isa<FloatType>(value.getType()))
      value = b.cast("llvm.bitcast", value, isWide ? b.i64() : b.i32());
    if (!isWide)
      return put(b, frame, word, value);
    put(b, frame, word, b.cast("llvm.trunc", value, b.i32()));
    Value high = b.binary("llvm.lshr", value, b.constant(32, b.i64()));
    put(b, frame, word + 1, b.cast("llvm.trunc", high, b.i32()));
  }

  void closeFrame(LLVMBuilder &b, kperf_gpu::FrameType type, OpenFrame &frame,
                  WarpState &state) {
    uint32_t slots = type.getSlots();
    storePending(b, frame);
    uint32_t words = wordsOf(type), bytes = words * record::kWordBytes;
    put(b, frame, words - 1, b.constant(record::kTagBase | type.getId()));
    storeBatched(b, frame);
    auto unlessLeftOut = [&](Value now, Value before) {
      return frame.when ? b.select(frame.when, now, before) : now;
    };
    state.records = unlessLeftOut(b.add(state.records, slots), state.records);
    Value past = b.add(frame.cursor, bytes);
    if (!plan.ring) {
      state.cursor = b.select(frame.fits, past, frame.cursor);
      return;
    }
    Value lapped = b.compare(Compare::Sgt, past, segment.limit);
    target.noteLap(b, {segment.header, b.both(lapped, frame.fits)},
                   b.sub(past, segment.data));
    state.cursor =
        unlessLeftOut(b.select(lapped, segment.data, past), frame.cursor);
  }

  Region &region;
  const CtaRecording &recording;
  const BufferPlan &plan;
  const TargetLowering &target;
  const Aggregation *aggregation;
  Segment segment; // Empty until the entry block's init or attach.
  DenseMap<Value, OpenFrame> frames;
  SmallVector<std::pair<Operation *, WarpState>> borders;
  SmallVector<Operation *> done;
};

struct ConvertKPerfGPUToLLVM
    : Unverified<impl::ConvertKPerfGPUToLLVMBase<ConvertKPerfGPUToLLVM>> {
  explicit ConvertKPerfGPUToLLVM(std::string target)
      : target(std::move(target)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    // In program order, each once: regions that hold operations of ours.
    SetVector<Region *> regions;
    module->walk([&](Operation *op) {
      if (isa<kperf_gpu::KPerfGPUDialect>(op->getDialect()))
        regions.insert(op->getParentRegion());
    });
    if (regions.empty())
      return markAllAnalysesPreserved(); // Untouched kernels stay identical.
    FailureOr<BufferPlan> plan = BufferPlan::fromModule(module);
    if (failed(plan))
      return signalPassFailure();
    if (plan->aggregate && target == "amd") {
      module.emitError("strategy aggregate is not there for AMD GPUs (target)");
      return signalPassFailure();
    }
    auto chip = module->getAttrOfType<StringAttr>("ttg.target");
    std::unique_ptr<TargetLowering> lowering =
        target == "amd" ? createAmdLowering(chip ? chip.getValue() : "")
                        : createNvidiaLowering();
    CtaRecording recording{*plan, *lowering};
    std::optional<Aggregation> aggregation;
    if (plan->aggregate)
      aggregation.emplace(module);
    for (Region *region : regions)
      if (failed(RegionLowering(*region, recording,
                                aggregation ? &*aggregation : nullptr)
                     .run()))
        return signalPassFailure();
    module->removeAttr("kperf.plan");
    module->removeAttr("kperf.regions");
    leaveToNextVerifier();
  }

  std::string target;
};

} // namespace

std::unique_ptr<Pass> createConvertKPerfGPUToLLVM(OptionTexts texts) {
  OptionReader reader("convert-kperf-gpu-to-llvm", texts);
  std::string target = "nvidia";
  reader.readChoice("target", target, {"nvidia", "amd"});
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<ConvertKPerfGPUToLLVM>(std::move(target));
}

} // namespace mlir::kperf
