//===- CtaRecording.cpp - Segments, headers and anchors of a CTA ----------===//
//
// Nothing here waits for other warps: each warp copies its own segment, and in
// warp-specialised kernels the default warps copy all of them after the join
// that Triton makes. A barrier of ours could meet warps that never arrive.
//
//===----------------------------------------------------------------------===//

#include "passes/CtaRecording.h"

#include "Record/RecordLayout.h"
#include "mlir/AsmParser/AsmParser.h"
#include "llvm/Support/MathExtras.h"

namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;

static constexpr uint32_t bytesOf(uint32_t word) {
  return word * record::kWordBytes;
}
static constexpr uint32_t kHeaderBytes = bytesOf(record::kSegmentHeaderWords);
static constexpr uint32_t kSegmentsOffset = bytesOf(record::kCtaHeaderWords);

Value CtaRecording::getScratch(Operation *op) const {
  Value pointer = op->getOperand(0);
  // !tt.ptr became an LLVM pointer under a cast that only our use keeps.
  if (Operation *cast = pointer.getDefiningOp();
      cast && isNamed(cast, "builtin.unrealized_conversion_cast"))
    pointer = cast->getOperand(0);
  return pointer;
}

/// How many CTAs have room: the low bits of the share's address. Shares are
/// multiples of them apart, so they are those of the kernel's argument, which
/// is there before the share is found.
static Value readCode(LLVMBuilder &b, Value pointer) {
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

Value CtaRecording::isSampled(LLVMBuilder &b, Value code) const {
  auto axis = [&](unsigned i) { return target.readCtaId(b, i); };
  auto count = [&](unsigned i) { return target.readCtaCount(b, i); };
  Value plane = b.add(axis(1), b.binary("llvm.mul", count(1), axis(2)));
  Value linear = b.add(axis(0), b.binary("llvm.mul", count(0), plane));
  Value index = linear;
  if (plan.firstCta)
    index = b.sub(linear, b.constant(static_cast<int32_t>(plan.firstCta)));
  // 2^(code - 1) CTAs from the first have room; none with code 0.
  Value room = b.binary("llvm.lshr", b.binary("llvm.shl", b.constant(1), code),
                        b.constant(1));
  Value sampled = b.compare(Compare::Ult, index, room);
  if (plan.lastCta)
    sampled = b.both(sampled, isWithin(b, linear, plan.firstCta, plan.lastCta));
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

Value CtaRecording::headerOfWarp(LLVMBuilder &b, Value shared, Value scratch,
                                 Value warp) const {
  Value offset = b.mul(warp, plan.segmentBytes());
  if (!plan.global)
    return b.add(shared, offset);
  return b.add(b.add(scratch, kSegmentsOffset), b.extend(offset));
}

Segment CtaRecording::findSegment(LLVMBuilder &b, Value pointer) const {
  Segment segment;
  segment.thread = target.readThreadId(b);
  segment.warp =
      b.binary("llvm.lshr", segment.thread, b.constant(target.getWarpShift()));
  segment.lane = b.both(segment.thread, b.constant(target.getWarpSize() - 1));
  segment.first = b.compare(Compare::Eq, segment.lane, b.constant(0));

  Value shared;
  if (!plan.global || plan.handsOver)
    shared = sharedAddress(b);
  if (pointer) {
    Value code = readCode(b, pointer);
    Value address = b.cast("llvm.ptrtoint", pointer, b.i64());
    segment.scratch = b.sub(address, b.extend(code));
    segment.sampled = isSampled(b, code);
  } else if (plan.global) {
    Value low = b.extend(target.load(b, shared, 0));
    Value high = b.extend(target.load(b, shared, 4));
    segment.scratch = b.binary(
        "llvm.or", low, b.binary("llvm.shl", high, b.constant(32, b.i64())));
    segment.sampled =
        b.compare(Compare::Ne, segment.scratch, b.constant(0, b.i64()));
  }
  segment.header = headerOfWarp(b, shared, segment.scratch, segment.warp);
  if (!segment.sampled) {
    Value cursor = target.load(b, segment.header, bytesOf(record::kCursorWord));
    segment.sampled = b.compare(Compare::Sge, cursor, b.constant(0));
  }
  segment.owner = b.both(segment.first, segment.sampled);
  segment.active = segment.owner;
  if (Value selected = isSelected(b, segment.warp))
    segment.active = b.both(segment.owner, selected);
  if (plan.global) {
    segment.base = b.add(segment.header, kHeaderBytes);
    segment.data = b.constant(0);
  } else {
    segment.data = b.add(segment.header, kHeaderBytes);
  }
  segment.limit = b.select(
      segment.active, b.add(segment.data, plan.limitBytes()), b.constant(-1));
  return segment;
}

/// Sums are all copied, and know no cursor: theirs is at the end.
WarpState CtaRecording::firstState(LLVMBuilder &b,
                                   const Segment &segment) const {
  uint32_t used = plan.aggregate ? bytesOf(plan.wordsPerWarp) : 0;
  return {b.add(segment.data, used), b.constant(0)};
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

void CtaRecording::storeState(LLVMBuilder &b, const Segment &segment,
                              WarpState state) const {
  StorePlace place = target.prepare(b, {segment.header, segment.active});
  target.store(b, place, bytesOf(record::kCursorWord),
               b.sub(state.cursor, segment.data));
  target.store(b, place, bytesOf(record::kRecordsWord), state.records);
}

Block *CtaRecording::openFirstThread(LLVMBuilder &b, Operation *at,
                                     const Segment &segment) const {
  Block *after = b.splitBefore(at);
  Block *body = b.createBlockBefore(after);
  Value first = b.compare(Compare::Eq, segment.thread, b.constant(0));
  b.branchIf(b.both(first, segment.sampled), body, after);
  b.builder.setInsertionPointToEnd(body);
  return after;
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
    uint64_t step = uint64_t(first) * plan.segmentBytes();
    Value mine = plan.global ? segment.owner : segment.first;
    if (first + plan.warps > plan.totalWarps)
      mine = b.both(mine, b.compare(Compare::Ult, segment.warp,
                                    b.constant(plan.totalWarps - first)));
    StorePlace place = target.prepare(b, {b.add(segment.header, step), mine});
    target.store(b, place, bytesOf(record::kCursorWord), cursor);
    for (uint32_t word :
         {record::kRecordsWord, record::kLapEndWord, record::kLapsWord})
      target.store(b, place, bytesOf(word), zero);
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
    uint64_t step = uint64_t(first) * plan.segmentBytes() + kHeaderBytes;
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
  clearHeaders(b, segment);
  if (plan.aggregate) {
    Block *after = b.splitBefore(init);
    clearSums(b, after, segment);
    b.builder.setInsertionPoint(init);
    target.syncWarp(b); // One lane alone keeps what all have cleared.
  }
  Value scratch = segment.scratch;
  if (plan.global && plan.handsOver) {
    Value first = b.compare(Compare::Eq, segment.thread, b.constant(0));
    Value handed = b.select(segment.sampled, scratch, b.constant(0, b.i64()));
    StorePlace slot = target.prepare(b, {sharedAddress(b), first});
    target.store(b, slot, 0, b.cast("llvm.trunc", handed, b.i32()));
    Value high = b.binary("llvm.lshr", handed, b.constant(32, b.i64()));
    target.store(b, slot, 4, b.cast("llvm.trunc", high, b.i32()));
  }
  Block *after = openFirstThread(b, init, segment);
  Value clock = target.readClock(b);
  Value timer = target.readGlobalTimer(b);
  target.storeGlobal(b, scratch, bytesOf(record::kSmIdWord), target.readSm(b));
  target.storeGlobal(b, scratch, bytesOf(record::kStartClockWord), clock);
  target.storeGlobal(b, scratch, bytesOf(record::kStartGlobalTimerWord), timer);
  b.branch(after);
}

void CtaRecording::copySegment(LLVMBuilder &b, Value warp, Block *after,
                               const Segment &segment) const {
  Block *check = b.createBlockBefore(after, {b.i32()}); // Byte of the segment.
  Block *body = b.createBlockBefore(after);
  Value header = headerOfWarp(b, sharedAddress(b), Value(), warp);
  Value cursor = target.load(b, header, bytesOf(record::kCursorWord));
  Value lapEnd = target.load(b, header, bytesOf(record::kLapEndWord));
  Value bytes = b.add(b.max(cursor, lapEnd), kHeaderBytes);
  Value to = b.add(b.add(segment.scratch, kSegmentsOffset),
                   b.extend(b.mul(warp, plan.segmentBytes())));
  b.branch(check, {b.mul(segment.lane, record::kWordBytes)});

  b.builder.setInsertionPointToEnd(check);
  Value offset = check->getArgument(0);
  b.branchIf(b.compare(Compare::Ult, offset, bytes), body, after);

  b.builder.setInsertionPointToEnd(body);
  Value word = target.load(b, b.add(header, offset), 0);
  target.storeGlobal(b, b.add(to, b.extend(offset)), 0, word);
  b.branch(check, {b.add(offset, target.getWarpSize() * record::kWordBytes)});
}

void CtaRecording::copySegments(LLVMBuilder &b, Block *after,
                                const Segment &segment) const {
  if (!plan.handsOver)
    return copySegment(b, segment.warp, after, segment);
  Block *check = b.createBlockBefore(after, {b.i32()}); // Warp.
  Block *copy = b.createBlockBefore(after);
  Block *next = b.createBlockBefore(after);
  Value warp = check->getArgument(0);
  b.branch(check, {segment.warp});
  b.builder.setInsertionPointToEnd(check);
  b.branchIf(b.compare(Compare::Ult, warp, b.constant(plan.totalWarps)), copy,
             after);
  b.builder.setInsertionPointToEnd(next);
  b.branch(check, {b.add(warp, plan.warps)});
  b.builder.setInsertionPointToEnd(copy);
  copySegment(b, warp, next, segment);
}

void CtaRecording::end(Operation *finalize, const Segment &segment,
                       WarpState state) const {
  LLVMBuilder b(finalize);
  Value clock = target.readClock(b);
  Value timer = target.readGlobalTimer(b);
  storeState(b, segment, state);
  target.syncWarp(b);
  if (!plan.global) {
    Block *after = b.splitBefore(finalize);
    Block *copy = b.createBlockBefore(after);
    b.branchIf(segment.sampled, copy, after);
    b.builder.setInsertionPointToEnd(copy);
    copySegments(b, after, segment);
    b.builder.setInsertionPoint(finalize);
  }
  Block *after = openFirstThread(b, finalize, segment);
  Value scratch = segment.scratch;
  auto store = [&](uint32_t word, Value value) {
    target.storeGlobal(b, scratch, bytesOf(word), value);
  };
  store(record::kLayoutHashWord, b.constant(static_cast<int32_t>(plan.hash)));
  store(record::kCtaIdXWord, target.readCtaId(b, 0));
  store(record::kCtaIdYWord, target.readCtaId(b, 1));
  store(record::kCtaIdZWord, target.readCtaId(b, 2));
  store(record::kEndClockWord, clock);
  store(record::kEndGlobalTimerWord, timer);
  store(record::kReservedWord, b.constant(0, b.i64()));
  store(record::kCtaMagicWord, b.constant(record::kCtaMagic));
  b.branch(after);
}
