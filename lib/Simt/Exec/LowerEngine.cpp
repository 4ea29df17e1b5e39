//===- LowerEngine.cpp - Barriers, matrices, system calls -----------------===//
//
// Statements that the engine executes, but for memory (LowerMemory.cpp), and
// the list of all of them. Operands are placed as Program.h documents per
// opcode.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr Timing kBarrier{Pipe::Branch, LatencyClass::Barrier};
constexpr Timing kCluster{Pipe::Branch, LatencyClass::Cluster};
constexpr Timing kNothing{Pipe::None, LatencyClass::Nop};

} // namespace

const Lowering::Rule Lowering::kEngineRules[] = {
    {"ld", &Lowering::load},
    {"ldu", &Lowering::load},
    {"st", &Lowering::store},
    {"atom", &Lowering::atomic},
    {"red", &Lowering::atomic},
    {"st.async", &Lowering::accessAsync},
    {"red.async", &Lowering::accessAsync},
    {"fence", &Lowering::fence},
    {"membar", &Lowering::fence},
    {"prefetch", &Lowering::prefetch},
    {"prefetchu", &Lowering::prefetch},
    {"applypriority", &Lowering::prefetch},
    {"bar", &Lowering::barrier},
    {"barrier", &Lowering::barrier},
    {"barrier.cluster", &Lowering::clusterBarrier},
    {"mbarrier", &Lowering::mbarrier},
    {"cp.async.ca", &Lowering::asyncCopy},
    {"cp.async.cg", &Lowering::asyncCopy},
    {"cp.async.commit_group", &Lowering::asyncGroup},
    {"cp.async.wait_group", &Lowering::asyncGroup},
    {"cp.async.wait_all", &Lowering::asyncGroup},
    {"cp.async.mbarrier.arrive", &Lowering::asyncArrive},
    {"ldmatrix", &Lowering::loadMatrix},
    {"stmatrix", &Lowering::storeMatrix},
    {"movmatrix", &Lowering::moveMatrix},
    {"mma.sync", &Lowering::multiply},
    {"wgmma.mma_async", &Lowering::wgmma},
    {"wgmma.fence", &Lowering::wgmmaGroup},
    {"wgmma.commit_group", &Lowering::wgmmaGroup},
    {"wgmma.wait_group", &Lowering::wgmmaGroup},
    {"cp.async.bulk", &Lowering::bulkCopy},
    {"cp.reduce.async.bulk", &Lowering::bulkCopy},
    {"cp.async.bulk.commit_group", &Lowering::bulkGroup},
    {"cp.async.bulk.wait_group", &Lowering::bulkGroup},
    {"tensormap.replace", &Lowering::tensormapReplace},
    {"tensormap.cp_fenceproxy", &Lowering::tensormapCopy},
    {"call", &Lowering::systemCall},
    {"nanosleep", &Lowering::sleep},
    {"trap", &Lowering::trap},
    {"brkpt", &Lowering::trap},
    {"setmaxnreg", &Lowering::setMaxRegisters},
    {"griddepcontrol", &Lowering::nothing},
    {"pmevent", &Lowering::nothing},
};
const unsigned Lowering::kEngineRuleCount = std::size(kEngineRules);

// --- barriers ----------------------------------------------------------------

