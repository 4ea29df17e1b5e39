//===- LowerTable.cpp - Statements of the instruction table ---------------===//
//
// Binds operands to the rows of the instruction table. mov, setp and
// set choose their row from the operands.
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
    if (helper.op.latency == LatencyClass::LoadParam) {
      op.op.pipe = helper.op.pipe;
      op.op.latency = helper.op.latency;
    }
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

} // namespace kperfir::simt
