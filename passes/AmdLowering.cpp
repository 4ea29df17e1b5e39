//===- AmdLowering.cpp - Stamps and stores on AMD GPUs --------------------===//
//
// A store that is not enabled goes to an address outside of LDS, where the
// hardware drops it. That costs one select per frame; a branch or a change of
// the execution mask would cost several instructions per stamp.
//
// Segments in global memory are not supported (kperf-plan-buffer refuses), so
// an i64 address here is only ever that of the final copy.
//
//===----------------------------------------------------------------------===//

#include "passes/TargetLowering.h"

#include "Record/RecordLayout.h"
#include "mlir/AsmParser/AsmParser.h"

namespace record = kperfir::record;

namespace mlir::kperf {
namespace {

/// Beyond any LDS, and still so after adding a 16-bit offset.
constexpr uint32_t kNowhere = 0x7FFF0000;
/// s_memrealtime counts at 100 MHz.
constexpr uint32_t kNanosecondsPerTick = 10;

class AmdLowering : public TargetLowering {
public:
  unsigned getWarpSize() const override { return 64; }

  Value readThreadId(LLVMBuilder &b) const override {
    return b.special("rocdl.workitem.id.x");
  }
  Value readCtaId(LLVMBuilder &b, unsigned dimension) const override {
    static constexpr const char *axes[] = {"x", "y", "z"};
    return b.special((Twine("rocdl.workgroup.id.") + axes[dimension]).str());
  }
  Value readCtaCount(LLVMBuilder &, unsigned) const override { return {}; }

  Value readClock(LLVMBuilder &b) const override {
    return b.inlineAsm("s_memtime $0\n\ts_waitcnt lgkmcnt(0)", "=s,~{memory}",
                       b.i64(), {});
  }
  Value readGlobalTimer(LLVMBuilder &b) const override {
    Value ticks = b.inlineAsm("s_memrealtime $0\n\ts_waitcnt lgkmcnt(0)",
                              "=s,~{memory}", b.i64(), {});
    return b.mul(ticks, kNanosecondsPerTick);
  }
  /// Compute unit and shader engine of HW_ID, and the die above them.
  Value readSm(LLVMBuilder &b) const override {
    Value unit = b.inlineAsm("s_getreg_b32 $0, hwreg(HW_REG_HW_ID, 8, 8)", "=s",
                             b.i32(), {});
    Value die = b.inlineAsm("s_getreg_b32 $0, hwreg(HW_REG_XCC_ID, 0, 4)", "=s",
                            b.i32(), {});
    return b.add(b.mul(die, 256), unit);
  }

  StorePlace prepare(LLVMBuilder &b, StorePlace place) const override {
    return {b.select(place.enabled, place.address, b.constant(kNowhere)),
            Value()};
  }

  void stamp(LLVMBuilder &b, StorePlace place, uint32_t offset) const override {
    Value now = b.cast("llvm.trunc", readClock(b), b.i32());
    write(b, place.address, offset, now);
  }

  void store(LLVMBuilder &b, StorePlace place, uint32_t offset,
             Value word) const override {
    if (place.enabled)
      place = prepare(b, place);
    write(b, place.address, offset, word);
  }

  void noteLap(LLVMBuilder &b, StorePlace place, Value lapEnd) const override {
    place = prepare(b, place);
    b.inlineAsm("ds_add_u32 $0, $1 offset:" +
                    Twine(record::kLapsWord * record::kWordBytes),
                "v,v,~{memory}", Type(), {place.address, b.constant(1)});
    write(b, place.address, record::kLapEndWord * record::kWordBytes, lapEnd);
  }

  Value load(LLVMBuilder &b, Value address, uint32_t offset) const override {
    Value pointer = b.cast("llvm.inttoptr", b.add(address, offset),
                           parseType("!llvm.ptr<3>", b.i32().getContext()));
    return createNamed(
               b.builder, b.loc, "llvm.load", {b.i32()}, {pointer},
               {b.builder.getNamedAttr("volatile_", b.builder.getUnitAttr())})
        ->getResult(0);
  }

  void storeGlobal(LLVMBuilder &b, Value address, uint32_t offset,
                   Value value) const override {
    Value pointer = b.cast("llvm.inttoptr", b.add(address, offset),
                           parseType("!llvm.ptr<1>", b.i32().getContext()));
    createNamed(b.builder, b.loc, "llvm.store", {}, {value, pointer},
                {b.builder.getNamedAttr("volatile_", b.builder.getUnitAttr())});
  }

  /// Lanes run in lock step and LDS serves a wave in order.
  void syncWarp(LLVMBuilder &b) const override {
    b.inlineAsm("s_waitcnt lgkmcnt(0)", "~{memory}", Type(), {});
  }

private:
  static void write(LLVMBuilder &b, Value address, uint32_t offset,
                    Value word) {
    b.inlineAsm("ds_write_b32 $0, $1 offset:" + Twine(offset), "v,v,~{memory}",
                Type(), {address, word});
  }
};

} // namespace

std::unique_ptr<TargetLowering> createAmdLowering() {
  return std::make_unique<AmdLowering>();
}

} // namespace mlir::kperf
