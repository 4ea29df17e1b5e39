//===- LLVMBuilder.cpp - LLVM dialect operations by name ------------------===//

#include "passes/LLVMBuilder.h"

#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace mlir::kperf;

Value LLVMBuilder::constant(int64_t value, Type type) {
  NamedAttribute attribute =
      builder.getNamedAttr("value", builder.getIntegerAttr(type, value));
  return createNamed(builder, loc, "llvm.mlir.constant", {type}, {},
                     {attribute})
      ->getResult(0);
}

Value LLVMBuilder::undefined() {
  return createNamed(builder, loc, "llvm.mlir.undef", {i32()}, {})
      ->getResult(0);
}

Value LLVMBuilder::add(Value a, int64_t b) {
  return b == 0 ? a : add(a, constant(b, a.getType()));
}

Value LLVMBuilder::mul(Value a, int64_t b) {
  return binary("llvm.mul", a, constant(b, a.getType()));
}

Value LLVMBuilder::binary(StringRef name, Value a, Value b) {
  return createNamed(builder, loc, name, {a.getType()}, {a, b})->getResult(0);
}

Value LLVMBuilder::compare(Compare predicate, Value a, Value b) {
  NamedAttribute attribute = builder.getNamedAttr(
      "predicate", builder.getI64IntegerAttr(static_cast<int64_t>(predicate)));
  return createNamed(builder, loc, "llvm.icmp", {i1()}, {a, b}, {attribute})
      ->getResult(0);
}

Value LLVMBuilder::select(Value condition, Value ifTrue, Value ifFalse) {
  return createNamed(builder, loc, "llvm.select", {ifTrue.getType()},
                     {condition, ifTrue, ifFalse})
      ->getResult(0);
}

Value LLVMBuilder::cast(StringRef name, Value value, Type to) {
  return createNamed(builder, loc, name, {to}, {value})->getResult(0);
}

Value LLVMBuilder::special(StringRef name) {
  return createNamed(builder, loc, name, {i32()}, {})->getResult(0);
}

Value LLVMBuilder::part(Value structure, int64_t index) {
  return createNamed(builder, loc, "llvm.extractvalue", {i32()}, {structure},
                     {builder.getNamedAttr(
                         "position", builder.getDenseI64ArrayAttr(index))})
      ->getResult(0);
}

Value LLVMBuilder::inlineAsm(const Twine &text, StringRef constraints,
                             Type result, ValueRange operands) {
  Operation *op = createNamed(
      builder, loc, "llvm.inline_asm", result ? TypeRange(result) : TypeRange(),
      operands,
      {builder.getNamedAttr("asm_string", builder.getStringAttr(text)),
       builder.getNamedAttr("constraints", builder.getStringAttr(constraints)),
       builder.getNamedAttr("has_side_effects", builder.getUnitAttr())});
  return result ? op->getResult(0) : Value();
}

Block *LLVMBuilder::splitBefore(Operation *op) {
  Block *head = op->getBlock();
  Block *tail = head->splitBlock(op);
  builder.setInsertionPointToEnd(head);
  return tail;
}

Block *LLVMBuilder::createBlockBefore(Block *next, TypeRange arguments) {
  auto *block = new Block();
  next->getParent()->getBlocks().insert(Region::iterator(next), block);
  for (Type type : arguments)
    block->addArgument(type, loc);
  return block;
}

void LLVMBuilder::branch(Block *target, ValueRange arguments) {
  OperationState state(loc, "llvm.br");
  state.addOperands(arguments);
  state.addSuccessors(target);
  builder.create(state);
}

/// A conditional branch, to which attributes may be added.
static Operation *createBranchIf(LLVMBuilder &b, Value condition,
                                 std::pair<Block *, ValueRange> ifTrue,
                                 std::pair<Block *, ValueRange> ifFalse) {
  OperationState state(b.loc, "llvm.cond_br");
  state.addOperands(condition);
  state.addOperands(ifTrue.second);
  state.addOperands(ifFalse.second);
  state.addSuccessors({ifTrue.first, ifFalse.first});
  auto count = [](ValueRange values) {
    return static_cast<int32_t>(values.size());
  };
  state.addAttribute("operandSegmentSizes",
                     b.builder.getDenseI32ArrayAttr(
                         {1, count(ifTrue.second), count(ifFalse.second)}));
  return b.builder.create(state);
}

void LLVMBuilder::branchIf(Value condition, Block *ifTrue, Block *ifFalse,
                           ValueRange falseArguments) {
  createBranchIf(*this, condition, {ifTrue, {}}, {ifFalse, falseArguments});
}

void LLVMBuilder::repeatIf(Value condition, Block *loop, ValueRange arguments,
                           Block *after) {
  createBranchIf(*this, condition, {loop, arguments}, {after, {}})
      ->setAttr(
          "loop_annotation",
          parseAttribute("#llvm.loop_annotation<unroll = <disable = true>>",
                         builder.getContext()));
}
