//===- LayoutJson.cpp - The layout as the decoder reads it ----------------===//

#include "passes/LayoutJson.h"

#include "Dialect/KPerfGPU/KPerfGPU.h"
#include "Record/RecordLayout.h"
#include "passes/ForeignOps.h"
#include "llvm/Support/JSON.h"

namespace json = llvm::json;
namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;

static json::Array writeRegions(ModuleOp module) {
  json::Array regions;
  for (Attribute attribute :
       module->getAttrOfType<ArrayAttr>("kperf.regions")) {
    json::Object region{{"id", static_cast<int64_t>(regions.size())}};
    for (NamedAttribute field : cast<DictionaryAttr>(attribute)) {
      json::ObjectKey key(field.getName().str());
      if (auto text = dyn_cast<StringAttr>(field.getValue()))
        region[key] = json::fixUTF8(text.getValue());
      else
        region[key] = cast<IntegerAttr>(field.getValue()).getInt();
    }
    regions.push_back(std::move(region));
  }
  return regions;
}

static json::Array writeStamp(ArrayAttr events) {
  json::Array list;
  for (auto event : events.getAsRange<kperf_gpu::EventAttr>())
    list.push_back(json::Array{stringifyEdge(event.getEdge()),
                               static_cast<int64_t>(event.getRegion())});
  return list;
}

static json::Array writeFrames(ModuleOp module) {
  json::Array frames;
  auto attributes = module->getAttrOfType<ArrayAttr>("kperf.frames");
  for (auto stamps : attributes.getAsRange<ArrayAttr>()) {
    json::Array list;
    for (auto events : stamps.getAsRange<ArrayAttr>())
      list.push_back(writeStamp(events));
    frames.push_back(json::Object{{"id", static_cast<int64_t>(frames.size())},
                                  {"stamps", std::move(list)}});
  }
  return frames;
}

/// Pairs of a region and a count.
static json::Array writePairs(DictionaryAttr fields, StringRef name) {
  json::Array pairs;
  ArrayRef<int32_t> flat = fields.getAs<DenseI32ArrayAttr>(name).asArrayRef();
  for (; flat.size() >= 2; flat = flat.drop_front(2))
    pairs.push_back(json::Array{flat[0], flat[1]});
  return pairs;
}

static json::Array writeFlows(ArrayAttr attributes) {
  json::Array flows;
  for (auto flow : attributes.getAsRange<DictionaryAttr>())
    flows.push_back(json::Object{
        {"id", static_cast<int64_t>(flows.size())},
        {"via", flow.getAs<StringAttr>("via").getValue()},
        {"slots", flow.getAs<IntegerAttr>("slots").getInt()},
        {"scope", flow.getAs<IntegerAttr>("scope").getInt()},
        {"issue", writePairs(flow, "issue")},
        {"wait", writePairs(flow, "wait")},
    });
  return flows;
}

/// Per warp the partitions that it runs, of all `ttg.warp_specialize` of the
/// kernel; in order, each once.
static SmallVector<SmallVector<int64_t, 2>>
listPartitions(FunctionOpInterface kernel, const BufferPlan &plan) {
  SmallVector<SmallVector<int64_t, 2>> partitions(plan.totalWarps);
  kernel->walk([&](Operation *op) {
    if (!isNamed(op, "ttg.warp_specialize"))
      return;
    auto starts = op->getAttrOfType<DenseI32ArrayAttr>("warpGroupStartIds");
    auto sizes = op->getAttrOfType<DenseI32ArrayAttr>("partitionNumWarps");
    if (!starts || !sizes)
      return;
    for (auto [index, start, size] :
         llvm::enumerate(starts.asArrayRef(), sizes.asArrayRef()))
      for (int32_t warp = start; warp < start + size; ++warp)
        if (static_cast<uint32_t>(warp) < plan.totalWarps &&
            !llvm::is_contained(partitions[warp], index))
          partitions[warp].push_back(static_cast<int64_t>(index));
  });
  return partitions;
}

SmallVector<WarpRole> kperf::listRoles(FunctionOpInterface kernel,
                                       const BufferPlan &plan) {
  SmallVector<WarpRole> roles{{"default", 0, plan.warps}};
  SmallVector<SmallVector<int64_t, 2>> partitions =
      listPartitions(kernel, plan);
  for (uint32_t warp = plan.warps; warp < plan.totalWarps; ++warp) {
    if (partitions[warp].empty())
      continue; // Only fills up a warp group.
    if (warp > plan.warps && partitions[warp] == partitions[warp - 1]) {
      ++roles.back().warps;
      continue;
    }
    std::string name = "partition";
    for (auto [position, index] : llvm::enumerate(partitions[warp])) {
      if (position)
        name += '/';
      name += std::to_string(index);
    }
    roles.push_back({std::move(name), warp, 1});
  }
  return roles;
}

