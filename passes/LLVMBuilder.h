//===- LLVMBuilder.h - LLVM dialect operations by name --------------------===//
//
// The few operations that the lowering needs, for one location.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_PASSES_LLVMBUILDER_H
#define KPERFIR_PASSES_LLVMBUILDER_H

#include "passes/ForeignOps.h"

namespace mlir::kperf {

/// Codes of `llvm.icmp`.
enum class Compare { Eq, Ne, Slt, Sle, Sgt, Sge, Ult };

class LLVMBuilder {
public:
  LLVMBuilder(Operation *at) : builder(at), loc(at->getLoc()) {}

  Type i1() { return builder.getI1Type(); }
  Type i32() { return builder.getI32Type(); }
  Type i64() { return builder.getI64Type(); }

  Value constant(int64_t value) { return constant(value, i32()); }
  Value constant(int64_t value, Type type);
  Value add(Value a, Value b) { return binary("llvm.add", a, b); }
  Value add(Value a, int64_t b);
  Value sub(Value a, Value b) { return binary("llvm.sub", a, b); }
  Value mul(Value a, int64_t b);
  Value both(Value a, Value b) { return binary("llvm.and", a, b); }
  Value binary(StringRef name, Value a, Value b);
  Value compare(Compare predicate, Value a, Value b);
  Value select(Value condition, Value ifTrue, Value ifFalse);
  Value cast(StringRef name, Value value, Type to);
  Value extend(Value value) { return cast("llvm.zext", value, i64()); }
  Value part(Value structure, int64_t index); // An i32 of a structure.
  Value max(Value a, Value b) { return binary("llvm.intr.umax", a, b); }
  Value min(Value a, Value b) { return binary("llvm.intr.umin", a, b); }
  Value undefined();             // An i32.
  Value special(StringRef name); // An i32 register that an operation reads.

  /// Volatile: kept, and kept in order. Without `result` it returns nothing.
  Value inlineAsm(const Twine &text, StringRef constraints, Type result,
                  ValueRange operands);

  Block *splitBefore(Operation *op); // The block from `op` on.
  Block *createBlockBefore(Block *next, TypeRange arguments = {});
  void branch(Block *target, ValueRange arguments = {});
  void branchIf(Value condition, Block *ifTrue, Block *ifFalse,
                ValueRange falseArguments = {});
  /// The end of a loop that is not to be unrolled: back to `loop` while
  /// `condition` holds.
  void repeatIf(Value condition, Block *loop, ValueRange arguments,
                Block *after);

  OpBuilder builder;
  Location loc;
};

} // namespace mlir::kperf

#endif // KPERFIR_PASSES_LLVMBUILDER_H
