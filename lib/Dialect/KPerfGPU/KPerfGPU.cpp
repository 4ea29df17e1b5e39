//===- KPerfGPU.cpp - The dialect kperf_gpu: how to measure ---------------===//
//
// Registration, the syntax of stamps, and the invariants of a frame: each slot
// stamped exactly once and in order, the frame closed exactly once.
//
//===----------------------------------------------------------------------===//

#include "Dialect/KPerfGPU/KPerfGPU.h"

#include "Record/RecordLayout.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kperf_gpu;

static ParseResult parseSlot(OpAsmParser &parser, IntegerAttr &slot) {
  int32_t value;
  if (parser.parseInteger(value))
    return failure();
  slot = parser.getBuilder().getI32IntegerAttr(value);
  return success();
}

static void printSlot(OpAsmPrinter &printer, Operation *, IntegerAttr slot) {
  printer << slot.getInt();
}

static ParseResult parseEvents(OpAsmParser &parser, ArrayAttr &events) {
  SmallVector<Attribute> list;
  auto parseEvent = [&]() -> ParseResult {
    StringRef keyword;
    uint32_t region;
    llvm::SMLoc where = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword) || parser.parseInteger(region))
      return failure();
    std::optional<kperf::Edge> edge = kperf::symbolizeEdge(keyword);
    if (!edge)
      return parser.emitError(where, "expected start, end or mark, found ")
             << keyword;
    list.push_back(EventAttr::get(parser.getContext(), *edge, region));
    return success();
  };
  if (parser.parseCommaSeparatedList(parseEvent))
    return failure();
  events = parser.getBuilder().getArrayAttr(list);
  return success();
}

static void printEvents(OpAsmPrinter &printer, Operation *, ArrayAttr events) {
  llvm::interleaveComma(events, printer, [&](Attribute attribute) {
    auto event = cast<EventAttr>(attribute);
    printer << kperf::stringifyEdge(event.getEdge()) << ' '
            << event.getRegion();
  });
}

#include "KPerfGPU/KPerfGPUDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "KPerfGPU/KPerfGPUAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "KPerfGPU/KPerfGPUTypes.cpp.inc"

#define GET_OP_CLASSES
#include "KPerfGPU/KPerfGPUOps.cpp.inc"

void KPerfGPUDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "KPerfGPU/KPerfGPUAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "KPerfGPU/KPerfGPUTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "KPerfGPU/KPerfGPUOps.cpp.inc"
      >();
}

LogicalResult
FrameType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                  uint32_t id, uint32_t slots, uint32_t /*valueWords*/) {
  if (slots == 0)
    return emitError() << "a frame has at least one slot";
  if (id >= kperfir::record::kMaxFrames)
    return emitError() << "frame id " << id << " does not fit a tag; at most "
                       << kperfir::record::kMaxFrames - 1;
  return success();
}

LogicalResult InitOp::verify() {
  if (!(*this)->getBlock()->isEntryBlock())
    return emitOpError("must stand in the entry block of the kernel");
  return success();
}

LogicalResult StampOp::verify() {
  uint32_t slots = getFrame().getType().getSlots();
  if (getSlot() >= slots)
    return emitOpError("slot ")
           << getSlot() << " is outside the frame's " << slots << " slots";
  if (getEvents().empty())
    return emitOpError("needs at least one event");
  return success();
}

/// Stamps and close of a frame that stand in one block must stand in order;
/// across blocks, dominance by the frame value is all that can be asked.
static LogicalResult verifyOrder(OpenFrameOp open) {
  Operation *last = open;
  int64_t lastSlot = -1;
  for (Operation *op = open->getNextNode(); op; op = op->getNextNode()) {
    if (!llvm::is_contained(op->getOperands(), open.getFrame()))
      continue;
    if (isa<CloseFrameOp>(last))
      return op->emitOpError("uses a frame after it was closed");
    last = op;
    auto stamp = dyn_cast<StampOp>(op);
    if (!stamp)
      continue;
    if (static_cast<int64_t>(stamp.getSlot()) < lastSlot)
      return stamp.emitOpError("stamps slot ")
             << stamp.getSlot() << " after slot " << lastSlot;
    lastSlot = stamp.getSlot();
  }
  return success();
}

uint32_t StoreValueOp::countWords(Type type) {
  return type.getIntOrFloatBitWidth() / 32;
}

/// Each word for values belongs to one value.
static LogicalResult verifyValues(OpenFrameOp open) {
  llvm::BitVector stored(open.getFrame().getType().getValueWords());
  for (Operation *user : open.getFrame().getUsers()) {
    auto store = dyn_cast<StoreValueOp>(user);
    if (!store)
      continue;
    uint32_t words = StoreValueOp::countWords(store.getValue().getType());
    for (uint32_t word = store.getWord(); word < store.getWord() + words;
         ++word) {
      if (word >= stored.size())
        return store.emitOpError("word ") << word << " is outside the frame's "
                                          << stored.size() << " for values";
      if (stored.test(word))
        return store.emitOpError("stores word ") << word << " a second time";
      stored.set(word);
    }
  }
  if (int missing = stored.find_first_unset(); missing != -1)
    return open.emitOpError("word ")
           << missing << " for values is never stored";
  return success();
}

LogicalResult OpenFrameOp::verify() {
  unsigned closes = 0;
  llvm::BitVector stamped(getFrame().getType().getSlots());
  for (Operation *user : getFrame().getUsers()) {
    if (isa<CloseFrameOp>(user)) {
      ++closes;
      continue;
    }
    if (isa<StoreValueOp>(user))
      continue;
    auto stamp = dyn_cast<StampOp>(user);
    if (!stamp)
      return user->emitOpError("uses a frame; only stamp, store_value and "
                               "close_frame may");
    if (stamp.getSlot() >= stamped.size())
      return success(); // The stamp's own verifier says so.
    if (stamped.test(stamp.getSlot()))
      return stamp.emitOpError("stamps slot ")
             << stamp.getSlot() << " a second time";
    stamped.set(stamp.getSlot());
  }
  if (int missing = stamped.find_first_unset(); missing != -1)
    return emitOpError("slot ") << missing << " is never stamped";
  if (closes != 1)
    return emitOpError("must be closed exactly once, is closed ")
           << closes << " times";
  if (failed(verifyValues(*this)))
    return failure();
  return verifyOrder(*this);
}
