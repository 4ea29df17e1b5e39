//===- ConvertKPerfGPUToLLVM.cpp - Lower frames and stamps to LLVM --------===//
//
// Owns the life of a warp's state: where its segment is, where a frame goes,
// how the cursor moves. How a word is stored is TargetLowering; how the state
// gets through the control flow is WarpState; what init and finalize write
// besides is CtaRecording.
//
//===----------------------------------------------------------------------===//

#include "passes/Aggregation.h"
#include "passes/CtaRecording.h"
#include "passes/ForeignOps.h"
#include "passes/LapEnd.h"
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
      if (Block *before = block->getSinglePredecessor())
        if (auto known = findOffset(threading.leaving(*before).cursor))
          offsets[state.cursor] = *known;
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
    StorePlace place;
    uint32_t offset; // Of the frame's first word, from the place.
    uint32_t used;   // Words that mean something.
    SmallVector<std::pair<uint32_t, Value>> pending; // By word: clocks read.
    SmallVector<Value> words;                        // Known, not stored yet.
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
      offsets[state.cursor] = 0;
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
      frames[open.getFrame()].place.enabled = isActive(b, open.getWhen());
    } else if (auto stamp = dyn_cast<kperf_gpu::StampOp>(op)) {
      aggregation->lower(b, stamp,
                         {plan.global ? segment.base : segment.data,
                          frames[stamp.getFrame()].place.enabled});
    }
  }

  Value isActive(LLVMBuilder &b, Value when) const {
    return when ? b.both(segment.active, when) : segment.active;
  }

  /// Where a cursor always is, in bytes behind the first data word. Until paths
  /// of control flow meet, that is known, and nothing has to be computed.
  std::optional<uint32_t> findOffset(Value cursor) const {
    auto known = offsets.find(cursor);
    return known == offsets.end() ? std::nullopt : std::optional(known->second);
  }
  Value cursorAt(LLVMBuilder &b, uint32_t offset) {
    Value cursor = b.add(segment.data, b.constant(offset));
    offsets[cursor] = offset;
    return cursor;
  }

  OpenFrame openFrame(LLVMBuilder &b, kperf_gpu::FrameType type, Value when,
                      WarpState state) {
    std::optional<uint32_t> known = findOffset(state.cursor);
    Value address = known ? segment.data : state.cursor;
    if (plan.global)
      address =
          known ? segment.base : b.add(segment.base, b.extend(state.cursor));
    OpenFrame frame{state.cursor, when};
    frame.place = target.prepare(b, {address, isKept(b, state.cursor, when)});
    frame.offset = known.value_or(0);
    frame.used = record::frameWords(type.getSlots(), type.getValueWords());
    uint32_t size = record::frameWords(type.getSlots(), type.getValueWords(),
                                       plan.frameAlign);
    frame.words.resize(size);
    // What fills a frame up has no meaning, so no register is set for it.
    auto padding = MutableArrayRef(frame.words);
    padding = plan.tagFirst()
                  ? padding.drop_front(frame.used)
                  : padding.slice(frame.used - 1, size - frame.used);
    for (Value &word : padding)
      word = b.undefined();
    if (plan.tagFirst())
      put(b, frame, 0, b.constant(record::kTagBase | type.getId()));
    return frame;
  }

  /// The words that one instruction stores, of which `word` is one: first and
  /// count. Beside what was asked for, a tag goes with the clock behind it, and
  /// what fills the frame up with the word before it.
  std::pair<uint32_t, uint32_t> groupOf(const OpenFrame &frame,
                                        uint32_t word) const {
    uint32_t size = plan.batch;
    if (plan.tagFirst() && plan.frameAlign > size &&
        (word < plan.frameAlign || (word | 1) >= frame.used))
      size = plan.frameAlign;
    return {word / size * size, size};
  }

  /// Stores a word of a frame, or keeps it until its neighbours are there.
  void put(LLVMBuilder &b, OpenFrame &frame, uint32_t word, Value value) {
    frame.words[word] = value;
    auto [first, count] = groupOf(frame, word);
    auto group = MutableArrayRef(frame.words).slice(first, count);
    if (llvm::any_of(group, [](Value v) { return !v; }))
      return;
    target.storeWords(b, frame.place, frame.offset + first * record::kWordBytes,
                      group);
    llvm::fill(group, Value());
  }

  void stampSlot(LLVMBuilder &b, OpenFrame &frame, StampPlace stamp) {
    uint32_t word = plan.tagFirst() + stamp.slot;
    Value clock = target.readStamp(b, stamp);
    if (clock.getType().isInteger(32))
      return put(b, frame, word, clock);
    frame.pending.emplace_back(word, clock);
    if (frame.pending.size() == kMaxPendingClocks)
      storePending(b, frame);
  }

  void storePending(LLVMBuilder &b, OpenFrame &frame) {
    for (auto [word, clock] : frame.pending)
      put(b, frame, word, b.cast("llvm.trunc", clock, b.i32()));
    frame.pending.clear();
  }

  void storeValue(LLVMBuilder &b, kperf_gpu::StoreValueOp store) {
    Value value = store.getValue();
    uint32_t slots = store.getFrame().getType().getSlots();
    uint32_t word = plan.tagFirst() + slots + store.getWord();
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
    storePending(b, frame);
    uint32_t size = frame.words.size();
    if (!plan.tagFirst())
      put(b, frame, size - 1, b.constant(record::kTagBase | type.getId()));
    Value before = state.records, records = b.add(before, type.getSlots());
    state.records =
        frame.when ? b.select(frame.when, records, before) : records;
    uint32_t bytes = size * record::kWordBytes;
    state.cursor = plan.ring    ? nextInRing(b, frame, bytes)
                   : plan.flush ? nextInHalves(b, frame, bytes)
                                : nextCursor(b, frame, bytes);
  }

  /// A frame that passes the limit is the last one that is kept, and not whole:
  /// from then on all are written to the room behind it.
  Value nextCursor(LLVMBuilder &b, const OpenFrame &frame, uint32_t bytes) {
    std::optional<uint32_t> known = findOffset(frame.cursor);
    if (known && !frame.when)
      return cursorAt(b, std::min(*known + bytes, plan.limitBytes()));
    Value step = b.constant(bytes);
    if (frame.when)
      step = b.select(frame.when, step, b.constant(0));
    return b.min(b.add(frame.cursor, step), segment.limit);
  }

  /// Whether a frame that is written at `cursor` is kept.
  Value isKept(LLVMBuilder &b, Value cursor, Value when) const {
    if (!plan.flush)
      return isActive(b, when);
    Value fits = b.compare(Compare::Sle, cursor, segment.limit);
    return when ? b.both(fits, when) : fits;
  }

  Value nextInHalves(LLVMBuilder &b, const OpenFrame &frame, uint32_t bytes) {
    std::optional<uint32_t> known = findOffset(frame.cursor);
    if (known && !frame.when && *known + bytes <= halfLimit(plan))
      return cursorAt(b, *known + bytes);
    Value past =
        b.select(frame.place.enabled, b.add(frame.cursor, bytes), frame.cursor);
    return goOnAfterFrame(b, plan, past, segment.base);
  }

  Value nextInRing(LLVMBuilder &b, const OpenFrame &frame, uint32_t bytes) {
    std::optional<uint32_t> known = findOffset(frame.cursor);
    if (known && !frame.when && *known + bytes <= plan.limitBytes())
      return cursorAt(b, *known + bytes);
    Value past = b.add(frame.cursor, bytes);
    Value lapped = b.compare(Compare::Sgt, past, segment.limit);
    target.noteLap(b, {segment.header, b.both(lapped, isActive(b, frame.when))},
                   b.sub(past, segment.data));
    Value next = b.select(lapped, segment.data, past);
    return frame.when ? b.select(frame.when, next, frame.cursor) : next;
  }

  Region &region;
  const CtaRecording &recording;
  const BufferPlan &plan;
  const TargetLowering &target;
  const Aggregation *aggregation;
  Segment segment; // Empty until the entry block's init or attach.
  DenseMap<Value, OpenFrame> frames;
  DenseMap<Value, uint32_t> offsets; // Of cursors that are known.
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
    if (plan->flush && target == "amd") {
      module.emitError("strategy flush is not there for AMD GPUs (target)");
      return signalPassFailure();
    }
    auto attribute = module->getAttrOfType<StringAttr>("ttg.target");
    StringRef chip = attribute ? attribute.getValue() : StringRef();
    std::unique_ptr<TargetLowering> lowering =
        target == "amd" ? createAmdLowering(chip) : createNvidiaLowering(chip);
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
