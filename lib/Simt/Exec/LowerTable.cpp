//===- LowerTable.cpp - Statements of the instruction table, control flow -===//
//
// Binds operands to the rows of the instruction table. mov, parameters, setp
// and set choose their row from the operands.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <cstring>

namespace kperfir::simt {
namespace {

/// The form under which the instruction table lists a mnemonic: to-nearest, the
/// default of the basic arithmetic, is not spelled out; min and max of three
/// operands are min3 and max3.
std::string normaliseMnemonic(std::string_view mnemonic, size_t operands) {
  std::string result(mnemonic);
  if (operands == 4 &&
      (mnemonic.starts_with("min.") || mnemonic.starts_with("max.")))
    return result.insert(3, "3");
  static constexpr std::string_view kBasic[] = {"add.rn.", "sub.rn.", "mul.rn.",
                                                "fma.rn.", "mad.rn."};
  for (std::string_view prefix : kBasic)
    if (result.starts_with(prefix))
      return result.erase(3, 3);
  return result;
}

bool hasCarry(const Semantics &row) {
  switch (row.opcode) {
  case Opcode::Add:
  case Opcode::Sub:
  case Opcode::Mad:
  case Opcode::AddC:
  case Opcode::SubC:
  case Opcode::MadC:
    return std::strchr(row.form.signature, 'p') != nullptr;
  default:
    return false;
  }
}

} // namespace

// --- instructions of the table -----------------------------------------------

void Lowering::tableInstruction() {
  std::string mnemonic = normaliseMnemonic(current->mnemonic, operandCount());
  if (mnemonic.starts_with("createpolicy.")) {
    // Cache policies change nothing here.
    expectOperands(1, 4);
    Value policy = constant(0, 'd');
    auto result = target(operand(0), 'd');
    VirtualOp &op = emit(row("mov.b64"));
    op.op.opcode = Opcode::CreatePolicy;
    write(op, Slot::Dst0, result);
    read(op, Slot::Src0, policy);
    return;
  }
  const Semantics *found = findSemantics(isa, mnemonic);
  if (!found)
    unsupported();
  bind(*found);
}

void Lowering::bind(const Semantics &semantics) {
  std::string_view signature = semantics.form.signature;
  std::string_view to = signature.substr(0, signature.find('='));
  std::string_view from = signature.substr(to.size() + 1);
  bool usesCarry = hasCarry(semantics);
  bool carryOut = usesCarry && to.size() > 1,
       carryIn = usesCarry && from.back() == 'p';
  if (usesCarry && !carry)
    carry = temporary(0);
  if (carryIn)
    from.remove_suffix(1);
  expectOperands(1 + from.size(), 1 + from.size());

  std::vector<Value> values;
  for (size_t i = 0; i < from.size(); ++i)
    values.push_back(source(operand(1 + i), from[i]));
  const ptx::Operand *first = &operand(0), *second = nullptr;
  if (first->kind == ptx::OperandKind::Pair) {
    if (to.size() < 2 || carryOut)
      malformed("only one destination is possible");
    second = &first->elements[1];
    first = &first->elements[0];
  }
  WideTarget result;
  bool mayWiden = semantics.opcode == Opcode::Cvt;
  if (mayWiden)
    result = wideTarget(*first, letterBits(to[0]));
  else
    result.written = target(*first, to[0]);
  std::optional<uint32_t> extra = carryOut ? carry : std::nullopt;
  if (second)
    extra = target(*second, to[1]);

  VirtualOp &op = emit(semantics);
  auto dot = current->mnemonic.rfind('.');
  if (dot != std::string::npos)
    op.op.type =
        typeFromName(std::string_view(current->mnemonic).substr(dot + 1))
            .value_or(Type::None);
  write(op, Slot::Dst0, result.written);
  write(op, Slot::Dst1, extra);
  for (size_t i = 0; i < values.size(); ++i)
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + i), values[i]);
  if (carryIn) {
    Value value;
    value.reg = *carry;
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + values.size()),
         value);
  }
  if (!result.written && !second && to[0] != 'p' &&
      semantics.opcode != Opcode::Shfl && semantics.opcode != Opcode::Elect) {
    // A sink where the handler wants a row: give it one that nobody reads.
    unsigned bits = letterBits(to[0]);
    write(op, Slot::Dst0,
          temporary(static_cast<uint8_t>(bits <= 32 ? 1 : bits / 32)));
  }
  if (mayWiden) {
    auto parts = words();
    widen(result, typeFromName(parts[parts.size() - 2]).value_or(Type::None));
  }
}

