//===- InsertFrames.cpp - Put stamps and frames where they were chosen ----===//
//
// Records that say which stamp of which frame they belong to: nesting is
// checked like that of any other record, and kperf-assign-frames makes the
// frames. Requests name operations and values by their numbers in
// kperf-list-operations.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerf/KPerf.h"
#include "passes/OperationList.h"
#include "passes/Options.h"
#include "passes/RegionTree.h"
#include "passes/ScopeTags.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::kperf {
#define GEN_PASS_DEF_INSERTFRAMES
#include "Passes.h.inc"

namespace {

struct AskedRegion {
  Kind kind;
  std::string name;
};

/// Where a stamp stands, and which it is.
struct Place {
  Operation *at;
  bool isBefore;
  DenseI32ArrayAttr stamp;
};

class FrameRequests {
public:
  explicit FrameRequests(const OperationList &list)
      : list(list), kernel(list.getKernel()) {}

  /// `<kind>:<name>`
  LogicalResult addRegion(StringRef text) {
    auto [kindName, name] = text.split(':');
    std::optional<Kind> kind = symbolizeKind(kindName);
    if (!kind || name.empty())
      return reject(text, "kind:name");
    regions.push_back({*kind, unescape(name)});
    return success();
  }

  /// `<stamp>;<stamp>`
  LogicalResult addFrame(StringRef text) {
    Block *block = nullptr;
    int32_t slot = 0;
    for (StringRef part : llvm::split(text, ';')) {
      Place place;
      place.stamp =
          DenseI32ArrayAttr::get(kernel->getContext(), {frames, slot++});
      if (failed(addStamp(part, place)))
        return failure();
      if (block && place.at->getBlock() != block)
        return reject(part, "stamps of a frame in one block");
      block = place.at->getBlock();
    }
    ++frames;
    return success();
  }

private:
  LogicalResult reject(StringRef found, const Twine &expected) {
    return kernel->emitError("kperf-insert-frames: found '")
           << found << "', expected " << expected;
  }

  /// `<operation>:before|after:<event>+<event>`
  LogicalResult addStamp(StringRef text, Place &place) {
    auto [digits, rest] = text.split(':');
    auto [side, events] = rest.split(':');
    place.isBefore = side == "before";
    place.at = list.findOperation(digits);
    if (!place.at || (!place.isBefore && side != "after"))
      return reject(text, "operation:before|after:events");
    if (!place.isBefore && !place.at->getNextNode())
      return reject(text, "no stamp behind the last operation of a block");
    llvm::SmallDenseSet<uint32_t> seen;
    for (StringRef event : llvm::split(events, '+'))
      if (failed(addEvent(event, place, seen)))
        return failure();
    return success();
  }

  /// `start|end|mark.<region>[@<value>]`
  LogicalResult addEvent(StringRef text, const Place &place,
                         llvm::SmallDenseSet<uint32_t> &seen) {
    auto [head, valueName] = text.split('@');
    auto [edgeName, digits] = head.split('.');
    std::optional<Edge> edge = symbolizeEdge(edgeName);
    uint32_t id;
    if (!edge || *edge == Edge::Gap || digits.getAsInteger(10, id) ||
        id >= regions.size())
      return reject(text, "start|end|mark.region[@value]");
    bool isMark = regions[id].kind == Kind::Mark;
    if ((*edge == Edge::Mark) != isMark ||
        (*edge == Edge::End && regions[id].kind == Kind::Iteration))
      return reject(text, "an edge that its region has: marks are marked, and "
                          "iterations end where the next one starts");
    if (!seen.insert(id).second)
      return reject(text, "one event of each region in a stamp");
    Value value;
    if (!valueName.empty() && !(value = list.findValue(valueName)))
      return reject(text, "a value of the kernel");
    if (value && (!isMark || !OperationList::isCarried(value.getType())))
      return reject(text, "an i32, i64, f32 or f64, carried by a mark");
    insert(*edge, regions[id], value, place);
    return success();
  }

  void insert(Edge edge, const AskedRegion &region, Value value,
              const Place &place) {
    OpBuilder builder(place.at);
    Operation *&last = behind.try_emplace(place.at, place.at).first->second;
    if (!place.isBefore)
      builder.setInsertionPointAfter(last);
    StringAttr origin;
    if (edge == Edge::Start)
      origin = builder.getStringAttr(place.at->getName().getStringRef());
    Location loc = place.at->getLoc();
    Operation *record;
    if (edge == Edge::Mark)
      record = MarkOp::create(builder, loc, region.name, value,
                              /*isUnsigned=*/false);
    else
      record = RecordOp::create(builder, loc, edge, region.name, region.kind,
                                origin);
    record->setDiscardableAttr(kStampAttribute, place.stamp);
    if (!place.isBefore)
      last = record;
  }

  const OperationList &list;
  Operation *kernel;
  SmallVector<AskedRegion> regions;
  int32_t frames = 0;
  DenseMap<Operation *, Operation *> behind; // What was put behind it, last.
};

struct InsertFrames : impl::InsertFramesBase<InsertFrames> {
  InsertFrames(std::string regions, std::string frames)
      : regions(std::move(regions)), frames(std::move(frames)) {}

  void runOnOperation() override {
    FailureOr<OperationList> list = OperationList::take(getOperation());
    if (failed(list))
      return signalPassFailure();
    FrameRequests requests(*list);
    auto addRegion = [&](StringRef text) { return requests.addRegion(text); };
    auto addFrame = [&](StringRef text) { return requests.addFrame(text); };
    if (failed(OperationList::forEachRequest(regions, addRegion)) ||
        failed(OperationList::forEachRequest(frames, addFrame)))
      signalPassFailure();
  }

  std::string regions;
  std::string frames;
};

} // namespace

std::unique_ptr<Pass> createInsertFrames(OptionTexts texts) {
  OptionReader reader("kperf-insert-frames", texts);
  std::string regions, frames;
  reader.readText("regions", regions);
  reader.readText("frames", frames);
  if (std::unique_ptr<Pass> rejected = reader.reject())
    return rejected;
  return std::make_unique<InsertFrames>(std::move(regions), std::move(frames));
}

} // namespace mlir::kperf