static json::Array writeRoles(FunctionOpInterface kernel,
                              const BufferPlan &plan) {
  json::Array roles;
  for (const WarpRole &role : listRoles(kernel, plan))
    roles.push_back(json::Object{{"name", role.name},
                                 {"first_warp", role.firstWarp},
                                 {"warps", role.warps}});
  return roles;
}

static std::string print(const json::Object &layout) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << json::Value(json::Object(layout));
  return text;
}

static bool hasGaps(ModuleOp module) {
  auto frames = module->getAttrOfType<ArrayAttr>("kperf.frames");
  for (auto stamps : frames.getAsRange<ArrayAttr>())
    for (auto events : stamps.getAsRange<ArrayAttr>())
      for (auto event : events.getAsRange<kperf_gpu::EventAttr>())
        if (event.getEdge() == Edge::Gap)
          return true;
  return false;
}

/// The oldest version that says what there is to say.
static uint32_t findVersion(ModuleOp module, const BufferPlan &plan) {
  if (plan.flush)
    return record::kLayoutVersion;
  if (plan.tagFirst())
    return record::kTagFirstVersion;
  if (hasGaps(module))
    return record::kGapsVersion;
  if (plan.aggregate)
    return record::kSumsVersion;
  if (plan.frameAlign != 1)
    return record::kPaddedFramesVersion;
  auto regions = module->getAttrOfType<ArrayAttr>("kperf.regions");
  bool leavesOut = llvm::any_of(regions, [](Attribute region) {
    return cast<DictionaryAttr>(region).contains("step");
  });
  return leavesOut ? record::kSelectedIterationsVersion
                   : record::kEveryIterationVersion;
}

std::string kperf::writeLayout(ModuleOp module, FunctionOpInterface kernel,
                               BufferPlan &plan) {
  auto target = module->getAttrOfType<StringAttr>("ttg.target");
  json::Object layout{
      {"version", static_cast<int64_t>(findVersion(module, plan))},
      {"hash", 0},
      {"kernel", kernel.getName()},
      {"target", target ? target.getValue() : StringRef()},
      {"warp_size", getModuleInt(module, "ttg.threads-per-warp", 32)},
      {"strategy", plan.aggregate ? "aggregate"
                   : plan.ring    ? "ring"
                   : plan.flush   ? "flush"
                                  : "saturate"},
      {"buffer", plan.global ? "global" : "shared"},
      {"total_warps", static_cast<int64_t>(plan.totalWarps)},
      {"roles", writeRoles(kernel, plan)},
      {"words_per_warp", static_cast<int64_t>(plan.wordsPerWarp)},
      {"max_frame_words", static_cast<int64_t>(plan.maxFrameWords)},
      {"cta_bytes", static_cast<int64_t>(plan.ctaBytes())},
      {"regions", writeRegions(module)},
      {"frames", writeFrames(module)},
  };
  if (plan.frameAlign != 1)
    layout["frame_align"] = static_cast<int64_t>(plan.frameAlign);
  if (plan.batch != 1)
    layout["batch"] = static_cast<int64_t>(plan.batch);
  if (plan.tagFirst())
    layout["tag"] = "first";
  if (plan.selectsCtas())
    layout["ctas"] = json::Array{static_cast<int64_t>(plan.firstCta),
                                 static_cast<int64_t>(plan.lastCta),
                                 static_cast<int64_t>(plan.sampleCtas)};
  if (auto notes = module->getAttrOfType<ArrayAttr>("kperf.notes")) {
    json::Array texts;
    for (auto note : notes.getAsRange<StringAttr>())
      texts.push_back(json::fixUTF8(note.getValue()));
    layout["notes"] = std::move(texts);
  }
  auto flows = module->getAttrOfType<ArrayAttr>("kperf.flows");
  if (flows && !plan.aggregate) // Sums do not say which execution waited.
    layout["flows"] = writeFlows(flows);
  std::string unhashed = print(layout);
  plan.hash = record::fnv1a(unhashed.data(), unhashed.size());
  layout["hash"] = static_cast<int64_t>(plan.hash);
  return print(layout);
}
