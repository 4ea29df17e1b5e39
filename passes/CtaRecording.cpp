//===- CtaRecording.cpp - Segments, headers and anchors of a CTA ----------===//
//
// Owns the beginning: where a warp's segment is, what is cleared, the start
// anchor. The end is CopyOut.cpp.
//
//===----------------------------------------------------------------------===//

#include "passes/CtaRecording.h"

#include "Record/RecordLayout.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/MathExtras.h"

namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;

Value CtaRecording::getScratch(Operation *op) const {
  Value pointer = op->getOperand(0);
  // !tt.ptr became an LLVM pointer under a cast that only our use keeps.
  if (Operation *cast = pointer.getDefiningOp();
      cast && isNamed(cast, "builtin.unrealized_conversion_cast"))
    pointer = cast->getOperand(0);
  return pointer;
}

Value CtaRecording::readCode(LLVMBuilder &b, Value pointer) const {
  constexpr int32_t kMask = record::kBufferAlignment - 1;
  for (Operation *op = pointer.getDefiningOp();
       op && isNamed(op, "llvm.getelementptr"); op = pointer.getDefiningOp())
    pointer = op->getOperand(0);
  Value address = b.cast("llvm.ptrtoint", pointer, b.i64());
  return b.both(b.cast("llvm.trunc", address, b.i32()), b.constant(kMask));
}

/// `value` is at least `first` and, if `last` is not 0, less than it.
static Value isWithin(LLVMBuilder &b, Value value, uint32_t first,
                      uint32_t last) {
  Value distance = b.sub(value, b.constant(first));
  uint32_t count = last ? last - first : ~first; // No end: up to 2^32 - 2.
  return b.compare(Compare::Ult, distance,
                   b.constant(static_cast<int32_t>(count)));
}

CtaId CtaRecording::readCtaId(LLVMBuilder &b) const {
  return {target.readCtaId(b, 0), target.readCtaId(b, 1),
          target.readCtaId(b, 2)};
}

Value CtaRecording::findCtaIndex(LLVMBuilder &b, const CtaId &id) const {
  auto count = [&](unsigned i) { return target.readCtaCount(b, i); };
  Value plane = b.add(id[1], b.binary("llvm.mul", count(1), id[2]));
  return b.add(id[0], b.binary("llvm.mul", count(0), plane));
}

Value CtaRecording::findRoom(LLVMBuilder &b, Value code) const {
  return b.binary("llvm.lshr", b.binary("llvm.shl", b.constant(1), code),
                  b.constant(1));
}

Value CtaRecording::isSampled(LLVMBuilder &b, Value room,
                              Value ctaIndex) const {
  Value index = ctaIndex;
  if (plan.firstCta)
    index = b.sub(index, b.constant(static_cast<int32_t>(plan.firstCta)));
  Value sampled = b.compare(Compare::Ult, index, room);
  if (plan.lastCta)
    sampled =
        b.both(sampled, isWithin(b, ctaIndex, plan.firstCta, plan.lastCta));
  if (plan.sampleCtas != 1) {
    Value phase = b.binary("llvm.urem", index, b.constant(plan.sampleCtas));
    sampled = b.both(sampled, b.compare(Compare::Eq, phase, b.constant(0)));
  }
  if (plan.selectsSms())
    sampled = b.both(sampled,
                     isWithin(b, target.readSm(b), plan.firstSm, plan.lastSm));
  return sampled;
}

Value CtaRecording::isSelected(LLVMBuilder &b, Value warp) const {
  if (!plan.selectsWarps())
    return {};
  uint64_t mask = uint64_t(plan.warpsHigh) << 32 | plan.warpsLow;
  Value bits =
      b.binary("llvm.lshr", b.constant(static_cast<int64_t>(mask), b.i64()),
               b.extend(warp));
  return b.cast("llvm.trunc", bits, b.i1());
}

Value CtaRecording::sharedAddress(LLVMBuilder &b) const {
  MLIRContext *context = b.i32().getContext();
  Value base = createNamed(b.builder, b.loc, "llvm.mlir.addressof",
                           {parseType("!llvm.ptr<3>", context)}, {},
                           {b.builder.getNamedAttr(
                               "global_name",
                               FlatSymbolRefAttr::get(context, "global_smem"))})
                   ->getResult(0);
  return b.add(b.cast("llvm.ptrtoint", base, b.i32()), plan.offset);
}