// --- mov ---------------------------------------------------------------------

void Lowering::move() {
  expectOperands(2, 2);
  const ptx::Operand &to = operand(0), &from = operand(1);
  if (to.kind == ptx::OperandKind::Vector)
    return unpackVector();
  if (from.kind == ptx::OperandKind::Vector)
    return packVector();
  std::string_view typeWord = words().back();
  auto type = typeFromName(typeWord);
  if (!type || words().size() != 2)
    unsupported();
  char letter = typeLetter(*type);
  if (from.kind == ptx::OperandKind::Special) {
    Value value = special(from.text, letter);
    // The helper becomes the instruction itself.
    VirtualOp helper = std::move(ops.back());
    ops.pop_back();
    const Semantics &semantics =
        row(letter == 'd' ? "mov.special.d" : "mov.special.w");
    auto result = target(to, letter);
    VirtualOp &op = emit(semantics);
    op.op.sub = helper.op.sub;
    op.op.type = *type;
    if (helper.op.has(kReadsClock)) {
      op.op.flags |= kReadsClock;
      op.op.latency = LatencyClass::Clock;
    }
    write(op, Slot::Dst0, result ? result : value.reg);
    return;
  }
  Value value = source(from, letter);
  auto result = target(to, letter);
  VirtualOp &op = emit(row("mov." + std::string(typeWord)));
  op.op.type = *type;
  write(op, Slot::Dst0, result);
  read(op, Slot::Src0, value);
}

static char partLetter(unsigned bits, size_t parts) {
  switch (bits / parts) {
  case 8:
    return 'b';
  case 16:
    return 'h';
  case 32:
    return 'w';
  case 64:
    return 'd';
  default:
    return '?';
  }
}

void Lowering::unpackVector() {
  const ptx::Operand &vector = operand(0);
  unsigned bits = typeBits(typeFromName(words().back()).value_or(Type::None));
  char letter =
      vector.elements.empty() ? '?' : partLetter(bits, vector.elements.size());
  if (letter == '?')
    unsupported("with " + std::to_string(vector.elements.size()) + " elements");
  char whole = partLetter(bits, 1);
  Value value = source(operand(1), bits == 128 ? 'q' : whole);
  std::vector<std::optional<uint32_t>> targets;
  for (const ptx::Operand &element : vector.elements)
    targets.push_back(target(element, letter));
  VirtualOp &op =
      emit(row("unpack." + std::string(vector.elements.size(), letter)));
  op.op.width = static_cast<uint8_t>(targets.size());
  for (const auto &reg : targets)
    writePool(op, reg);
  read(op, Slot::Src0, value);
}

void Lowering::packVector() {
  const ptx::Operand &vector = operand(1);
  unsigned bits = typeBits(typeFromName(words().back()).value_or(Type::None));
  char letter =
      vector.elements.empty() ? '?' : partLetter(bits, vector.elements.size());
  if (letter == '?')
    unsupported("with " + std::to_string(vector.elements.size()) + " elements");
  char whole = partLetter(bits, 1);
  std::vector<Value> values = sources(vector, letter);
  auto result = target(operand(0), bits == 128 ? 'q' : whole);
  VirtualOp &op = emit(row("pack." + std::string(values.size(), letter)));
  write(op, Slot::Dst0, result);
  for (size_t i = 0; i < values.size(); ++i)
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + i), values[i]);
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

