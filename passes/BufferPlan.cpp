//===- BufferPlan.cpp - What kperf-plan-buffer decided --------------------===//

#include "passes/BufferPlan.h"

#include "Record/SharedLayout.h"

namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;

uint32_t BufferPlan::segmentBytes() const {
  return record::kWordBytes * record::segmentWords(wordsPerWarp);
}

uint32_t BufferPlan::sharedSegmentBytes() const {
  return record::sharedSegmentBytes(wordsPerWarp);
}

uint32_t BufferPlan::sharedFixedBytes(uint32_t totalWarps) {
  return record::sharedBytes(totalWarps, /*wordsPerWarp=*/0);
}

uint32_t BufferPlan::ctaBytes() const {
  return static_cast<uint32_t>(record::ctaBytes(totalWarps, wordsPerWarp));
}

uint32_t BufferPlan::limitBytes() const {
  return static_cast<uint32_t>(
      record::cursorLimitBytes(wordsPerWarp, maxFrameWords));
}

uint32_t BufferPlan::sharedEnd() const {
  if (global)
    return offset + sharedBytes;
  return offset + record::sharedBytes(totalWarps, wordsPerWarp);
}

/// The fields and their names, once for both directions. Those of a selection
/// are left out where nothing is selected.
template <typename Plan, typename Visitor>
static void visitFields(Plan &plan, Visitor visit) {
  visit("warps", plan.warps);
  visit("total_warps", plan.totalWarps);
  visit("words_per_warp", plan.wordsPerWarp);
  visit("max_frame_words", plan.maxFrameWords);
  visit("offset", plan.offset);
  visit("shared_bytes", plan.sharedBytes);
  visit("sample_ctas", plan.sampleCtas);
  visit("hash", plan.hash);
  visit("ring", plan.ring);
  visit("global", plan.global);
  visit("hands_over", plan.handsOver);
  visit("aggregate", plan.aggregate, 0);
  visit("flush", plan.flush, 0);
  visit("batch", plan.batch, 1);
  visit("frame_align", plan.frameAlign, 1);
  visit("first_cta", plan.firstCta, 0);
  visit("last_cta", plan.lastCta, 0);
  visit("first_sm", plan.firstSm, 0);
  visit("last_sm", plan.lastSm, 0);
  visit("warps_low", plan.warpsLow, ~0u);
  visit("warps_high", plan.warpsHigh, ~0u);
}

Attribute BufferPlan::toAttribute(OpBuilder &builder) const {
  SmallVector<NamedAttribute> fields;
  visitFields(*this, [&](StringRef name, uint32_t value,
                         std::optional<uint32_t> fallback = std::nullopt) {
    if (fallback == value)
      return;
    fields.push_back(builder.getNamedAttr(
        name, builder.getI32IntegerAttr(static_cast<int32_t>(value))));
  });
  return builder.getDictionaryAttr(fields);
}

FailureOr<BufferPlan> BufferPlan::fromModule(ModuleOp module) {
  auto fields = module->getAttrOfType<DictionaryAttr>("kperf.plan");
  if (!fields)
    return module.emitError() << "has no kperf.plan; run kperf-plan-buffer "
                                 "before convert-kperf-gpu-to-llvm";
  BufferPlan plan;
  StringRef missing;
  visitFields(plan, [&](StringRef name, auto &value,
                        std::optional<uint32_t> fallback = std::nullopt) {
    auto field = fields.getAs<IntegerAttr>(name);
    if (field)
      value = static_cast<uint32_t>(field.getInt());
    else if (!fallback)
      missing = name;
  });
  if (!missing.empty())
    return module.emitError() << "kperf.plan has no " << missing;
  return plan;
}