void CtaRecording::locate(LLVMBuilder &b, Segment &segment) const {
  Value firstHeader =
      plan.global ? b.add(segment.scratch, kSegmentsOffset) : sharedAddress(b);
  segment.warp =
      b.binary("llvm.lshr", segment.thread, b.constant(target.getWarpShift()));
  segment.lane = b.both(segment.thread, b.constant(target.getWarpSize() - 1));
  Value offset = b.mul(segment.warp, segmentStride());
  segment.header = b.add(firstHeader, plan.global ? b.extend(offset) : offset);
  segment.first = b.compare(Compare::Eq, segment.lane, b.constant(0));
  segment.leader = b.compare(Compare::Eq, segment.thread, b.constant(0));
  segment.data = b.constant(0);
  Value data = b.add(segment.header, kHeaderBytes);
  (plan.global ? segment.base : segment.data) = data;
}

/// What the thread's number is not needed for comes first: that takes longest.
Segment CtaRecording::findSegment(LLVMBuilder &b, Value pointer) const {
  Segment segment;
  segment.thread = target.readThreadId(b);
  if (!plan.needsSampling()) {
    segment.sampled = b.constant(1, b.i1());
  } else if (pointer) {
    Value code = readCode(b, pointer);
    bool findsOutLate =
        !plan.global && !plan.selectsCtas() && !plan.selectsSms();
    segment.sampled = findsOutLate ? b.compare(Compare::Ne, code, b.constant(0))
                                   : isSampled(b, findRoom(b, code),
                                               findCtaIndex(b, readCtaId(b)));
    if (plan.global)
      segment.scratch =
          b.sub(b.cast("llvm.ptrtoint", pointer, b.i64()), b.extend(code));
  } else if (plan.global) {
    Value shared = sharedAddress(b);
    Value low = b.extend(target.load(b, shared, 0));
    Value high = b.extend(target.load(b, shared, 4));
    segment.scratch = b.binary(
        "llvm.or", low, b.binary("llvm.shl", high, b.constant(32, b.i64())));
    segment.sampled =
        b.compare(Compare::Ne, segment.scratch, b.constant(0, b.i64()));
  }
  locate(b, segment);
  if (!segment.sampled) {
    Value cursor = target.load(b, segment.header, bytesOf(record::kCursorWord));
    segment.sampled = b.compare(Compare::Sge, cursor, b.constant(0));
  }
  segment.owner = b.both(segment.first, segment.sampled);
  if (plan.global)
    segment.leader = b.both(segment.leader, segment.sampled);
  segment.active = segment.owner;
  if (Value selected = isSelected(b, segment.warp))
    segment.active = b.both(segment.owner, selected);
  segment.limit = b.add(segment.data, plan.limitBytes());
  // Cursors depend on whether a lane records then. If LLVM could tell, it would
  // make loops of their own for the lanes that do not.
  if (plan.flush)
    segment.limit = b.select(segment.active, segment.limit, b.constant(-1));
  // Only lane 0 stores, so others may stop elsewhere.
  if (!plan.global && !plan.ring && target.movesUniforms())
    segment.limit = b.add(segment.limit, segment.lane);
  return segment;
}

/// Sums are all copied, and know no cursor: theirs is at the end.
WarpState CtaRecording::firstState(LLVMBuilder &b,
                                   const Segment &segment) const {
  Value cursor = segment.data;
  if (plan.aggregate)
    cursor = b.select(segment.active, b.add(cursor, bytesOf(plan.wordsPerWarp)),
                      cursor);
  return {cursor, b.constant(0)};
}

WarpState CtaRecording::loadState(LLVMBuilder &b,
                                  const Segment &segment) const {
  if (plan.aggregate)
    return firstState(b, segment);
  auto load = [&](uint32_t word) {
    return target.loadIf(b, {segment.header, segment.sampled}, bytesOf(word));
  };
  Value offset = load(record::kCursorWord);
  Value records = load(record::kRecordsWord);
  return {b.add(segment.data, offset), records};
}

