//===- LapEnd.cpp - What a warp does when half its segment is full --------===//
//
// All of it is one assembly with a branch around the rare part, so that neither
// the kernel's control flow nor what LLVM knows of it changes. It runs in the
// lane that records; the others' cursors do not move.
//
// Nothing here waits for ever: for the host's answer the warp waits as long as
// the control block says, and whoever has waited in vain says so there, so that
// no other warp waits after it. Then records are dropped and counted, as in any
// full buffer. `lap` counts laps from 1: the half that is written next says how
// many had ended when it was full, and holds the lap before until the host has
// taken it.
//
//===----------------------------------------------------------------------===//

#include "passes/LapEnd.h"

#include "Record/RecordLayout.h"

namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;

// The text below has these numbers in it.
static_assert(record::kWordBytes == 4 && record::kLapNumberWord == 0 &&
              record::kLapBytesWord == 1 && record::kSegmentHeaderWords == 4 &&
              record::kControlEntryWord == 2 && record::kStoppedWord == 0 &&
              record::kPatienceWord == 2 && record::kLapsEndedWord == 0 &&
              record::kLapsTakenWord == 1 && record::kToHeaderWord == 2);

/// $0: the next cursor, $1: the cursor, $2: the base, $3: bytes of a half, $4:
/// less one, $5: the last place in it at which the largest frame fits, $6: that
/// of the words that describe its lap, $7: bytes of both halves.
static constexpr StringRef kText = R"({
.reg .pred p;
.reg .b32 used, other, lap, word;
.reg .b64 full, next, entry, header, until, now;
mov.b32 $0, $1;
and.b32 used, $1, $4;
setp.le.u32 p, used, $5;
@p bra goes_on;
and.b32 other, $1, $3;
cvt.u64.u32 full, other;
add.u64 full, $2, full;
xor.b32 other, other, $3;
cvt.u64.u32 next, other;
add.u64 next, $2, next;
ld.global.b32 lap, [next+$6];
add.u32 lap, lap, 1;
st.global.v2.b32 [full+$6], {lap, used};
mov.b32 $0, other;
ld.global.b64 entry, [$2+-8];
setp.ne.u64 p, entry, 0;
@p bra publish;
setp.eq.u32 p, lap, 1;
@p bra goes_on;
bra stop;
publish:
st.release.sys.global.b32 [entry], lap;
setp.eq.u32 p, lap, 1;
@p bra goes_on;
ld.global.b32 word, [entry+8];
cvt.u64.u32 header, word;
sub.u64 header, entry, header;
ld.global.b64 until, [header+8];
mov.u64 now, %globaltimer;
add.u64 until, until, now;
again:
ld.acquire.sys.global.b32 word, [entry+4];
sub.u32 word, word, lap;
setp.ge.s32 p, word, -1;
@p bra goes_on;
ld.relaxed.sys.global.b32 word, [header];
setp.ne.u32 p, word, 0;
@p bra stop;
mov.u64 now, %globaltimer;
setp.gt.u64 p, now, until;
@p bra give_up;
nanosleep.u32 1000;
bra again;
give_up:
mov.b32 word, 1;
st.relaxed.sys.global.b32 [header], word;
stop:
mov.b32 $0, $7;
goes_on:
})";

/// The text, with the comment behind each instruction that says whose it is.
static std::string writeAssembly() {
  std::string text;
  SmallVector<StringRef> lines;
  kText.split(lines, '\n');
  for (StringRef line : lines) {
    text += line;
    if (line.ends_with(";") && !line.starts_with("."))
      text += " // kperf";
    if (line != "}")
      text += "\n\t";
  }
  return text;
}

static uint32_t halfBytes(const BufferPlan &plan) {
  return record::halfWords(plan.wordsPerWarp) * record::kWordBytes;
}

/// Byte offset in a half of the words that describe its lap.
static uint32_t trailerOffset(const BufferPlan &plan) {
  return halfBytes(plan) - record::kHalfTrailerWords * record::kWordBytes;
}

uint32_t mlir::kperf::halfLimit(const BufferPlan &plan) {
  return trailerOffset(plan) - plan.maxFrameWords * record::kWordBytes;
}

uint32_t mlir::kperf::stoppedCursor(const BufferPlan &plan) {
  return 2 * halfBytes(plan);
}

Value mlir::kperf::goOnAfterFrame(LLVMBuilder &b, const BufferPlan &plan,
                                  Value cursor, Value base) {
  uint32_t half = halfBytes(plan);
  SmallVector<Value> operands{cursor, base};
  for (uint32_t number : {half, half - 1, halfLimit(plan), trailerOffset(plan),
                          stoppedCursor(plan)})
    operands.push_back(b.constant(number));
  return b.inlineAsm(writeAssembly(), "=&r,r,l,n,n,n,n,n,~{memory}", b.i32(),
                     operands);
}
