//===- Aggregation.cpp - Sum up executions instead of recording them ------===//
//
// Owns the rules (those of the decoder's replay, in the kernel) and their PTX.
// One lane of a warp keeps its sums, so no access is atomic; counting in a
// bucket is a reduction all the same, which nothing has to wait for.
//
// Where a stamp ends one region and begins another, the clock is read again in
// between: what the sums of the first took is then in neither of them, but in
// the region around both.
//
//===----------------------------------------------------------------------===//

#include "passes/Aggregation.h"

#include "Record/RecordLayout.h"
#include "passes/ForeignOps.h"

namespace record = kperfir::record;
using namespace mlir;
using namespace mlir::kperf;
using kperf_gpu::EventAttr;

namespace {

/// Assembly on the sums of one region: $0 is the address of the warp's, $1
/// whether this thread keeps them, $2 the time.
class SumsAssembly {
public:
  SumsAssembly(StorePlace sums, uint32_t region)
      : sums(sums), isGlobal(sums.address.getType().isInteger(64)),
        base(region * record::kSumsWords) {}

  /// An instruction for all threads: a guard on arithmetic is not free, as the
  /// old value has to be kept in the others.
  void add(const Twine &text) {
    body += (Twine("\n\t") + text + " // kperf").str();
  }
  /// One that accesses memory, where `guard` holds: `op`, the space, the rest.
  void access(StringRef guard, StringRef op, const Twine &rest) {
    add(Twine("@") + guard + " " + op + (isGlobal ? ".global" : ".shared") +
        rest);
  }

  std::string word(uint32_t index) const { return "[$0+" + byte(index) + "]"; }

  /// Counts in the bucket whose number is in the register `bit`.
  void countInBucket(StringRef guard) {
    StringRef at = isGlobal ? "wide" : "bit";
    add(isGlobal ? "mad.wide.u32 wide, bit, 4, $0;"
                 : "mad.lo.u32 bit, bit, 4, $0;");
    access(guard, "red",
           ".add.u32 [" + at + "+" + byte(record::kBucketsWord) + "], 1;");
  }

  void emit(LLVMBuilder &b, Value now, StringRef registers = "") const {
    std::string text = "{";
    if (!registers.empty())
      text += "\n\t" + registers.str();
    StringRef constraints = isGlobal ? "l,b,r,~{memory}" : "r,b,r,~{memory}";
    b.inlineAsm(text + body + "\n\t}", constraints, Type(),
                {sums.address, sums.enabled, now});
  }

private:
  std::string byte(uint32_t word) const {
    return std::to_string((base + word) * record::kWordBytes);
  }

  StorePlace sums;
  bool isGlobal;
  uint32_t base; // In words.
  std::string body;
};

constexpr StringRef kKeeper = "$1"; // The guard of a lane that keeps sums.

} // namespace

Aggregation::Aggregation(ModuleOp module) {
  for (Attribute attribute :
       module->getAttrOfType<ArrayAttr>("kperf.regions")) {
    auto fields = cast<DictionaryAttr>(attribute);
    StringRef kind = fields.getAs<StringAttr>("kind").getValue();
    auto parent = fields.getAs<IntegerAttr>("parent").getInt();
    regions.push_back({static_cast<int32_t>(parent),
                       kind == "iteration" && !fields.contains("step")});
  }
}

static Value readClock(LLVMBuilder &b, const Twine &label) {
  return b.inlineAsm("mov.u32 $0, %clock; // kperf" + label, "=r,~{memory}",
                     b.i32(), {});
}

static void beginExecution(LLVMBuilder &b, StorePlace sums, uint32_t region,
                           bool isUnending, Value now) {
  SumsAssembly code(sums, region);
  if (!isUnending) {
    code.access(kKeeper, "st",
                ".b32 " + code.word(record::kBeginWord) + ", $2;");
    return code.emit(b, now);
  }
  code.add("mov.b32 open, 1;");
  code.access(kKeeper, "st",
              ".v2.b32 " + code.word(record::kOpenWord) + ", {open, $2};");
  code.emit(b, now, ".reg .b32 open;");
}

