//===- PlanBuffer.cpp - Size the profile buffer and fix its layout --------===//
//
// Owns the decisions how many words each warp may keep and where they are. Byte
// offsets belong to RecordLayout; this pass only chooses its parameters. What
// it decided is `kperf.plan` for the lowering (BufferPlan.h) and `kperf.layout`
// for the decoder (LayoutJson.h).
//
//===----------------------------------------------------------------------===//

#include "passes/BufferPlan.h"
#include "passes/ForeignOps.h"
#include "passes/LayoutJson.h"
#include "passes/Options.h"
#include "passes/Unverified.h"

#include "Dialect/KPerfGPU/KPerfGPU.h"
#include "Record/RecordLayout.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace record = kperfir::record;

namespace mlir::kperf {
#define GEN_PASS_DEF_PLANBUFFER
#include "Passes.h.inc"

namespace {

/// Segments stay 16-byte aligned, for the vector store of their header.
constexpr uint32_t kWordsAlignment = 4;
/// Several times what the kernels of the corpus record outside of loops, and
/// little next to the shared memory that a tile takes.
constexpr uint32_t kDefaultBytesPerWarp = 2048;
/// Of a CTA, where all records are to be kept: a CTA fills half of it while the
/// host takes the other half, and a launch has room for a thousand. Where
/// nobody takes anything it has to hold all.
constexpr uint32_t kFlushBytes = 256 << 10, kUntakenBytes = 1 << 20;
/// Where a warp-specialised kernel with a global buffer keeps its address.
constexpr uint32_t kPointerSlotBytes = 16;
/// The size of a CTA's share is an i32 in several places, ours and Triton's.
constexpr uint64_t kMaxCtaBytes = uint64_t(1) << 30;

struct PlanBufferOptions {
  uint32_t bufferBytes = 0;
  uint32_t wordsPerWarp = 0;
  std::string strategy = "saturate";
  std::string buffer = "auto";
  uint32_t sampleCtas = 1;
  uint32_t batch = 1;
  uint32_t sharedLimitBytes = 0;
  uint32_t firstCta = 0, lastCta = 0;
  uint32_t firstSm = 0, lastSm = 0;
  SmallVector<std::string> warps;
  std::string granularity = "warp";
};

/// What has an end begins before it.
bool isRange(uint32_t first, uint32_t last) { return !last || first < last; }

/// Shared memory that one CTA can have.
uint32_t findSharedLimit(StringRef target) {
  return llvm::StringSwitch<uint32_t>(target)
      .Cases({"cuda:80", "cuda:87"}, 166912)
      .Cases({"cuda:86", "cuda:89", "cuda:120", "cuda:121"}, 101376)
      .Cases({"cuda:90", "cuda:100", "cuda:103", "cuda:110"}, 232448)
      .Case("hip:gfx950", 163840)
      .StartsWith("hip:", 65536)
      .Default(49152);
}

struct PlanBuffer : Unverified<impl::PlanBufferBase<PlanBuffer>> {
  explicit PlanBuffer(PlanBufferOptions options)
      : options(std::move(options)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!module->hasAttr("kperf.frames"))
      return markAllAnalysesPreserved(); // Untouched kernels stay identical.
    FailureOr<FunctionOpInterface> kernel = findKernel(module);
    if (failed(kernel))
      return signalPassFailure();

    FailureOr<BufferPlan> plan = makePlan(module, *kernel);
    if (failed(plan) || failed(select(module, *kernel, *plan)))
      return signalPassFailure(); // They have emitted the diagnostic.