void Lowering::barrier() {
  Words parts = words();
  Words rest(parts.begin() + 1, parts.end());
  bool isAligned = parts[0] == "bar"; // `barrier` is aligned only if it says so
  std::erase_if(rest, [&](std::string_view word) {
    isAligned |= word == "aligned";
    return word == "aligned" || word == "cta";
  });
  if (rest.size() == 2 && rest[0] == "warp" && rest[1] == "sync") {
    expectOperands(1, 1);
    Value mask = source(operand(0), 'w');
    VirtualOp &op = emit(Opcode::BarWarpSync, OpKind::Barrier, kBarrier);
    read(op, Slot::Src0, mask);
    return;
  }
  Opcode opcode = Opcode::BarSync;
  BarReduce reduce = BarReduce::Popc;
  if (rest.size() == 1 && rest[0] == "arrive") {
    opcode = Opcode::BarArrive;
  } else if (rest.size() == 3 && rest[0] == "red") {
    opcode = Opcode::BarRed;
    if (rest[1] == "and" && rest[2] == "pred")
      reduce = BarReduce::And;
    else if (rest[1] == "or" && rest[2] == "pred")
      reduce = BarReduce::Or;
    else if (rest[1] != "popc" || rest[2] != "u32")
      unsupported();
  } else if (rest.size() != 1 || rest[0] != "sync") {
    unsupported();
  }
  size_t first = opcode == Opcode::BarRed ? 1 : 0, last = operandCount();
  if (opcode == Opcode::BarRed) {
    expectOperands(3, 4);
    --last;
  } else {
    expectOperands(opcode == Opcode::BarArrive ? 2 : 1, 2);
  }
  Value id = source(operand(first), 'w'), count;
  bool hasCount = last - first == 2;
  if (hasCount)
    count = source(operand(first + 1), 'w');
  std::optional<uint32_t> result;
  if (opcode == Opcode::BarRed)
    result = target(operand(0), reduce == BarReduce::Popc ? 'w' : 'p');
  VirtualOp &op = emit(opcode, OpKind::Barrier, kBarrier);
  op.op.sub = static_cast<uint8_t>(reduce);
  if (isAligned)
    op.op.flags |= kAligned;
  read(op, Slot::Src0, id);
  if (hasCount)
    read(op, Slot::Src1, count);
  if (opcode != Opcode::BarRed)
    return;
  write(op, Slot::Dst0, result);
  const ptx::Operand &condition = operand(last);
  if (condition.kind != ptx::OperandKind::Register ||
      registerType(condition.id) != Type::Pred)
    malformed("the last operand is not a predicate");
  Value value;
  value.reg = virtualRegister(condition.id);
  read(op, Slot::Src3, value);
  if (condition.negated)
    op.op.flags |= kPredSrcNegated;
}

void Lowering::clusterBarrier() {
  Words parts = words();
  if (parts.size() < 3 || (parts[2] != "arrive" && parts[2] != "wait"))
    unsupported();
  Access access;
  access.sem = parts[2] == "arrive" ? MemSem::Release : MemSem::Acquire;
  access.scope = MemScope::Cluster;
  VirtualOp &op =
      emit(parts[2] == "arrive" ? Opcode::ClusterArrive : Opcode::ClusterWait,
           OpKind::Barrier, kCluster);
  for (size_t i = 3; i < parts.size(); ++i)
    if (parts[i] == "aligned")
      op.op.flags |= kAligned;
    else if (!access.take(parts[i]))
      unsupported();
  access.store(op.op);
}

// --- matrices ----------------------------------------------------------------

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16: number of matrices, or 0.
static unsigned matrixCount(const Words &words, bool &isTransposed) {
  unsigned count = 0;
  bool isKnown = words.size() > 4 && words[1] == "sync" &&
                 words[2] == "aligned" && words[3] == "m8n8" &&
                 words.back() == "b16";
  for (size_t i = 4; isKnown && i + 1 < words.size(); ++i) {
    if (words[i] == "trans")
      isTransposed = true;
    else if (words[i] == "x1" || words[i] == "x2" || words[i] == "x4")
      count = static_cast<unsigned>(words[i][1] - '0');
    else if (words[i] != "shared" && words[i] != "shared::cta")
      isKnown = false;
  }
  return isKnown ? count : 0;
}