static void endExecution(LLVMBuilder &b, StorePlace sums, uint32_t region,
                         bool isUnending, Value now) {
  SumsAssembly code(sums, region);
  StringRef guard = isUnending ? "ends" : kKeeper;
  code.access(kKeeper, "ld",
              ".v4.b32 {open, begin, least, most}, " +
                  code.word(record::kOpenWord) + ";");
  if (isUnending)
    code.add("setp.ne.and.u32 ends, open, 0, $1;");
  code.access(guard, "ld",
              ".v2.b64 {sum, squares}, " + code.word(record::kSumWord) + ";");
  // In an order in which few have to wait for the one before.
  for (StringRef text :
       {"sub.u32 time, $2, begin;", "or.b32 bit, time, 1;",
        "not.b32 inverted, time;", "cvt.u64.u32 wide, time;",
        "mad.wide.u32 squares, time, time, squares;", "bfind.u32 bit, bit;",
        "max.u32 most, most, time;", "max.u32 least, least, inverted;",
        "add.u64 sum, sum, wide;"})
    code.add(text);
  code.access(guard, "st",
              ".v2.b32 " + code.word(record::kLeastInvertedWord) +
                  ", {least, most};");
  code.access(guard, "st",
              ".v2.b64 " + code.word(record::kSumWord) + ", {sum, squares};");
  code.countInBucket(guard);
  if (isUnending)
    code.access(guard, "st", ".b32 " + code.word(record::kOpenWord) + ", 0;");
  code.emit(b, now,
            ".reg .pred ends;\n\t.reg .b32 open, begin, least, most, time, "
            "inverted, bit;\n\t.reg .b64 sum, squares, wide;");
}

/// A mark takes no time: it is counted among the shortest.
static void countMark(LLVMBuilder &b, StorePlace sums, uint32_t region,
                      Value now) {
  SumsAssembly code(sums, region);
  code.access(kKeeper, "st",
              ".b32 " + code.word(record::kLeastInvertedWord) + ", -1;");
  code.access(kKeeper, "red",
              ".add.u32 " + code.word(record::kBucketsWord) + ", 1;");
  code.emit(b, now);
}

void Aggregation::endIterations(LLVMBuilder &b, uint32_t loop, StorePlace sums,
                                Value now) const {
  for (auto [id, region] : llvm::enumerate(regions))
    if (region.isUnending && region.parent == static_cast<int32_t>(loop))
      endExecution(b, sums, static_cast<uint32_t>(id), true, now);
}

/// Whether `event` ends an execution, of its own region or of an iteration.
bool Aggregation::ends(EventAttr event) const {
  if (event.getEdge() == Edge::End)
    return true;
  int32_t around = regions[event.getRegion()].parent;
  return llvm::any_of(regions, [&](const Region &region) {
    return region.isUnending && region.parent == around;
  });
}

void Aggregation::apply(LLVMBuilder &b, EventAttr event, StorePlace sums,
                        Value now) const {
  uint32_t region = event.getRegion();
  bool isUnending = regions[region].isUnending;
  switch (event.getEdge()) {
  case Edge::Start:
    return beginExecution(b, sums, region, isUnending, now);
  case Edge::End:
    return endExecution(b, sums, region, isUnending, now);
  case Edge::Mark:
    return countMark(b, sums, region, now);
  case Edge::Gap:
    return; // Sums would cost what a gap must not: see lower().
  }
}

void Aggregation::lower(LLVMBuilder &b, kperf_gpu::StampOp stamp,
                        StorePlace sums) const {
  Value now =
      readClock(b, " stamp " + Twine(stamp.getFrame().getType().getId()) + "." +
                       Twine(stamp.getSlot()));
  bool isLate = false; // Sums have taken time since the clock was read.
  for (auto event : stamp.getEvents().getAsRange<EventAttr>()) {
    if (event.getEdge() == Edge::Gap)
      continue;
    uint32_t region = event.getRegion();
    bool isEnd = event.getEdge() == Edge::End;
    int32_t loop =
        isEnd ? static_cast<int32_t>(region) : regions[region].parent;
    if (loop >= 0)
      endIterations(b, static_cast<uint32_t>(loop), sums, now);
    isLate |= ends(event);
    if (event.getEdge() == Edge::Start && isLate) {
      now = readClock(b, "");
      isLate = false;
    }
    apply(b, event, sums, now);
  }
}
