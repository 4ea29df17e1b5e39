//===- CopyOut.cpp - What a CTA does at its end ---------------------------===//
//
// Each warp copies what it has written from shared memory to the CTA's share of
// the buffer, 16 bytes per lane at a time; the first thread writes the CTA's
// header. Where that goes is found out here: until then it takes no register.
// What is waited for longest comes first, so that latencies overlap.
//
// Nothing here waits for other warps: each warp copies its own segment, and in
// warp-specialised kernels the default warps copy all of them after the join
// that Triton makes. A barrier of ours could meet warps that never arrive.
//
//===----------------------------------------------------------------------===//

#include "passes/CtaRecording.h"

namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;

/// Bytes that a lane copies at a time.
static constexpr uint32_t kCopiedBytes = 4 * record::kWordBytes;

static std::optional<int64_t> readConstant(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !isNamed(op, "llvm.mlir.constant"))
    return std::nullopt;
  auto attribute = op->getAttrOfType<IntegerAttr>("value");
  return attribute ? std::optional(attribute.getInt()) : std::nullopt;
}

/// Takes a constant operand off `value` if that is an operation `name`.
static std::optional<int64_t> peelConstant(Value &value, StringRef name) {
  Operation *op = value.getDefiningOp();
  if (!op || !isNamed(op, name))
    return std::nullopt;
  std::optional<int64_t> constant = readConstant(op->getOperand(1));
  if (constant)
    value = op->getOperand(0);
  return constant;
}

/// The CTA's share, without the code. Triton has made its address at the
/// kernel's beginning as `argument + (index * bytes + offset)`, with an index
/// of 64 bits. If that is what it looks like it is made again here, where the
/// warp waits for other things, of the 32 bits that an index of a CTA with room
/// has.
static Value findShare(LLVMBuilder &b, Value pointer, Value ctaIndex) {
  Operation *op = pointer.getDefiningOp();
  Value share = pointer, offset;
  if (op && isNamed(op, "llvm.getelementptr") && op->getNumOperands() == 2) {
    Value index = op->getOperand(1);
    int64_t fixed = peelConstant(index, "llvm.add").value_or(0);
    if (std::optional<int64_t> bytes = peelConstant(index, "llvm.mul")) {
      share = op->getOperand(0);
      offset = b.add(
          b.binary("llvm.mul", b.extend(ctaIndex), b.constant(*bytes, b.i64())),
          fixed);
    }
  }
  constexpr int64_t kCodeMask = record::kBufferAlignment - 1;
  Value address = b.both(b.cast("llvm.ptrtoint", share, b.i64()),
                         b.constant(~kCodeMask, b.i64()));
  return offset ? b.add(address, offset) : address;
}

Value CtaRecording::findEnd(LLVMBuilder &b, const Segment &segment,
                            WarpState state) const {
  if (!plan.ring)
    return state.cursor;
  Value lapEnd = target.loadIf(b, {segment.header, segment.first},
                               bytesOf(record::kLapEndWord));
  return b.max(state.cursor, b.add(segment.data, lapEnd));
}

void CtaRecording::storeState(LLVMBuilder &b, const Segment &segment,
                              WarpState state) const {
  bool isCopied = !plan.global && !plan.aggregate;
  storeState(b, segment, state,
             isCopied ? findEnd(b, segment, state) : Value());
}

void CtaRecording::storeState(LLVMBuilder &b, const Segment &segment,
                              WarpState state, Value end) const {
  Value cursor = b.sub(state.cursor, segment.data), zero = b.constant(0);
  if (plan.keepsHeaders()) {
    StorePlace place = target.prepare(b, {segment.header, segment.active});
    target.storeWords(b, place, 0, {cursor, state.records});
  } else {
    // Nothing was cleared, so a warp that is left out says that it is.
    Value records = state.records;
    if (plan.selectsWarps())
      records = b.select(segment.active, records, zero);
    StorePlace place = target.prepare(b, {segment.header, segment.first});
    target.storeWords(b, place, 0, {cursor, records, zero, zero});
  }
  if (plan.global || plan.aggregate)
    return;
  StorePlace place = target.prepare(b, {end, segment.active});
  for (uint32_t offset = 0; offset + record::kWordBytes < kCopiedBytes;
       offset += record::kWordBytes)
    target.store(b, place, offset, zero);
}

/// The end anchor, what ties the share to its layout, and the CTA's id but for
/// z.
static void storeCtaHeader(LLVMBuilder &b, const CtaRecording &recording,
                           StorePlace place, const CtaId &id) {
  const TargetLowering &target = recording.target;
  target.storeAnchor(b, place, bytesOf(record::kEndClockWord),
                     bytesOf(record::kEndGlobalTimerWord));
  Value hash = b.constant(static_cast<int32_t>(recording.plan.hash));
  target.storeWords(b, target.prepare(b, place), 0,
                    {b.constant(record::kCtaMagic), hash, id[0], id[1]});
}

void CtaRecording::endInGlobal(LLVMBuilder &b, const Segment &segment,
                               WarpState state) const {
  storeState(b, segment, state, {});
  StorePlace place{segment.scratch, segment.leader};
  CtaId id = readCtaId(b);
  target.store(b, place, bytesOf(record::kCtaIdZWord), id[2]);
  storeCtaHeader(b, *this, place, id);
}

/// What a warp copies: from its lanes' places in shared memory up to `end`, to
/// those in the share of a CTA that is recorded, less where segments begin.
struct CtaRecording::Copy {
  Value from, to, end, isRecorded;
  Value isInside;              // The first place is,
  SmallVector<Value, 4> words; // where this has been loaded.
};