// --- comparisons -------------------------------------------------------------

/// Take `.and` and the like out of the words.
static Combine takeCombine(std::vector<std::string_view> &words) {
  static constexpr std::pair<std::string_view, Combine> kNames[] = {
      {"and", Combine::And}, {"or", Combine::Or}, {"xor", Combine::Xor}};
  for (auto [name, combine] : kNames)
    if (words.size() > 2 && words[2] == name) {
      words.erase(words.begin() + 2);
      return combine;
    }
  return Combine::None;
}

static std::string join(const std::vector<std::string_view> &words) {
  std::string result;
  for (std::string_view word : words)
    result += (result.empty() ? "" : ".") + std::string(word);
  return result;
}

void Lowering::setp() {
  auto parts = words();
  Combine combine = takeCombine(parts);
  if (operandCount() < 1)
    expectOperands(3, 4);
  const ptx::Operand &to = operand(0);
  if (to.kind == ptx::OperandKind::Pair)
    compare(join(parts), combine, target(to.elements[0], 'p'),
            target(to.elements[1], 'p'));
  else
    compare(join(parts), combine, target(to, 'p'), std::nullopt);
}

void Lowering::compare(const std::string &mnemonic, Combine combine,
                       std::optional<uint32_t> result,
                       std::optional<uint32_t> complement) {
  size_t count = combine == Combine::None ? 3 : 4;
  expectOperands(count, count);
  const Semantics *found = findSemantics(isa, mnemonic);
  if (!found)
    unsupported();
  Value a = source(operand(1), found->form.signature[2]);
  Value b = source(operand(2), found->form.signature[3]);
  VirtualOp &op = emit(*found);
  op.op.type = typeFromName(words().back()).value_or(Type::None);
  write(op, Slot::Dst0, result);
  write(op, Slot::Dst1, complement);
  read(op, Slot::Src0, a);
  read(op, Slot::Src1, b);
  if (combine == Combine::None)
    return;
  const ptx::Operand &other = operand(3);
  if (other.kind != ptx::OperandKind::Register ||
      registerType(other.id) != Type::Pred)
    malformed("the last operand is not a predicate");
  op.op.sub = static_cast<uint8_t>(combine);
  if (other.negated)
    op.op.flags |= kPredSrcNegated;
  Value value;
  value.reg = virtualRegister(other.id);
  read(op, Slot::Src2, value);
}

/// set.lt.u32.f32 d, a, b: setp, then one of two constants.
void Lowering::set() {
  if (const Semantics *packed = findSemantics(isa, current->mnemonic))
    return bind(*packed);
  auto parts = words();
  Combine combine = takeCombine(parts);
  if (parts.size() < 4)
    unsupported();
  Type type = typeFromName(parts[parts.size() - 2]).value_or(Type::None);
  uint64_t one = ~uint64_t(0);
  if (type == Type::F32)
    one = 0x3F80'0000;
  else if (type == Type::F16)
    one = 0x3C00;
  else if (type == Type::BF16)
    one = 0x3F80;
  char letter = typeLetter(type);
  if (letter != 'h' && letter != 'w')
    unsupported();
  parts.erase(parts.end() - 2);
  parts[0] = "setp";
  uint32_t condition = temporary(0);
  compare(join(parts), combine, condition, std::nullopt);
  Value yes = constant(one, letter), no = constant(0, letter), which;
  which.reg = condition;
  auto result = target(operand(0), letter);
  VirtualOp &tail = emitTail(letter == 'h' ? "selp.b16" : "selp.b32");
  write(tail, Slot::Dst0, result);
  read(tail, Slot::Src0, yes);
  read(tail, Slot::Src1, no);
  read(tail, Slot::Src2, which);
}

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

} // namespace kperfir::simt
