//===- LowerMatrix.cpp - ldmatrix, stmatrix, movmatrix, mma.sync ----------===//
//
// Operands are placed as Program.h documents per opcode. Which shapes of
// mma.sync there are is known to its kernels (MatrixKernels.cpp).
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {

namespace {
/// What ldmatrix and stmatrix move.
struct Matrices {
  unsigned count = 0;
  bool isTransposed = false;
};
} // namespace

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16; no matrices if it is
/// unknown.
static Matrices parseMatrices(const Words &words) {
  Matrices matrices;
  bool isKnown = words.size() > 4 && words[1] == "sync" &&
                 words[2] == "aligned" && words[3] == "m8n8" &&
                 words.back() == "b16";
  for (size_t i = 4; isKnown && i + 1 < words.size(); ++i) {
    if (words[i] == "trans")
      matrices.isTransposed = true;
    else if (words[i] == "x1" || words[i] == "x2" || words[i] == "x4")
      matrices.count = static_cast<unsigned>(words[i][1] - '0');
    else if (words[i] != "shared" && words[i] != "shared::cta")
      isKnown = false;
  }
  return isKnown ? matrices : Matrices{};
}

static void describe(const Matrices &matrices, MicroOp &op) {
  op.type = Type::B16;
  op.space = Space::Shared;
  op.width = static_cast<uint8_t>(matrices.count);
  if (matrices.isTransposed)
    op.flags |= kTranspose;
}

void Lowering::loadMatrix() {
  Matrices matrices = parseMatrices(words());
  if (matrices.count == 0)
    unsupported();
  expectOperands(2, 2);
  Value base = addressBase(operand(1));
  std::vector<std::optional<uint32_t>> targets;
  if (operand(0).kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand(0).elements)
      targets.push_back(target(element, 'w'));
  else
    targets.push_back(target(operand(0), 'w'));
  if (targets.size() != matrices.count)
    malformed("found " + std::to_string(targets.size()) +
              " destinations, expected " + std::to_string(matrices.count));
  VirtualOp &op = emit(Opcode::LdMatrix, OpKind::Matrix,
                       {Pipe::Lsu, LatencyClass::LdMatrix});
  describe(matrices, op.op);
  setAddress(op, base, operand(1));
  for (const auto &reg : targets)
    writePool(op, reg);
}

void Lowering::storeMatrix() {
  Matrices matrices = parseMatrices(words());
  if (matrices.count == 0)
    unsupported();
  expectOperands(2, 2);
  Value base = addressBase(operand(0));
  std::vector<Value> values = sources(operand(1), 'w');
  if (values.size() != matrices.count)
    malformed("found " + std::to_string(values.size()) + " values, expected " +
              std::to_string(matrices.count));
  VirtualOp &op = emit(Opcode::StMatrix, OpKind::Matrix,
                       {Pipe::Lsu, LatencyClass::StMatrix});
  describe(matrices, op.op);
  setAddress(op, base, operand(0));
  for (const Value &value : values)
    readPool(op, value);
}

void Lowering::moveMatrix() {
  if (current->mnemonic != "movmatrix.sync.aligned.m8n8.trans.b16")
    unsupported();
  expectOperands(2, 2);
  Value value = source(operand(1), 'w');
  auto result = target(operand(0), 'w');
  VirtualOp &op = emit(Opcode::MovMatrix, OpKind::Matrix,
                       {Pipe::Lsu, LatencyClass::Shuffle});
  op.op.flags |= kTranspose;
  write(op, Slot::Dst0, result);
  read(op, Slot::Src0, value);
}

/// "m16n8k16" to its three numbers.
static bool parseShape(std::string_view word, MmaShape &shape) {
  unsigned values[3] = {0, 0, 0};
  size_t at = 0;
  for (unsigned i = 0; i < 3; ++i) {
    if (at >= word.size() || word[at] != "mnk"[i])
      return false;
    for (++at; at < word.size() && word[at] >= '0' && word[at] <= '9'; ++at)
      values[i] = values[i] * 10 + static_cast<unsigned>(word[at] - '0');
    if (values[i] == 0 || values[i] > 1024)
      return false;
  }
  shape.m = static_cast<uint16_t>(values[0]);
  shape.n = static_cast<uint16_t>(values[1]);
  shape.k = static_cast<uint16_t>(values[2]);
  return at == word.size();
}

void Lowering::multiply() {
  // mma.sync.aligned.m16n8k16.row.col[.satfinite].f32.f16.f16.f32 d, a, b, c
  Words parts = words();
  MmaShape shape;
  shape.satfinite = std::erase(parts, "satfinite") != 0;
  if (parts.size() != 10 || parts[2] != "aligned" ||
      !parseShape(parts[3], shape) || parts[4] != "row" || parts[5] != "col")
    unsupported();
  Type *types[] = {&shape.typeD, &shape.typeA, &shape.typeB, &shape.typeC};
  for (size_t i = 0; i < 4; ++i) {
    *types[i] = typeFromName(parts[6 + i]).value_or(Type::None);
    if (*types[i] == Type::None)
      unsupported();
  }
  expectOperands(4, 4);
  auto letter = [](Type type) { return type == Type::F64 ? 'd' : 'w'; };
  std::vector<std::optional<uint32_t>> results;
  if (operand(0).kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand(0).elements)
      results.push_back(target(element, letter(shape.typeD)));
  else
    results.push_back(target(operand(0), letter(shape.typeD)));
  for (auto &result : results)
    if (!result)
      result = temporary(shape.typeD == Type::F64 ? 2 : 1);
  std::vector<Value> a = sources(operand(1), letter(shape.typeA));
  std::vector<Value> b = sources(operand(2), letter(shape.typeB));
  std::vector<Value> c = sources(operand(3), letter(shape.typeC));
  shape.numD = static_cast<uint8_t>(results.size());
  shape.numA = static_cast<uint8_t>(a.size());
  shape.numB = static_cast<uint8_t>(b.size());
  shape.numC = static_cast<uint8_t>(c.size());
  auto bits = [](unsigned rows, unsigned columns, Type type) {
    return rows * columns * typeBits(type);
  };
  auto check = [&](const char *name, size_t registers, unsigned needed,
                   Type type) {
    unsigned perThread = needed / kWarpSize / (type == Type::F64 ? 64 : 32);
    if (registers != perThread)
      malformed("matrix " + std::string(name) + " has " +
                std::to_string(registers) + " registers, expected " +
                std::to_string(perThread));
  };
  // tf32 lies in 32-bit registers like f32; typeBits says so.
  check("D", results.size(), bits(shape.m, shape.n, shape.typeD), shape.typeD);
  check("A", a.size(), bits(shape.m, shape.k, shape.typeA), shape.typeA);
  check("B", b.size(), bits(shape.k, shape.n, shape.typeB), shape.typeB);
  check("C", c.size(), bits(shape.m, shape.n, shape.typeC), shape.typeC);

  VirtualOp &op =
      emit(Opcode::Mma, OpKind::Matrix, {Pipe::Tensor, LatencyClass::Mma});
  op.op.type = shape.typeD;
  op.op.imm = static_cast<int32_t>(program.mmas.size());
  auto same = std::find_if(
      program.mmas.begin(), program.mmas.end(), [&](const MmaShape &other) {
        return other.m == shape.m && other.n == shape.n && other.k == shape.k &&
               other.typeD == shape.typeD && other.typeA == shape.typeA &&
               other.typeB == shape.typeB && other.typeC == shape.typeC &&
               other.satfinite == shape.satfinite;
      });
  if (same != program.mmas.end())
    op.op.imm = static_cast<int32_t>(same - program.mmas.begin());
  else
    program.mmas.push_back(shape);
  for (const auto &result : results)
    writePool(op, result);
  for (const auto *values : {&a, &b, &c})
    for (const Value &value : *values)
      readPool(op, value);
}

} // namespace kperfir::simt
