//===- AmdLowering.cpp - Stamps and stores on AMD GPUs --------------------===//
//
// A store to LDS that is not enabled goes to an address outside of it, where
// the hardware drops it. That costs one select per frame; a change of the
// execution mask, as for stores to global memory, costs three instructions per
// stamp.
//
// CDNA reads the clock through scalar memory. Waiting for it would wait for
// outstanding LDS accesses too, so the clocks of a frame stay in registers
// until it is closed. RDNA 3 has a cycle counter of 20 bits only, too short to
// order stamps by; there the time comes from the 100 MHz counter. RDNA 4 reads
// a 32-bit counter at once.
//
//===----------------------------------------------------------------------===//

#include "passes/TargetLowering.h"

#include "Record/RecordLayout.h"
#include "mlir/AsmParser/AsmParser.h"

namespace record = kperfir::record;

namespace mlir::kperf {
namespace {

/// How one generation spells what the lowering needs.
struct Spelling {
  unsigned waveSize;
  bool isDeferred;      // A clock value arrives later.
  StringRef clock;      // Intrinsic, i64; of a stamp, too, if `stampClock` is
  StringRef stampClock; // empty; else an instruction, i32.
  StringRef timer;      // Intrinsic, i64, in ticks of 10 ns.
  StringRef unit, die;  // Hardware register of the compute unit; may be empty.
  StringRef ldsStore, globalStore, globalAdd;
  StringRef waitForLds;
};

constexpr Spelling kCdna{64,
                         true,
                         "llvm.amdgcn.s.memtime",
                         "",
                         "llvm.amdgcn.s.memrealtime",
                         "HW_REG_HW_ID, 8, 8",
                         "HW_REG_XCC_ID, 0, 4",
                         "ds_write_b32",
                         "global_store_dword",
                         "global_atomic_add",
                         "s_waitcnt lgkmcnt(0)"};
constexpr Spelling kRdna3{32,
                          true,
                          "llvm.readsteadycounter",
                          "",
                          "llvm.readsteadycounter",
                          "HW_REG_HW_ID1, 10, 11",
                          "",
                          "ds_store_b32",
                          "global_store_b32",
                          "global_atomic_add_u32",
                          "s_waitcnt lgkmcnt(0)"};
constexpr Spelling kRdna4{32,
                          false,
                          "llvm.readcyclecounter",
                          "s_getreg_b32 $0, hwreg(HW_REG_SHADER_CYCLES_LO)",
                          "llvm.readsteadycounter",
                          "HW_REG_HW_ID1, 10, 11",
                          "",
                          "ds_store_b32",
                          "global_store_b32",
                          "global_atomic_add_u32",
                          "s_wait_dscnt 0x0"};

const Spelling &spellingOf(StringRef target) {
  if (target.starts_with("hip:gfx11"))
    return kRdna3;
  if (target.starts_with("hip:gfx12"))
    return kRdna4;
  return kCdna;
}

/// Beyond any LDS, and still so after adding a 16-bit offset.
constexpr uint32_t kNowhere = 0x7FFF0000;
/// The real-time counter runs at 100 MHz.
constexpr uint32_t kNanosecondsPerTick = 10;

class AmdLowering : public TargetLowering {
public:
  explicit AmdLowering(const Spelling &spelling) : spelling(spelling) {}

  unsigned getWarpSize() const override { return spelling.waveSize; }

