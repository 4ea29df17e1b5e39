//===- LowerWgmma.cpp - wgmma.mma_async and its groups --------------------===//
//
// Operands are placed as Program.h documents per opcode. Types and shapes that
// the unit does not have are refused here, by name.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {

static constexpr Timing kWgmma{Pipe::Tensor, LatencyClass::Wgmma};

/// "m64n128k16" to n and k.
static bool parseWgmmaShape(std::string_view word, WgmmaShape &shape) {
  if (!word.starts_with("m64n"))
    return false;
  uint16_t *const fields[] = {&shape.n, &shape.k};
  size_t at = 3;
  for (unsigned i = 0; i < 2; ++i) {
    if (at >= word.size() || word[at] != "nk"[i])
      return false;
    unsigned value = 0;
    for (++at; at < word.size() && word[at] >= '0' && word[at] <= '9'; ++at)
      value =
          std::min(value * 10 + static_cast<unsigned>(word[at] - '0'), 65535u);
    *fields[i] = static_cast<uint16_t>(value);
  }
  return at == word.size() && shape.n >= 8 && shape.n <= 256 &&
         shape.n % 8 == 0;
}

/// Whether wgmma has these types; k is always 32 bytes of A and B.
static bool isWgmmaType(const WgmmaShape &shape) {
  unsigned bits = typeBits(shape.typeA == Type::TF32 ? Type::F32 : shape.typeA);
  if (bits == 0 || shape.k * bits != 256)
    return false;
  bool halfOrFloat = shape.typeD == Type::F16 || shape.typeD == Type::F32;
  auto isFloat8 = [](Type type) {
    return type == Type::E4M3 || type == Type::E5M2;
  };
  auto isInt8 = [](Type type) { return type == Type::S8 || type == Type::U8; };
  switch (shape.typeA) {
  case Type::F16:
    return shape.typeB == Type::F16 && halfOrFloat;
  case Type::BF16:
  case Type::TF32:
    return shape.typeB == shape.typeA && shape.typeD == Type::F32;
  default:
    return (isFloat8(shape.typeA) && isFloat8(shape.typeB) && halfOrFloat) ||
           (isInt8(shape.typeA) && isInt8(shape.typeB) &&
            shape.typeD == Type::S32);
  }
}

void Lowering::wgmma() {
  // wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 d, a, b, scale-d,
  //   imm-scale-a, imm-scale-b[, imm-trans-a], imm-trans-b
  Words parts = words();
  WgmmaShape shape;
  shape.satfinite = std::erase(parts, "satfinite") != 0;
  if (parts.size() != 8 || parts[2] != "sync" || parts[3] != "aligned" ||
      !parseWgmmaShape(parts[4], shape))
    unsupported();
  shape.typeD = typeFromName(parts[5]).value_or(Type::None);
  shape.typeA = typeFromName(parts[6]).value_or(Type::None);
  shape.typeB = typeFromName(parts[7]).value_or(Type::None);
  if (!isWgmmaType(shape))
    unsupported();

  expectOperands(4, 8);
  if (operand(0).kind != ptx::OperandKind::Vector)
    malformed("matrix D is not a vector of registers");
  std::vector<std::optional<uint32_t>> accumulators;
  for (const ptx::Operand &element : operand(0).elements)
    accumulators.push_back(target(element, 'w'));
  bool aInRegisters = operand(1).kind == ptx::OperandKind::Vector;
  std::vector<Value> a = aInRegisters ? sources(operand(1), 'w')
                                      : std::vector{source(operand(1), 'd')};
  Value b = source(operand(2), 'd');
  shape.numD = static_cast<uint8_t>(accumulators.size());
  shape.numA = static_cast<uint8_t>(aInRegisters ? a.size() : 0);
  size_t expected = shape.n / (shape.typeD == Type::F16 ? 4u : 2u);
  if (accumulators.size() != expected)
    malformed("matrix D has " + std::to_string(accumulators.size()) +
              " registers, expected " + std::to_string(expected));
  if (aInRegisters && a.size() != 4)
    malformed("matrix A has " + std::to_string(a.size()) +
              " registers, expected 4");

  std::optional<Value> scaleD;
  if (auto constant = smallConstant(operand(3)))
    shape.scaleD = *constant != 0;
  else
    scaleD = source(operand(3), 'p');
  wgmmaScales(shape);

  VirtualOp &op = emit(Opcode::Wgmma, OpKind::Bulk, kWgmma);
  op.op.type = shape.typeD;
  op.op.imm = static_cast<int32_t>(program.wgmmas.size());
  program.wgmmas.push_back(shape);
  for (auto &reg : accumulators) {
    if (!reg)
      reg = temporary(1);
    writePool(op, reg);
  }
  // The old sum is read as well, but not waited for: the unit keeps it.
  if (shape.scaleD)
    for (const auto &reg : accumulators)
      op.references.push_back({*reg, Slot::Src2, false, 0, true});
  if (aInRegisters)
    for (const Value &value : a)
      readPool(op, value);
  else
    read(op, Slot::Src0, a[0]);
  read(op, Slot::Src1, b);
  if (scaleD)
    read(op, Slot::Src3, *scaleD);
}

/// The constants after scale-d: signs and, for 16-bit elements, transpositions.
void Lowering::wgmmaScales(WgmmaShape &shape) {
  bool isInteger = shape.typeD == Type::S32;
  bool canTranspose = shape.typeA == Type::F16 || shape.typeA == Type::BF16;
  bool aInRegisters = shape.numA != 0;
  size_t count =
      4 + (isInteger ? 0 : 2) + (canTranspose ? (aInRegisters ? 1u : 2u) : 0u);
  expectOperands(count, count);
  if (isInteger)
    return;
  auto flag = [&](size_t index, uint64_t yes, uint64_t no) {
    const ptx::Operand &value = operand(index);
    if (value.kind != ptx::OperandKind::Immediate ||
        (value.bits != yes && value.bits != no))
      malformed("operand " + std::to_string(index) +
                " is not one of its two constants");
    return value.bits == yes;
  };
  shape.negateA = flag(4, ~uint64_t(0), 1);
  shape.negateB = flag(5, ~uint64_t(0), 1);
  if (!canTranspose)
    return;
  if (!aInRegisters)
    shape.transposeA = flag(6, 1, 0);
  shape.transposeB = flag(count - 1, 1, 0);
}

void Lowering::wgmmaGroup() {
  const std::string &name = current->mnemonic;
  if (name == "wgmma.wait_group.sync.aligned") {
    expectOperands(1, 1);
    auto groups = smallConstant(operand(0));
    if (!groups)
      malformed("the number of groups is not a constant");
    VirtualOp &op = emit(Opcode::WgmmaWaitGroup, OpKind::Bulk, kWgmma);
    op.op.imm = static_cast<int32_t>(*groups);
    return;
  }
  expectOperands(0, 0);
  if (name == "wgmma.fence.sync.aligned")
    emit(Opcode::WgmmaFence, OpKind::Bulk, kWgmma);
  else if (name == "wgmma.commit_group.sync.aligned")
    emit(Opcode::WgmmaCommitGroup, OpKind::Bulk, kWgmma);
  else
    unsupported();
}

} // namespace kperfir::simt