void Lowering::loadMatrix() {
  bool isTransposed = false;
  unsigned count = matrixCount(words(), isTransposed);
  if (count == 0)
    unsupported();
  expectOperands(2, 2);
  Value base = addressBase(operand(1));
  std::vector<std::optional<uint32_t>> targets;
  if (operand(0).kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand(0).elements)
      targets.push_back(target(element, 'w'));
  else
    targets.push_back(target(operand(0), 'w'));
  if (targets.size() != count)
    malformed("found " + std::to_string(targets.size()) +
              " destinations, expected " + std::to_string(count));
  VirtualOp &op = emit(Opcode::LdMatrix, OpKind::Matrix,
                       {Pipe::Lsu, LatencyClass::LdMatrix});
  op.op.type = Type::B16;
  op.op.space = Space::Shared;
  op.op.width = static_cast<uint8_t>(count);
  if (isTransposed)
    op.op.flags |= kTranspose;
  setAddress(op, base, operand(1));
  for (const auto &reg : targets)
    writePool(op, reg);
}

void Lowering::storeMatrix() {
  bool isTransposed = false;
  unsigned count = matrixCount(words(), isTransposed);
  if (count == 0)
    unsupported();
  expectOperands(2, 2);
  Value base = addressBase(operand(0));
  std::vector<Value> values = sources(operand(1), 'w');
  if (values.size() != count)
    malformed("found " + std::to_string(values.size()) + " values, expected " +
              std::to_string(count));
  VirtualOp &op = emit(Opcode::StMatrix, OpKind::Matrix,
                       {Pipe::Lsu, LatencyClass::StMatrix});
  op.op.type = Type::B16;
  op.op.space = Space::Shared;
  op.op.width = static_cast<uint8_t>(count);
  if (isTransposed)
    op.op.flags |= kTranspose;
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

// --- system calls ------------------------------------------------------------

void Lowering::systemCall() {
  const std::string &name = operand(1).text;
  bool isPrint = name == "vprintf", isAssert = name == "__assertfail";
  if (!isPrint && !isAssert)
    unsupported("of function '" + name + "'");
  const std::vector<ptx::Operand> &arguments = operand(2).elements;
  size_t used = isPrint ? 2 : 4;
  if (arguments.size() < used)
    malformed("'" + name + "' needs " + std::to_string(used) + " arguments");
  std::vector<Value> values;
  for (size_t i = 0; i < used; ++i) {
    unsigned bits = isAssert && i == 2 ? 32 : 64;
    uint32_t id = arguments[i].kind == ptx::OperandKind::Variable
                      ? resolveVariable(arguments[i].id)
                      : 0;
    auto stored = paramValues.find({id, 0});
    if (stored == paramValues.end() || stored->second.bits != bits)
      malformed("argument " + std::to_string(i) + " of '" + name +
                "' was not stored");
    Value value;
    value.reg = stored->second.reg;
    value.rows = bits == 64 ? 2 : 1;
    values.push_back(value);
  }
  std::optional<uint32_t> result;
  if (isPrint && !operand(0).elements.empty() &&
      operand(0).elements[0].kind == ptx::OperandKind::Variable) {
    result = temporary(1);
    paramValues[{resolveVariable(operand(0).elements[0].id), 0}] = {*result,
                                                                    32};
  }
  VirtualOp &op = emit(isPrint ? Opcode::Printf : Opcode::AssertFail,
                       OpKind::Syscall, {Pipe::Lsu, LatencyClass::Syscall});
  write(op, Slot::Dst0, result);
  for (size_t i = 0; i < values.size(); ++i)
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + i), values[i]);
}

void Lowering::sleep() {
  if (current->mnemonic != "nanosleep.u32")
    unsupported();
  expectOperands(1, 1);
  Value time = source(operand(0), 'w');
  VirtualOp &op = emit(Opcode::NanoSleep, OpKind::Control,
                       {Pipe::Branch, LatencyClass::Branch});
  read(op, Slot::Src0, time);
}

void Lowering::trap() {
  expectOperands(0, 0);
  emit(current->mnemonic == "trap" ? Opcode::Trap : Opcode::Brkpt,
       OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
}

/// Hints to the hardware that change no result.
void Lowering::nothing() { emit(Opcode::Nop, OpKind::Control, kNothing); }

} // namespace kperfir::simt
