//===- AmdLowering.cpp - Stamps and stores on AMD GPUs --------------------===//
//
// A store to LDS that is not enabled goes to an address outside of it, where
// the hardware drops it. That costs one select per frame; a change of the
// execution mask, as for stores to global memory, costs three instructions per
// stamp.
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
    if (isGlobal(place))
      return {place.address, ballot(b, place.enabled)};
    return {b.select(place.enabled, place.address, b.constant(kNowhere)),
            Value()};
  }

  void stamp(LLVMBuilder &b, StorePlace place, uint32_t offset) const override {
    Value now = b.cast("llvm.trunc", readClock(b), b.i32());
    store(b, place, offset, now);
  }

  void store(LLVMBuilder &b, StorePlace place, uint32_t offset,
             Value word) const override {
    if (place.enabled && place.enabled.getType().isInteger(1))
      place = prepare(b, place);
    if (isGlobal(place))
      return runMasked(b, place, "global_store_dword $2, $3, off", offset,
                       word);
    b.inlineAsm("ds_write_b32 $0, $1 offset:" + Twine(offset), "v,v,~{memory}",
                Type(), {place.address, word});
  }

  void noteLap(LLVMBuilder &b, StorePlace place, Value lapEnd) const override {
    constexpr uint32_t laps = record::kLapsWord * record::kWordBytes;
    place = prepare(b, place);
    store(b, place, record::kLapEndWord * record::kWordBytes, lapEnd);
    if (isGlobal(place))
      return runMasked(b, place, "global_atomic_add $2, $3, off", laps,
                       b.constant(1));
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
  static bool isGlobal(StorePlace place) {
    return place.address.getType().isInteger(64);
  }

  /// The lanes in which `enabled` holds, as an execution mask.
  static Value ballot(LLVMBuilder &b, Value enabled) {
    OpBuilder &builder = b.builder;
    return createNamed(
               builder, b.loc, "llvm.call_intrinsic", {b.i64()}, {enabled},
               {builder.getNamedAttr(
                    "intrin", builder.getStringAttr("llvm.amdgcn.ballot.i64")),
                builder.getNamedAttr("op_bundle_sizes",
                                     builder.getDenseI32ArrayAttr({})),
                builder.getNamedAttr("operandSegmentSizes",
                                     builder.getDenseI32ArrayAttr({1, 0}))})
        ->getResult(0);
  }

  static void runMasked(LLVMBuilder &b, StorePlace place, StringRef access,
                        uint32_t offset, Value word) {
    b.inlineAsm("s_mov_b64 $0, exec\n\ts_and_b64 exec, exec, $1\n\t" + access +
                    " offset:" + Twine(offset) + "\n\ts_mov_b64 exec, $0",
                "=&s,s,v,v,~{memory},~{scc}", b.i64(),
                {place.enabled, place.address, word});
  }
};

} // namespace

std::unique_ptr<TargetLowering> createAmdLowering() {
  return std::make_unique<AmdLowering>();
}

} // namespace mlir::kperf