  Value readThreadId(LLVMBuilder &b) const override {
    return b.special("rocdl.workitem.id.x");
  }
  Value renew(LLVMBuilder &, Value value) const override { return value; }
  Value readCtaId(LLVMBuilder &b, unsigned dimension) const override {
    static constexpr const char *axes[] = {"x", "y", "z"};
    return b.special((Twine("rocdl.workgroup.id.") + axes[dimension]).str());
  }
  /// The first of the arguments that the runtime adds to the kernel's own
  /// (code object 5: hidden_block_count_x, y and z).
  Value readCtaCount(LLVMBuilder &b, unsigned dimension) const override {
    Type pointer = parseType("!llvm.ptr<4>", b.i32().getContext());
    Value arguments = callIntrinsic(b, "llvm.amdgcn.implicitarg.ptr", pointer);
    // LLVM expects no other address arithmetic on this pointer.
    OpBuilder &builder = b.builder;
    int32_t offset = static_cast<int32_t>(dimension * record::kWordBytes);
    Value address =
        createNamed(
            builder, b.loc, "llvm.getelementptr", {pointer}, {arguments},
            {builder.getNamedAttr("elem_type",
                                  TypeAttr::get(builder.getI8Type())),
             builder.getNamedAttr("rawConstantIndices",
                                  builder.getDenseI32ArrayAttr(offset))})
            ->getResult(0);
    return createNamed(builder, b.loc, "llvm.load", {b.i32()}, {address})
        ->getResult(0);
  }

  Value readClock(LLVMBuilder &b) const override {
    return callIntrinsic(b, spelling.clock, b.i64());
  }
  Value readGlobalTimer(LLVMBuilder &b) const override {
    return b.mul(callIntrinsic(b, spelling.timer, b.i64()),
                 kNanosecondsPerTick);
  }
  /// The compute unit within its die, and the die above it.
  Value readSm(LLVMBuilder &b) const override {
    Value unit = readRegister(b, spelling.unit);
    if (spelling.die.empty())
      return unit;
    return b.add(b.mul(readRegister(b, spelling.die), 256), unit);
  }

  StorePlace prepare(LLVMBuilder &b, StorePlace place) const override {
    if (isGlobal(place))
      return {place.address, ballot(b, place.enabled)};
    return {b.select(place.enabled, place.address, b.constant(kNowhere)),
            Value()};
  }

  Value readStamp(LLVMBuilder &b, StampPlace) const override {
    if (spelling.isDeferred)
      return readClock(b);
    return b.inlineAsm(spelling.stampClock, "=s,~{memory}", b.i32(), {});
  }

  void store(LLVMBuilder &b, StorePlace place, uint32_t offset,
             Value word) const override {
    if (word.getType().isInteger(64)) {
      Value high = b.binary("llvm.lshr", word, b.constant(32, b.i64()));
      store(b, place, offset, b.cast("llvm.trunc", word, b.i32()));
      return store(b, place, offset + record::kWordBytes,
                   b.cast("llvm.trunc", high, b.i32()));
    }
    if (place.enabled && place.enabled.getType().isInteger(1))
      place = prepare(b, place);
    if (isGlobal(place))
      return runMasked(b, place, spelling.globalStore, offset, word);
    b.inlineAsm(spelling.ldsStore + " $0, $1 offset:" + Twine(offset),
                "v,v,~{memory}", Type(), {place.address, word});
  }

  void storeWords(LLVMBuilder &b, StorePlace place, uint32_t offset,
                  ArrayRef<Value> words) const override {
    for (Value word : words) {
      store(b, place, offset, word);
      offset += record::kWordBytes;
    }
  }

  void storeAnchor(LLVMBuilder &b, StorePlace place, uint32_t clockOffset,
                   uint32_t timerOffset) const override {
    Value clock = readClock(b), timer = readGlobalTimer(b);
    place = prepare(b, place);
    store(b, place, clockOffset, clock);
    store(b, place, timerOffset, timer);
  }

  void noteLap(LLVMBuilder &b, StorePlace place, Value lapEnd) const override {
    constexpr uint32_t laps = record::kLapsWord * record::kWordBytes;
    place = prepare(b, place);
    store(b, place, record::kLapEndWord * record::kWordBytes, lapEnd);
    if (isGlobal(place))
      return runMasked(b, place, spelling.globalAdd, laps, b.constant(1));
    b.inlineAsm("ds_add_u32 $0, $1 offset:" + Twine(laps), "v,v,~{memory}",
                Type(), {place.address, b.constant(1)});
  }