    if (record::ctaBytes(plan->totalWarps, plan->wordsPerWarp) > kMaxCtaBytes) {
      module.emitError() << "profile buffer of " << options.bufferBytes
                         << " bytes for each CTA is too large; at most "
                         << kMaxCtaBytes << " (buffer-bytes)";
      return signalPassFailure();
    }
    std::string layout = writeLayout(module, *kernel, *plan);
    OpBuilder builder(&getContext());
    module->setAttr("kperf.layout", builder.getStringAttr(layout));
    module->setAttr("kperf.plan", plan->toAttribute(builder));
    module->setAttr("ttg.shared", builder.getI32IntegerAttr(plan->sharedEnd()));
    module->removeAttr("kperf.frames");
    if (!plan->aggregate) // The lowering has to know how regions nest.
      module->removeAttr("kperf.regions");
    module->removeAttr("kperf.notes");
    module->removeAttr("kperf.flows");
    module->removeAttr("kperf.layouts");
    allocateScratch(*kernel, *plan);
    leaveToNextVerifier();
  }

  /// Which CTAs, SMs and warps record.
  LogicalResult select(ModuleOp module, FunctionOpInterface kernel,
                       BufferPlan &plan) {
    if (!isRange(options.firstCta, options.lastCta) ||
        !isRange(options.firstSm, options.lastSm))
      return module.emitError("the first CTA or SM to record is not before "
                              "the last (first-cta, last-cta, first-sm, "
                              "last-sm)");
    plan.sampleCtas = options.sampleCtas;
    plan.firstCta = options.firstCta;
    plan.lastCta = options.lastCta;
    plan.firstSm = options.firstSm;
    plan.lastSm = options.lastSm;
    uint64_t mask = options.warps.empty() ? ~uint64_t(0) : 0;
    for (StringRef text : options.warps) {
      unsigned warp;
      if (text.getAsInteger(10, warp) || warp >= plan.totalWarps)
        return module.emitError() << "'" << text << "' is no warp of the "
                                  << plan.totalWarps << " of a CTA (warps)";
      mask |= uint64_t(1) << warp;
    }
    if (options.granularity != "warp")
      mask &= findLeaders(kernel, plan);
    plan.warpsLow = static_cast<uint32_t>(mask);
    plan.warpsHigh = static_cast<uint32_t>(mask >> 32);
    return success();
  }

  /// The first warp of each warp group, or of each role of the CTA.
  uint64_t findLeaders(FunctionOpInterface kernel, const BufferPlan &plan) {
    uint64_t leaders = 0;
    for (const WarpRole &role : listRoles(kernel, plan))
      for (int64_t warp = 0; warp < role.warps; ++warp)
        if (warp == 0 || (options.granularity == "warp-group" && warp % 4 == 0))
          leaders |= uint64_t(1) << (role.firstWarp + warp);
    return leaders;
  }

