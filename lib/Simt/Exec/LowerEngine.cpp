//===- LowerEngine.cpp - Barriers and system calls ------------------------===//
//
// The list of the statements that the engine executes, and the rules of those
// that have no file of their own (Lowering.h says where
// the others are). Operands are placed as Program.h documents per opcode.
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
    {"barrier.cluster.arrive", &Lowering::clusterBarrier},
    {"barrier.cluster.wait", &Lowering::clusterBarrier},
    {"mbarrier.init", &Lowering::mbarrier},
    {"mbarrier.inval", &Lowering::mbarrier},
    {"mbarrier.expect_tx", &Lowering::mbarrier},
    {"mbarrier.complete_tx", &Lowering::mbarrier},
    {"mbarrier.arrive", &Lowering::mbarrier},
    {"mbarrier.arrive.expect_tx", &Lowering::mbarrier},
    {"mbarrier.arrive.noComplete", &Lowering::mbarrier},
    {"mbarrier.arrive_drop", &Lowering::mbarrier},
    {"mbarrier.arrive_drop.expect_tx", &Lowering::mbarrier},
    {"mbarrier.arrive_drop.noComplete", &Lowering::mbarrier},
    {"mbarrier.test_wait", &Lowering::mbarrier},
    {"mbarrier.test_wait.parity", &Lowering::mbarrier},
    {"mbarrier.try_wait", &Lowering::mbarrier},
    {"mbarrier.try_wait.parity", &Lowering::mbarrier},
    {"mbarrier.pending_count", &Lowering::mbarrier},
    {"cp.async.ca", &Lowering::asyncCopy},
    {"cp.async.cg", &Lowering::asyncCopy},
    {"cp.async.commit_group", &Lowering::asyncGroup},
    {"cp.async.wait_group", &Lowering::asyncGroup},
    {"cp.async.wait_all", &Lowering::asyncGroup},
    {"cp.async.mbarrier.arrive", &Lowering::asyncArrive},
    {"cp.async.mbarrier.arrive.noinc", &Lowering::asyncArrive},
    {"ldmatrix", &Lowering::loadMatrix},
    {"stmatrix", &Lowering::storeMatrix},
    {"movmatrix", &Lowering::moveMatrix},
    {"mma.sync", &Lowering::multiply},
    {"wgmma.mma_async", &Lowering::wgmma},
    {"wgmma.fence", &Lowering::wgmmaGroup},
    {"wgmma.commit_group", &Lowering::wgmmaGroup},
    {"wgmma.wait_group", &Lowering::wgmmaGroup},
    {"cp.async.bulk", &Lowering::bulkCopy},
    {"cp.async.bulk.prefetch", &Lowering::bulkCopy},
    {"cp.async.bulk.prefetch.tensor", &Lowering::bulkCopy},
    {"cp.async.bulk.tensor", &Lowering::bulkCopy},
    {"cp.reduce.async.bulk", &Lowering::bulkCopy},
    {"cp.reduce.async.bulk.tensor", &Lowering::bulkCopy},
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

void Lowering::setMaxRegisters() {
  expectOperands(1, 1);
  auto count = smallConstant(operand(0));
  constexpr uint64_t kLeast = 24, kMost = 256, kUnit = 8;
  if (!count || *count < kLeast || *count > kMost || *count % kUnit)
    malformed("the number of registers is not a multiple of 8 from 24 to 256");
  movesRegisters = true;
  nothing();
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