void CtaRecording::loadFirst(LLVMBuilder &b, Copy &copy) const {
  copy.isInside = b.compare(Compare::Ult, copy.from, copy.end);
  copy.words = target.loadWords(b, {copy.from, copy.isInside}, 0);
}

void CtaRecording::copySegment(LLVMBuilder &b, Copy copy, Block *after) const {
  auto listValues = [&] {
    SmallVector<Value> values(copy.words.begin(), copy.words.end());
    values.append({copy.from, copy.to, copy.isInside});
    return values;
  };
  SmallVector<Value> values = listValues();
  Block *body = b.createBlockBefore(after, ValueRange(values).getTypes());
  b.branch(body, values);
  b.builder.setInsertionPointToEnd(body);
  unsigned next = 0;
  for (Value &word : copy.words)
    word = body->getArgument(next++);
  copy.from = body->getArgument(next), copy.to = body->getArgument(next + 1);
  Value isStored = b.both(body->getArgument(next + 2), copy.isRecorded);
  target.storeWords(b, target.prepare(b, {copy.to, isStored}), kSegmentsOffset,
                    copy.words);
  // What comes next is on its way while this is stored.
  uint32_t step = target.getWarpSize() * kCopiedBytes;
  copy.from = b.add(copy.from, step), copy.to = b.add(copy.to, step);
  loadFirst(b, copy);
  b.repeatIf(copy.isInside, body, listValues(), after);
}

void CtaRecording::copySegments(LLVMBuilder &b, const Segment &segment,
                                Copy copy, Block *after) const {
  Block *check = b.createBlockBefore(after, {b.i32(), b.i32(), b.i64()});
  Block *body = b.createBlockBefore(after);
  Block *next = b.createBlockBefore(after);
  Value warp = check->getArgument(0), header = check->getArgument(1);
  Value to = check->getArgument(2);
  b.branch(check, {segment.warp, segment.header, copy.to});
  b.builder.setInsertionPointToEnd(check);
  Value isThere = b.compare(Compare::Ult, warp, b.constant(plan.totalWarps));
  b.branchIf(b.both(isThere, copy.isRecorded), body, after);
  b.builder.setInsertionPointToEnd(next);
  b.branch(check, {b.add(warp, plan.warps),
                   b.add(header, plan.warps * plan.sharedSegmentBytes()),
                   b.add(to, plan.warps * plan.segmentBytes())});
  b.builder.setInsertionPointToEnd(body);
  Value used = target.load(b, header, bytesOf(record::kCursorWord));
  if (plan.ring)
    used = b.max(used, target.load(b, header, bytesOf(record::kLapEndWord)));
  copy.from = b.add(header, b.mul(segment.lane, kCopiedBytes));
  copy.to = to;
  copy.end = b.add(b.add(header, kHeaderBytes), used);
  loadFirst(b, copy);
  copySegment(b, copy, next);
}

void CtaRecording::endInShared(Operation *finalize, Value thread,
                               WarpState state) const {
  LLVMBuilder b(finalize);
  Segment segment; // Found anew: no register had to keep it.
  Copy copy;
  if (!plan.handsOver && !plan.ring && !plan.selectsWarps())
    copy.end = target.broadcastFirst(b, state.cursor);
  CtaId id = readCtaId(b);
  Value sm = target.readSm(b);
  segment.thread = target.renew(b, thread);
  locate(b, segment);
  segment.active = segment.first;
  Value selected = isSelected(b, segment.warp);
  if (selected)
    segment.active = b.both(segment.first, selected);
  Value pointer = getScratch(finalize);
  Value room = findRoom(b, readCode(b, pointer));
  Value ofLane = b.mul(segment.lane, kCopiedBytes);
  Value offset = b.add(b.mul(segment.warp, plan.segmentBytes()), ofLane);
  copy.from = b.add(segment.header, ofLane);
  if (plan.selectsWarps()) // A warp that is left out has written as well.
    state.cursor = b.select(selected, state.cursor, segment.data);
  Value end = findEnd(b, segment, state);
  if (!plan.handsOver && (plan.ring || plan.selectsWarps()))
    copy.end = target.broadcastFirst(b, end);
  storeState(b, segment, state, end);
  Value ctaIndex = findCtaIndex(b, id);
  target.syncWarp(b);
  SmallVector<Value, 4> start = target.loadWords(
      b, {sharedAddress(b), segment.leader}, plan.anchorOffset());
  if (!plan.handsOver)
    loadFirst(b, copy);

  copy.isRecorded = isSampled(b, room, ctaIndex);
  copy.to = b.add(findShare(b, pointer, ctaIndex), b.extend(offset));
  // That of the first thread is where its share begins.
  StorePlace leader{copy.to, b.both(segment.leader, copy.isRecorded)};
  StorePlace place = target.prepare(b, leader);
  target.storeWords(b, place, bytesOf(record::kCtaIdZWord), {id[2], sm});
  storeCtaHeader(b, *this, leader, id);
  target.storeWords(b, place, bytesOf(record::kStartClockWord),
                    {start[0], start[1]});
  target.storeWords(b, place, bytesOf(record::kStartGlobalTimerWord),
                    {start[2], start[3]});
  Block *after = b.splitBefore(finalize);
  plan.handsOver ? copySegments(b, segment, copy, after)
                 : copySegment(b, copy, after);
}

void CtaRecording::end(Operation *finalize, const Segment &segment,
                       WarpState state) const {
  if (!plan.global)
    return endInShared(finalize, segment.thread, state);
  LLVMBuilder b(finalize);
  endInGlobal(b, segment, state);
}