  FailureOr<BufferPlan> makePlan(ModuleOp module, FunctionOpInterface kernel) {
    BufferPlan plan;
    plan.ring = options.strategy == "ring";
    plan.aggregate = options.strategy == "aggregate";
    plan.flush = options.strategy == "flush";
    plan.warps = getModuleInt(module, "ttg.num-warps", 4);
    plan.totalWarps = getModuleInt(module, "ttg.total-num-warps", plan.warps);
    // On AMD GPUs a wide store would save nothing: clocks are scalar there.
    auto target = module->getAttrOfType<StringAttr>("ttg.target");
    bool isAmd = target && target.getValue().starts_with("hip");
    if (!isAmd && !plan.aggregate)
      plan.batch = options.batch;
    plan.flush &= !isAmd; // It is saturate in global memory there.
    plan.frameAlign = plan.batch;
    if (!isAmd && plan.tagFirst()) // A tag is stored with a clock.
      plan.frameAlign = std::max(plan.batch, 2u);
    if (isAmd && plan.aggregate)
      return module.emitError("strategy aggregate is not there for AMD GPUs "
                              "(strategy)");
    if (plan.flush && options.buffer == "shared")
      return module.emitError("strategy flush keeps its records in global "
                              "memory (buffer)");
    plan.maxFrameWords = findMaxFrameWords(module, plan.frameAlign);
    kernel->walk([&](kperf_gpu::AttachOp) { plan.handsOver = true; });
    if (plan.aggregate) {
      uint32_t words = countRegions(module) * record::kSumsWords;
      return place(module, plan, words, words);
    }

    // Left to itself, the pass keeps two frames at least: with one, a full
    // buffer shows nothing beside it. Where the cursor stops there is room for
    // one more, in vain.
    uint32_t more = plan.tagFirst() ? plan.maxFrameWords : 0;
    uint32_t oneFrame =
        llvm::alignTo(plan.maxFrameWords + more, kWordsAlignment);
    if (plan.flush)
      oneFrame = 2 * llvm::PowerOf2Ceil(plan.maxFrameWords +
                                        record::kHalfTrailerWords);
    uint32_t minimum = std::max<uint32_t>(
        llvm::alignTo(2 * plan.maxFrameWords + more, kWordsAlignment),
        oneFrame);
    uint32_t wanted =
        std::max<uint32_t>(minimum, kDefaultBytesPerWarp / record::kWordBytes);
    if (uint32_t bytes = findBufferBytes(plan)) {
      wanted = llvm::alignDown(bytes / record::kWordBytes / plan.totalWarps,
                               kWordsAlignment);
      minimum = std::min(minimum, wanted);
    }
    if (options.wordsPerWarp != 0) {
      wanted = llvm::alignTo(std::max(options.wordsPerWarp, oneFrame),
                             kWordsAlignment);
      if (options.buffer != "shared")
        minimum = wanted; // Less would drop what is known to come.
    }
    if (wanted < oneFrame)
      return module.emitError()
             << "profile buffer of " << options.bufferBytes
             << " bytes does not hold the largest frame (" << plan.maxFrameWords
             << " words) for each of " << plan.totalWarps
             << " warps; need at least "
             << oneFrame * plan.totalWarps * record::kWordBytes
             << " (buffer-bytes)";
    if (plan.flush) // A cursor's bits say how full its half is.
      minimum = wanted = llvm::bit_floor(wanted);
    return place(module, plan, wanted, minimum);
  }

  /// Bytes of records per CTA that are asked for; 0: as many as seem right.
  uint32_t findBufferBytes(const BufferPlan &plan) const {
    if (options.bufferBytes != 0 || options.strategy != "flush")
      return options.bufferBytes;
    return plan.flush ? kFlushBytes : kUntakenBytes;
  }

  static uint32_t countRegions(ModuleOp module) {
    auto regions = module->getAttrOfType<ArrayAttr>("kperf.regions");
    return regions ? static_cast<uint32_t>(regions.size()) : 0;
  }

  /// Shared memory if there is room for `minimum` words, as many of `wanted`
  /// as fit; else global memory.
  FailureOr<BufferPlan> place(ModuleOp module, BufferPlan plan, uint32_t wanted,
                              uint32_t minimum) {
    auto target = module->getAttrOfType<StringAttr>("ttg.target");
    StringRef targetName = target ? target.getValue() : StringRef();
    uint32_t limit = options.sharedLimitBytes ? options.sharedLimitBytes
                                              : findSharedLimit(targetName);
    uint32_t used = getModuleInt(module, "ttg.shared", 0);
    plan.offset = llvm::alignTo(used, 16);
    uint32_t room = limit > plan.offset ? limit - plan.offset : 0;
    uint32_t fixed = BufferPlan::sharedFixedBytes(plan.totalWarps);
    uint32_t bytesPerWarp = room > fixed ? (room - fixed) / plan.totalWarps : 0;
    uint32_t fitting =
        llvm::alignDown(bytesPerWarp / record::kWordBytes, kWordsAlignment);
    bool isOutside = options.buffer == "global" || plan.flush;
    if (!isOutside && fitting >= minimum) {
      plan.wordsPerWarp = std::min(wanted, fitting);
      return plan;
    }
    if (options.buffer == "shared")
      return module.emitError()
             << "the kernel uses " << used << " of " << limit
             << " bytes of shared memory; a profile buffer needs "
             << fixed + plan.totalWarps * minimum * record::kWordBytes
             << " (use buffer=auto or buffer=global)";
    if (plan.handsOver && room < kPointerSlotBytes)
      return module.emitError()
             << "the warp-specialised kernel uses all " << limit
             << " bytes of shared memory; kperfir needs " << kPointerSlotBytes;
    plan.global = true;
    plan.wordsPerWarp = wanted;
    plan.sharedBytes = plan.handsOver ? kPointerSlotBytes : 0;
    if (!plan.handsOver)
      plan.offset = used;
    return plan;
  }

