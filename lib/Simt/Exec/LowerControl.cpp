//===- LowerControl.cpp - Control flow, and parameters --------------------===//
//
// Branches and returns, and ld.param and st.param, which hand values to
// functions that are inlined.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

namespace kperfir::simt {

// --- control flow ------------------------------------------------------------

// Targets are block indices until all pcs are known.

void Lowering::branch() {
  expectOperands(1, 1);
  if (operand(0).kind != ptx::OperandKind::Label)
    malformed("the target is not a label");
  VirtualOp &op =
      emit(Opcode::Bra, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
  op.op.imm =
      static_cast<int32_t>(flow.blockOfLabel[frame->labelBase + operand(0).id]);
  if (current->mnemonic == "bra.uni" || current->guard == ptx::kNoRegister)
    op.op.flags |= kUniform;
}

void Lowering::branchTable() {
  expectOperands(2, 2);
  if (operand(1).kind != ptx::OperandKind::Label ||
      !frame->function->labels[operand(1).id].isTable)
    malformed("the target list is not a .branchtargets label");
  Value index = source(operand(0), 'w');
  const auto &labels = frame->function->labels[operand(1).id].branchTargets;
  if (labels.size() > 255)
    unsupported("with more than 255 targets");
  VirtualOp &op = emit(Opcode::BrxIdx, OpKind::Control,
                       {Pipe::Branch, LatencyClass::Branch});
  read(op, Slot::Src0, index);
  op.op.imm = static_cast<int32_t>(program.branchTargets.size());
  op.op.width = static_cast<uint8_t>(labels.size());
  if (current->mnemonic == "brx.idx.uni")
    op.op.flags |= kUniform;
  for (uint32_t label : labels)
    program.branchTargets.push_back(
        flow.blockOfLabel[frame->labelBase + label]);
}

void Lowering::ret() {
  expectOperands(0, 0);
  bool isInlined = frame != &kernel.frames[0] && current->mnemonic != "exit";
  if (!isInlined) {
    emit(Opcode::Ret, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
    return;
  }
  // The body follows its call, so the last `ret` of a function falls through.
  if (kernel.labels[frame->endLabel] == currentIndex + 1)
    return;
  VirtualOp &op =
      emit(Opcode::Bra, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
  op.op.imm = static_cast<int32_t>(flow.blockOfLabel[frame->endLabel]);
  if (current->guard == ptx::kNoRegister)
    op.op.flags |= kUniform;
}

// --- parameters --------------------------------------------------------------

/// "u32" for any 32-bit type but the signed integer.
static std::string integerName(Type type) {
  bool isSigned = type == Type::S8 || type == Type::S16 || type == Type::S32 ||
                  type == Type::S64;
  return (isSigned ? "s" : "u") + std::to_string(typeBits(type));
}

void Lowering::paramLoad() {
  expectOperands(2, 2);
  const ptx::Operand &from = operand(1);
  if (from.kind != ptx::OperandKind::Address || from.elements.empty())
    malformed("the source is not an address");
  if (from.elements[0].kind != ptx::OperandKind::Variable)
    return load();
  Type type = typeFromName(words().back()).value_or(Type::None);
  unsigned bytes = typeBits(type) / 8;
  if (bytes == 0 || bytes > 8)
    unsupported();
  uint32_t id = resolveVariable(from.elements[0].id);
  std::vector<const ptx::Operand *> targets;
  if (operand(0).kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand(0).elements)
      targets.push_back(&element);
  else
    targets.push_back(&operand(0));
  auto block = layout.params.find(id);
  for (size_t i = 0; i < targets.size(); ++i) {
    int64_t offset = from.offset + static_cast<int64_t>(i * bytes);
    if (targets[i]->kind == ptx::OperandKind::Sink)
      continue;
    if (targets[i]->kind != ptx::OperandKind::Register)
      malformed("a destination is not a register");
    unsigned have = typeBits(registerType(targets[i]->id));
    if (have < typeBits(type))
      malformed("a destination is narrower than the value");
    if (block != layout.params.end()) {
      if (offset < 0 ||
          static_cast<uint64_t>(offset) + bytes > variable(id).bytes)
        malformed("the access is outside parameter '" + variable(id).name +
                  "'");
      VirtualOp &op = emit(row("ld.param." + integerName(type) + "." +
                               (have == 64   ? "d"
                                : have == 32 ? "w"
                                             : "h")));
      op.op.type = type;
      op.op.imm = static_cast<int32_t>(block->second + offset);
      if (i > 0)
        op.op.flags |= kSynthetic;
      write(op, Slot::Dst0, virtualRegister(targets[i]->id));
      continue;
    }
    auto stored = paramValues.find({id, offset});
    if (stored == paramValues.end() || stored->second.bits != typeBits(type))
      unsupported("on parameter '" + variable(id).name +
                  "': it was not stored in this width");
    Value value;
    value.reg = stored->second.reg;
    std::string name = integerName(type);
    VirtualOp &op = emit(
        row("cvt." + name.substr(0, 1) + std::to_string(have) + "." + name));
    op.op.type = type;
    write(op, Slot::Dst0, virtualRegister(targets[i]->id));
    read(op, Slot::Src0, value);
  }
}

void Lowering::paramStore() {
  expectOperands(2, 2);
  const ptx::Operand &to = operand(0);
  if (to.kind != ptx::OperandKind::Address || to.elements.empty() ||
      to.elements[0].kind != ptx::OperandKind::Variable)
    malformed("the destination is not a parameter");
  Type type = typeFromName(words().back()).value_or(Type::None);
  unsigned bits = typeBits(type);
  if (bits == 0 || bits > 64)
    unsupported();
  uint32_t id = resolveVariable(to.elements[0].id);
  std::vector<Value> values = sources(operand(1), typeLetter(type));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t offset = to.offset + static_cast<int64_t>(i * bits / 8);
    auto [entry, isNew] = paramValues.try_emplace({id, offset});
    if (isNew || entry->second.bits != bits)
      entry->second = {temporary(bits <= 32 ? 1 : 2), bits};
    VirtualOp &op = emit(row(bits <= 16   ? "mov.b16"
                             : bits == 32 ? "mov.b32"
                                          : "mov.b64"));
    op.op.type = type;
    write(op, Slot::Dst0, entry->second.reg);
    read(op, Slot::Src0, values[i]);
  }
}

} // namespace kperfir::simt
