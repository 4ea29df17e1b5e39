//===- NvidiaLowering.cpp - Stamps and stores in PTX ----------------------===//
//
// Every access is volatile inline assembly with a memory clobber: LLVM then
// keeps stamps in order among themselves and among the kernel's memory
// operations, which is what a stamp measures.
//
// Each carries a comment, so that who reads the PTX knows it from the kernel's
// own: `// kperf`, and at a stamp `// kperf stamp <frame>.<slot>`
// (docs/contracts.md, section 1; read by kperfir/code/ptx.py).
//
//===----------------------------------------------------------------------===//

#include "passes/TargetLowering.h"

#include "Record/RecordLayout.h"
#include "mlir/AsmParser/AsmParser.h"

namespace record = kperfir::record;

namespace mlir::kperf {
namespace {

bool isGlobal(Value address) { return address.getType().isInteger(64); }

/// Constraint of an address operand, and of a value.
StringRef constraint(Value value) {
  return value.getType().isInteger(64) ? "l" : "r";
}

StringRef space(Value address) {
  return isGlobal(address) ? "global" : "shared";
}

class NvidiaLowering : public TargetLowering {
public:
  explicit NvidiaLowering(unsigned capability) : capability(capability) {}

  unsigned getWarpSize() const override { return 32; }

  /// VIADDMNMX, from sm_90 on, has no operand that is a uniform register.
  bool movesUniforms() const override { return capability >= 90; }

  Value readThreadId(LLVMBuilder &b) const override {
    return b.special("nvvm.read.ptx.sreg.tid.x");
  }
  Value renew(LLVMBuilder &b, Value value) const override {
    return issue(b, "mov.b32 $0, $1;", "=r,r", b.i32(), {value});
  }
  Value readCtaId(LLVMBuilder &b, unsigned dimension) const override {
    return issue(b, Twine("mov.u32 $0, %ctaid.") + kAxes[dimension] + ";", "=r",
                 b.i32());
  }
  Value readCtaCount(LLVMBuilder &b, unsigned dimension) const override {
    return b.special(
        (Twine("nvvm.read.ptx.sreg.nctaid.") + kAxes[dimension]).str());
  }
  Value readClock(LLVMBuilder &b) const override {
    return issue(b, "mov.u64 $0, %clock64;", "=l,~{memory}", b.i64());
  }
  Value readGlobalTimer(LLVMBuilder &b) const override {
    return issue(b, "mov.u64 $0, %globaltimer;", "=l,~{memory}", b.i64());
  }
  Value readSm(LLVMBuilder &b) const override {
    return issue(b, "mov.u32 $0, %smid;", "=r", b.i32());
  }

  StorePlace prepare(LLVMBuilder &, StorePlace place) const override {
    return place; // A predicate on each store is free.
  }

  void store(LLVMBuilder &b, StorePlace place, uint32_t offset,
             Value value) const override {
    StringRef width = value.getType().isInteger(64) ? ".b64" : ".b32";
    issue(b,
          "@$1 st." + space(place.address) + width + " [$0+" + Twine(offset) +
              "], $2;",
          (constraint(place.address) + ",b," + constraint(value) + ",~{memory}")
              .str(),
          Type(), {place.address, place.enabled, value});
  }

  Value readStamp(LLVMBuilder &b, StampPlace stamp) const override {
    return b.inlineAsm(Twine("mov.u32 $0, %clock;") + kOwn + nameOf(stamp),
                       "=r,~{memory}", b.i32(), {});
  }

  void storeWords(LLVMBuilder &b, StorePlace place, uint32_t offset,
                  ArrayRef<Value> words) const override {
    if (words.size() == 1)
      return store(b, place, offset, words.front());
    SmallVector<Value> operands{place.address, place.enabled};
    std::string list, constraints = constraint(place.address).str() + ",b";
    for (Value word : words) {
      list += (list.empty() ? "$" : ", $") + std::to_string(operands.size());
      constraints += ",r";
      operands.push_back(word);
    }
    issue(b,
          "@$1 st." + space(place.address) + ".v" + Twine(words.size()) +
              ".b32 [$0+" + Twine(offset) + "], {" + list + "};",
          constraints + ",~{memory}", Type(), operands);
  }