  static uint32_t findMaxFrameWords(ModuleOp module, uint32_t align) {
    auto regions = module->getAttrOfType<ArrayAttr>("kperf.regions");
    uint32_t most = 0;
    for (Attribute frame : module->getAttrOfType<ArrayAttr>("kperf.frames")) {
      auto stamps = cast<ArrayAttr>(frame);
      uint32_t valueWords = 0;
      for (auto events : stamps.getAsRange<ArrayAttr>())
        for (auto event : events.getAsRange<kperf_gpu::EventAttr>())
          if (regions && event.getRegion() < regions.size())
            valueWords += countValueWords(regions[event.getRegion()]);
      most =
          std::max(most, record::frameWords(stamps.size(), valueWords, align));
    }
    return most;
  }

  /// Of what a region carries with each of its events: marks of a type do.
  static uint32_t countValueWords(Attribute region) {
    auto type = cast<DictionaryAttr>(region).getAs<StringAttr>("value");
    if (!type)
      return 0;
    return type.getValue().ends_with("64") ? 2 : 1;
  }

  /// Triton adds the address of the profile buffer to the kernel's parameters
  /// and `nbytes` for each CTA to what the driver allocates.
  void allocateScratch(FunctionOpInterface kernel, const BufferPlan &plan) {
    Block &entry = kernel.getFunctionBody().front();
    OpBuilder builder = OpBuilder::atBlockBegin(&entry);
    Type pointer = parseType("!tt.ptr<i8>", &getContext());
    Value scratch =
        createNamed(
            builder, kernel.getLoc(), "ttg.global_scratch_alloc", {pointer}, {},
            {builder.getNamedAttr("nbytes",
                                  builder.getI32IntegerAttr(plan.ctaBytes())),
             builder.getNamedAttr("alignment", builder.getI32IntegerAttr(
                                                   record::kBufferAlignment)),
             builder.getNamedAttr("third_party_allocation",
                                  builder.getUnitAttr())})
            ->getResult(0);
    kernel->walk([&](Operation *op) {
      if (isa<kperf_gpu::InitOp, kperf_gpu::FinalizeOp>(op))
        op->setOperands(scratch);
    });
  }

  PlanBufferOptions options;
};

} // namespace

std::unique_ptr<Pass> createPlanBuffer(OptionTexts texts) {
  OptionReader reader("kperf-plan-buffer", texts);
  PlanBufferOptions options;
  reader.readCount("buffer-bytes", options.bufferBytes);
  reader.readCount("words-per-warp", options.wordsPerWarp);
  reader.readChoice("strategy", options.strategy,
                    {"saturate", "ring", "flush", "aggregate"});
  reader.readChoice("buffer", options.buffer, {"auto", "shared", "global"});
  reader.readCount("sample-ctas", options.sampleCtas, /*minimum=*/1);
  reader.readCount("shared-limit-bytes", options.sharedLimitBytes);
  reader.readCount("first-cta", options.firstCta);
  reader.readCount("last-cta", options.lastCta);
  reader.readCount("first-sm", options.firstSm);
  reader.readCount("last-sm", options.lastSm);
  reader.readList("warps", options.warps);
  reader.readChoice("granularity", options.granularity,
                    {"warp", "warp-group", "cta"});
  std::string batch = "1";
  reader.readChoice("batch", batch, {"1", "2", "4"});
  options.batch = static_cast<uint32_t>(batch[0] - '0');
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<PlanBuffer>(std::move(options));
}

} // namespace mlir::kperf