/// Partition warps take their state from headers before any of them could have
/// written one, so the kernel's own warps clear all; in shared memory those of
/// a CTA that is not recorded too, whose cursor of -1 tells the partitions.
void CtaRecording::clearHeaders(LLVMBuilder &b, const Segment &segment) const {
  Value zero = b.constant(0);
  Value cursor = zero;
  if (plan.handsOver && !plan.global)
    cursor = b.select(segment.sampled, zero, b.constant(-1));
  for (uint32_t first = 0; first < plan.totalWarps; first += plan.warps) {
    uint64_t step = uint64_t(first) * segmentStride();
    Value mine = plan.global ? segment.owner : segment.first;
    if (first + plan.warps > plan.totalWarps)
      mine = b.both(mine, b.compare(Compare::Ult, segment.warp,
                                    b.constant(plan.totalWarps - first)));
    StorePlace place = target.prepare(b, {b.add(segment.header, step), mine});
    // With laps the other words are the host's.
    SmallVector<Value> words(plan.flush ? record::kControlEntryWord
                                        : record::kSegmentHeaderWords,
                             zero);
    words[record::kCursorWord] = cursor;
    target.storeWords(b, place, 0, words);
    if (!plan.handsOver)
      return; // Partitions do not record.
  }
}

void CtaRecording::clearSums(LLVMBuilder &b, Block *after,
                             const Segment &segment) const {
  constexpr uint32_t kWords = 4; // That one lane clears at once.
  SmallVector<Value> zeros(kWords, b.constant(0));
  uint32_t last = plan.handsOver ? plan.totalWarps : plan.warps;
  for (uint32_t first = 0; first < last; first += plan.warps) {
    Block *next = b.createBlockBefore(after);
    Block *check = b.createBlockBefore(next, {b.i32()}); // Byte of the data.
    Block *body = b.createBlockBefore(next);
    Value size = b.constant(bytesOf(plan.wordsPerWarp));
    Value mine = segment.sampled;
    if (first + plan.warps > plan.totalWarps)
      mine = b.both(mine, b.compare(Compare::Ult, segment.warp,
                                    b.constant(plan.totalWarps - first)));
    uint64_t step = uint64_t(first) * segmentStride() + kHeaderBytes;
    Value data = b.add(segment.header, step);
    Value begin = b.mul(segment.lane, bytesOf(kWords));
    b.branch(check, {b.select(mine, begin, size)});

    b.builder.setInsertionPointToEnd(check);
    Value offset = check->getArgument(0);
    Value inside = b.compare(Compare::Ult, offset, size);
    b.branchIf(inside, body, next);

    b.builder.setInsertionPointToEnd(body);
    Value at = plan.global ? b.extend(offset) : offset;
    target.storeWords(b, {b.add(data, at), inside}, 0, zeros);
    b.branch(check, {b.add(offset, target.getWarpSize() * bytesOf(kWords))});
    b.builder.setInsertionPointToEnd(next);
  }
  b.branch(after);
}

void CtaRecording::begin(Operation *init, const Segment &segment) const {
  LLVMBuilder b(init);
  if (plan.keepsHeaders())
    clearHeaders(b, segment);
  if (plan.aggregate) {
    Block *after = b.splitBefore(init);
    clearSums(b, after, segment);
    b.builder.setInsertionPoint(init);
    target.syncWarp(b); // One lane alone keeps what all have cleared.
  }
  if (!plan.global)
    return target.storeAnchor(b, {sharedAddress(b), segment.leader},
                              plan.anchorOffset(),
                              plan.anchorOffset() + 2 * record::kWordBytes);
  StorePlace place{segment.scratch, segment.leader};
  if (plan.handsOver) {
    Value first = b.compare(Compare::Eq, segment.thread, b.constant(0));
    Value handed =
        b.select(segment.sampled, segment.scratch, b.constant(0, b.i64()));
    target.store(b, {sharedAddress(b), first}, 0, handed);
  }
  target.storeAnchor(b, place, bytesOf(record::kStartClockWord),
                     bytesOf(record::kStartGlobalTimerWord));
  target.store(b, place, bytesOf(record::kSmIdWord), target.readSm(b));
}