  void storeAnchor(LLVMBuilder &b, StorePlace place, uint32_t clockOffset,
                   uint32_t timerOffset) const override {
    std::string store = ("@$1 st." + space(place.address) + ".b64 [$0+").str();
    b.inlineAsm(Twine("{\n\t.reg .b64 clock, timer;\n\t") +
                    "mov.u64 clock, %clock64;" + kOwn + "\n\t" +
                    "mov.u64 timer, %globaltimer;" + kOwn + "\n\t" + store +
                    Twine(clockOffset) + "], clock;" + kOwn + "\n\t" + store +
                    Twine(timerOffset) + "], timer;" + kOwn + "\n\t}",
                (constraint(place.address) + ",b,~{memory}").str(), Type(),
                {place.address, place.enabled});
  }

  void noteLap(LLVMBuilder &b, StorePlace place, Value lapEnd) const override {
    StringRef where = space(place.address);
    Twine laps(record::kLapsWord * record::kWordBytes);
    Twine end(record::kLapEndWord * record::kWordBytes);
    b.inlineAsm(Twine("{\n\t.reg .b32 laps;\n\t@$1 ld.") + where +
                    ".b32 laps, [$0+" + laps + "];" + kOwn +
                    "\n\t@$1 add.u32 laps, laps, 1;" + kOwn + "\n\t@$1 st." +
                    where + ".b32 [$0+" + laps + "], laps;" + kOwn +
                    "\n\t@$1 st." + where + ".b32 [$0+" + end + "], $2;" +
                    kOwn + "\n\t}",
                (constraint(place.address) + ",b,r,~{memory}").str(), Type(),
                {place.address, place.enabled, lapEnd});
  }

  Value load(LLVMBuilder &b, Value address, uint32_t offset) const override {
    return issue(
        b, "ld." + space(address) + ".b32 $0, [$1+" + Twine(offset) + "];",
        ("=r," + constraint(address) + ",~{memory}").str(), b.i32(), {address});
  }

  Value loadIf(LLVMBuilder &b, StorePlace place,
               uint32_t offset) const override {
    return issue(b,
                 Twine("mov.b32 $0, 0;") + kOwn + "\n\t@$2 ld." +
                     space(place.address) + ".b32 $0, [$1+" + Twine(offset) +
                     "];",
                 ("=&r," + constraint(place.address) + ",b,~{memory}").str(),
                 b.i32(), {place.address, place.enabled});
  }

  Value broadcastFirst(LLVMBuilder &b, Value word) const override {
    return issue(b, "shfl.sync.idx.b32 $0, $1, 0, 31, 0xffffffff;",
                 "=r,r,~{memory}", b.i32(), {word});
  }

  SmallVector<Value, 4> loadWords(LLVMBuilder &b, StorePlace place,
                                  uint32_t offset) const override {
    Type words =
        parseType("!llvm.struct<(i32, i32, i32, i32)>", b.builder.getContext());
    Value loaded = issue(
        b, "@$5 ld.shared.v4.b32 {$0, $1, $2, $3}, [$4+" + Twine(offset) + "];",
        "=r,=r,=r,=r,r,b,~{memory}", words, {place.address, place.enabled});
    return {b.part(loaded, 0), b.part(loaded, 1), b.part(loaded, 2),
            b.part(loaded, 3)};
  }

  void syncWarp(LLVMBuilder &b) const override {
    issue(b, "bar.warp.sync 0xffffffff;", "~{memory}", Type());
  }

private:
  static std::string nameOf(StampPlace stamp) {
    return " stamp " + std::to_string(stamp.frame) + "." +
           std::to_string(stamp.slot);
  }

  /// Ends the line of an instruction of ours.
  static constexpr const char *kOwn = " // kperf";

  /// One instruction.
  static Value issue(LLVMBuilder &b, const Twine &text, StringRef constraints,
                     Type result, ValueRange operands = {}) {
    return b.inlineAsm(text + kOwn, constraints, result, operands);
  }

  static constexpr const char *kAxes[] = {"x", "y", "z"};

  unsigned capability;
};

} // namespace

std::unique_ptr<TargetLowering> createNvidiaLowering(StringRef target) {
  unsigned capability;
  if (!target.consume_front("cuda:") || target.getAsInteger(10, capability))
    capability = 80;
  return std::make_unique<NvidiaLowering>(capability);
}

} // namespace mlir::kperf