  Value load(LLVMBuilder &b, Value address, uint32_t offset) const override {
    StringRef type = isGlobal({address, {}}) ? "!llvm.ptr<1>" : "!llvm.ptr<3>";
    Value pointer = b.cast("llvm.inttoptr", b.add(address, offset),
                           parseType(type, b.i32().getContext()));
    return createNamed(
               b.builder, b.loc, "llvm.load", {b.i32()}, {pointer},
               {b.builder.getNamedAttr("volatile_", b.builder.getUnitAttr())})
        ->getResult(0);
  }

  /// Only partitions load what may not be there, and no AMD target has any.
  Value loadIf(LLVMBuilder &b, StorePlace place,
               uint32_t offset) const override {
    return load(b, place.address, offset);
  }

  Value broadcastFirst(LLVMBuilder &b, Value word) const override {
    return callIntrinsic(b, "llvm.amdgcn.readfirstlane.i32", b.i32(), {word});
  }

  /// LDS gives 0 where there is none.
  SmallVector<Value, 4> loadWords(LLVMBuilder &b, StorePlace place,
                                  uint32_t offset) const override {
    SmallVector<Value, 4> words;
    for (uint32_t bytes = 0; bytes < 4 * record::kWordBytes;
         bytes += record::kWordBytes)
      words.push_back(load(b, place.address, offset + bytes));
    return words;
  }

  /// Lanes run in lock step and LDS serves a wave in order.
  void syncWarp(LLVMBuilder &b) const override {
    b.inlineAsm(spelling.waitForLds, "~{memory}", Type(), {});
  }

private:
  static bool isGlobal(StorePlace place) {
    return place.address.getType().isInteger(64);
  }

  static Value callIntrinsic(LLVMBuilder &b, StringRef name, Type result,
                             ValueRange operands = {}) {
    OpBuilder &builder = b.builder;
    int32_t count = static_cast<int32_t>(operands.size());
    return createNamed(
               builder, b.loc, "llvm.call_intrinsic", {result}, operands,
               {builder.getNamedAttr("intrin", builder.getStringAttr(name)),
                builder.getNamedAttr("op_bundle_sizes",
                                     builder.getDenseI32ArrayAttr({})),
                builder.getNamedAttr("operandSegmentSizes",
                                     builder.getDenseI32ArrayAttr({count, 0}))})
        ->getResult(0);
  }

  static Value readRegister(LLVMBuilder &b, StringRef field) {
    return b.inlineAsm("s_getreg_b32 $0, hwreg(" + field + ")", "=s", b.i32(),
                       {});
  }

  /// The lanes in which `enabled` holds, as an execution mask.
  Value ballot(LLVMBuilder &b, Value enabled) const {
    if (spelling.waveSize == 32)
      return callIntrinsic(b, "llvm.amdgcn.ballot.i32", b.i32(), {enabled});
    return callIntrinsic(b, "llvm.amdgcn.ballot.i64", b.i64(), {enabled});
  }

  void runMasked(LLVMBuilder &b, StorePlace place, StringRef access,
                 uint32_t offset, Value word) const {
    bool isWide = spelling.waveSize == 64;
    StringRef width = isWide ? "b64" : "b32";
    StringRef mask = isWide ? "exec" : "exec_lo";
    b.inlineAsm("s_mov_" + width + " $0, " + mask + "\n\ts_and_" + width + " " +
                    mask + ", " + mask + ", $1\n\t" + access +
                    " $2, $3, off offset:" + Twine(offset) + "\n\ts_mov_" +
                    width + " " + mask + ", $0",
                "=&s,s,v,v,~{memory},~{scc}", isWide ? b.i64() : b.i32(),
                {place.enabled, place.address, word});
  }

  const Spelling &spelling;
};

} // namespace

std::unique_ptr<TargetLowering> createAmdLowering(StringRef target) {
  return std::make_unique<AmdLowering>(spellingOf(target));
}

} // namespace mlir::kperf
