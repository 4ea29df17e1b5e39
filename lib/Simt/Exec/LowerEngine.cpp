//===- LowerEngine.cpp - Statements that the engine executes --------------===//
//
// Memory, barriers, asynchronous copies, matrices, system calls: their modifiers
// become fields of the MicroOp, as Program.h documents them per opcode. A modifier
// that is not known makes the instruction unsupported; cache hints are known and
// dropped.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

using Words = std::vector<std::string_view>;

constexpr Timing kLoad{Pipe::Lsu, LatencyClass::Load};
constexpr Timing kStore{Pipe::Lsu, LatencyClass::Store};
constexpr Timing kAtomic{Pipe::Lsu, LatencyClass::Atomic};
constexpr Timing kBarrier{Pipe::Branch, LatencyClass::Barrier};
constexpr Timing kMbarrier{Pipe::Lsu, LatencyClass::Mbarrier};
constexpr Timing kNothing{Pipe::None, LatencyClass::Nop};

std::optional<Space> spaceFromName(std::string_view word) {
  if (word == "global" || word == "const")
    return Space::Global;
  if (word == "shared" || word == "shared::cta")
    return Space::Shared;
  if (word == "shared::cluster")
    return Space::SharedCluster;
  if (word == "local")
    return Space::Local;
  return std::nullopt;
}

std::optional<MemSem> semFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, MemSem> kNames[] = {
      {"weak", MemSem::Weak},       {"relaxed", MemSem::Relaxed}, {"acquire", MemSem::Acquire},
      {"release", MemSem::Release}, {"acq_rel", MemSem::AcqRel},  {"sc", MemSem::SeqCst},
      {"volatile", MemSem::Volatile}, {"mmio", MemSem::Relaxed},
  };
  for (auto [name, sem] : kNames)
    if (word == name)
      return sem;
  return std::nullopt;
}

std::optional<MemScope> scopeFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, MemScope> kNames[] = {
      {"cta", MemScope::Cta}, {"cluster", MemScope::Cluster}, {"gpu", MemScope::Gpu},
      {"gl", MemScope::Gpu},  {"sys", MemScope::Sys},
  };
  for (auto [name, scope] : kNames)
    if (word == name)
      return scope;
  return std::nullopt;
}

std::optional<AtomicOp> atomicFromName(std::string_view word) {
  static constexpr std::pair<std::string_view, AtomicOp> kNames[] = {
      {"add", AtomicOp::Add}, {"exch", AtomicOp::Exch}, {"cas", AtomicOp::Cas},
      {"min", AtomicOp::Min}, {"max", AtomicOp::Max},   {"inc", AtomicOp::Inc},
      {"dec", AtomicOp::Dec}, {"and", AtomicOp::And},   {"or", AtomicOp::Or},
      {"xor", AtomicOp::Xor},
  };
  for (auto [name, op] : kNames)
    if (word == name)
      return op;
  return std::nullopt;
}

/// Eviction priorities and prefetch sizes; no effect on results here.
bool isCacheHint(std::string_view word) {
  static constexpr std::string_view kNames[] = {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc",
                                                "noftz"};
  return std::find(std::begin(kNames), std::end(kNames), word) != std::end(kNames) ||
         word.starts_with("L1::") || word.starts_with("L2::") || word.starts_with("level::");
}

/// What the modifiers of a memory access say.
struct Access {
  Space space = Space::Generic;
  MemSem sem = MemSem::Weak;
  MemScope scope = MemScope::Gpu;
  unsigned width = 1;
  Type type = Type::None;
  std::optional<AtomicOp> atomic;
  bool hasPolicy = false;

  /// False if `word` is none of them.
  bool take(std::string_view word) {
    if (auto found = spaceFromName(word))
      space = *found;
    else if (auto found = semFromName(word))
      sem = *found;
    else if (auto found = scopeFromName(word))
      scope = *found;
    else if (word == "v2" || word == "v4" || word == "v8")
      width = static_cast<unsigned>(word[1] - '0');
    else if (auto found = typeFromName(word))
      type = *found;
    else if (word == "L2::cache_hint")
      hasPolicy = true;
    else if (!isCacheHint(word))
      return false;
    return true;
  }

  void store(MicroOp &op) const {
    op.space = space;
    op.type = type;
    op.width = static_cast<uint8_t>(width);
    op.order = static_cast<uint8_t>(static_cast<unsigned>(sem) | static_cast<unsigned>(scope) << 4);
    if (sem == MemSem::Volatile)
      op.flags |= kVolatile;
  }
};

bool contains(const Words &words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

} // namespace

const Lowering::Rule Lowering::kEngineRules[] = {
    {"ld", &Lowering::load},
    {"ldu", &Lowering::load},
    {"st", &Lowering::store},
    {"atom", &Lowering::atomic},
    {"red", &Lowering::atomic},
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
    {"call", &Lowering::systemCall},
    {"nanosleep", &Lowering::sleep},
    {"trap", &Lowering::trap},
    {"brkpt", &Lowering::trap},
    {"setmaxnreg", &Lowering::nothing},
    {"griddepcontrol", &Lowering::nothing},
    {"pmevent", &Lowering::nothing},
};
const unsigned Lowering::kEngineRuleCount = std::size(kEngineRules);

// --- addresses -----------------------------------------------------------------

Value Lowering::addressBase(const ptx::Operand &address) {
  if (address.kind != ptx::OperandKind::Address || address.elements.size() != 1)
    malformed("an operand is not an address");
  const ptx::Operand &base = address.elements[0];
  if (base.kind == ptx::OperandKind::Register) {
    unsigned bits = typeBits(registerType(base.id));
    if (bits != 32 && bits != 64)
      malformed("an address register has " + std::to_string(bits) + " bits");
    return source(base, bits == 64 ? 'd' : 'w');
  }
  if (base.kind == ptx::OperandKind::Variable) {
    ptx::VariableSpace space = variable(base.id).space;
    bool isWide = space == ptx::VariableSpace::Global || space == ptx::VariableSpace::Const;
    return variableAddress(base.id, 0, isWide ? 'd' : 'w');
  }
  return source(base, 'd');
}

int64_t Lowering::readAddress(VirtualOp &op, Slot slot, const Value &base,
                              const ptx::Operand &address) {
  if (address.offset != static_cast<int32_t>(address.offset))
    unsupported("with an address offset beyond 32 bits");
  read(op, slot, base);
  return address.offset;
}

void Lowering::setAddress(VirtualOp &op, const Value &base, const ptx::Operand &address) {
  op.op.imm = static_cast<int32_t>(readAddress(op, Slot::Src0, base, address));
  if (base.rows == 2)
    op.op.flags |= kAddress64;
}

// --- ld, st, atom -------------------------------------------------------------------

void Lowering::load() {
  Access access;
  Words parts = words();
  bool isParam = false;
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i].starts_with("param"))
      isParam = true;
    else if (!access.take(parts[i]))
      unsupported();
  }
  if (isParam)
    access.space = Space::Param;
  expectOperands(2, 3);
  if (access.type == Type::None || typeBits(access.type) < 8)
    unsupported();
  Value base = addressBase(operand(1));
  const ptx::Operand &to = operand(0);
  std::vector<const ptx::Operand *> targets;
  if (to.kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : to.elements)
      targets.push_back(&element);
  else
    targets.push_back(&to);
  if (targets.size() != access.width)
    malformed("found " + std::to_string(targets.size()) + " destinations, expected " +
              std::to_string(access.width));

  // The machine extends a value to its register: 8 and 16 bits to 16 or 32.
  unsigned bits = typeBits(access.type), have = 0;
  std::vector<WideTarget> wide;
  for (const ptx::Operand *element : targets) {
    unsigned registerBits =
        element->kind == ptx::OperandKind::Register ? typeBits(registerType(element->id)) : bits;
    if (bits < 32 && (registerBits == 16 || registerBits == 32)) {
      WideTarget direct;
      direct.written = element->kind == ptx::OperandKind::Register
                           ? std::optional(virtualRegister(element->id))
                           : std::nullopt;
      if (registerBits < bits)
        malformed("a destination is narrower than the value");
      wide.push_back(direct);
      have = std::max(have, registerBits);
    } else {
      wide.push_back(wideTarget(*element, bits));
      have = std::max(have, bits);
    }
  }
  VirtualOp &op = emit(Opcode::Ld, OpKind::Memory, kLoad);
  access.store(op.op);
  setAddress(op, base, operand(1));
  op.op.sub = static_cast<uint8_t>(have);
  for (const WideTarget &target : wide)
    writePool(op, target.written);
  if (access.width == 1)
    write(op, Slot::Dst0, wide[0].written);
  for (const WideTarget &target : wide)
    if (target.final)
      widen(target, access.type);
}

void Lowering::store() {
  Access access;
  Words parts = words();
  for (size_t i = 1; i < parts.size(); ++i)
    if (!access.take(parts[i]))
      unsupported();
  expectOperands(2, 3);
  if (access.type == Type::None || typeBits(access.type) < 8)
    unsupported();
  Value base = addressBase(operand(0));
  std::vector<Value> values = sources(operand(1), typeLetter(access.type));
  if (values.size() != access.width)
    malformed("found " + std::to_string(values.size()) + " values, expected " +
              std::to_string(access.width));
  VirtualOp &op = emit(Opcode::St, OpKind::Memory, kStore);
  access.store(op.op);
  setAddress(op, base, operand(0));
  for (const Value &value : values)
    readPool(op, value);
  if (access.width == 1)
    read(op, Slot::Src1, values[0]);
}

void Lowering::atomic() {
  Words parts = words();
  bool returns = parts[0] == "atom";
  Access access;
  access.sem = MemSem::Relaxed;
  for (size_t i = 1; i < parts.size(); ++i) {
    auto operation = atomicFromName(parts[i]);
    if (operation && !access.atomic)
      access.atomic = operation;
    else if (!access.take(parts[i]))
      unsupported();
  }
  if (access.type == Type::None || !access.atomic)
    unsupported();
  size_t first = returns ? 1 : 0;
  size_t values = *access.atomic == AtomicOp::Cas ? 2 : 1;
  expectOperands(first + 1 + values, first + 1 + values + (access.hasPolicy ? 1 : 0));
  char letter = typeLetter(access.type);
  Value base = addressBase(operand(first));
  std::vector<Value> data = sources(operand(first + 1), letter);
  Value swap;
  if (values == 2)
    swap = source(operand(first + 2), letter);
  if (data.size() != access.width || (values == 2 && access.width != 1))
    malformed("found " + std::to_string(data.size()) + " values, expected " +
              std::to_string(access.width));
  std::vector<std::optional<uint32_t>> results;
  if (returns) {
    if (operand(0).kind == ptx::OperandKind::Vector)
      for (const ptx::Operand &element : operand(0).elements)
        results.push_back(target(element, letter));
    else
      results.assign(access.width, target(operand(0), letter));
    if (results.size() != access.width)
      malformed("the numbers of results and values differ");
  }
  VirtualOp &op = emit(returns ? Opcode::Atom : Opcode::Red, OpKind::Memory, kAtomic);
  access.store(op.op);
  setAddress(op, base, operand(first));
  op.op.sub = static_cast<uint8_t>(*access.atomic);
  if (access.width > 1)
    for (const auto &result : results)
      writePool(op, result);
  else if (returns)
    write(op, Slot::Dst0, results[0]);
  if (access.width > 1)
    for (const Value &value : data)
      readPool(op, value);
  else
    read(op, Slot::Src1, data[0]);
  if (values == 2)
    read(op, Slot::Src2, swap);
}

void Lowering::fence() {
  Words parts = words();
  Access access;
  access.sem = MemSem::AcqRel;
  bool isOther = false;
  for (size_t i = 1; i < parts.size(); ++i)
    if (!access.take(parts[i]))
      isOther = true; // proxy, mbarrier_init, async, tensormap::generic, ...
  VirtualOp &op = emit(Opcode::Fence, OpKind::Memory, {Pipe::Lsu, LatencyClass::Fence});
  access.store(op.op);
  op.op.sub = isOther ? 1 : 0;
}

void Lowering::prefetch() {
  Access access;
  Words parts = words();
  for (size_t i = 1; i < parts.size(); ++i)
    if (!access.take(parts[i]) && parts[i] != "L1" && parts[i] != "L2" && parts[i] != "tensormap")
      unsupported();
  expectOperands(1, 2);
  Value base = addressBase(operand(0));
  VirtualOp &op = emit(Opcode::Prefetch, OpKind::Memory, kLoad);
  access.store(op.op);
  setAddress(op, base, operand(0));
}

// --- barriers ----------------------------------------------------------------------------

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
  if (condition.kind != ptx::OperandKind::Register || registerType(condition.id) != Type::Pred)
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
  VirtualOp &op = emit(parts[2] == "arrive" ? Opcode::ClusterArrive : Opcode::ClusterWait,
                       OpKind::Barrier, kBarrier);
  for (size_t i = 3; i < parts.size(); ++i)
    if (parts[i] == "aligned")
      op.op.flags |= kAligned;
    else if (!access.take(parts[i]))
      unsupported();
  access.store(op.op);
}

void Lowering::mbarrier() {
  Words parts = words();
  if (parts.size() < 3 || parts.back() != "b64")
    unsupported();
  std::string_view what = parts[1];
  Access access;
  access.sem = what == "arrive" || what == "arrive_drop" ? MemSem::Release : MemSem::Acquire;
  access.scope = MemScope::Cta;
  unsigned variant = what == "arrive_drop" ? 3 : 0;
  bool isParity = false;
  for (size_t i = 2; i < parts.size(); ++i) {
    if (parts[i] == "noComplete")
      variant = 1;
    else if (parts[i] == "expect_tx")
      variant = 2;
    else if (parts[i] == "parity")
      isParity = true;
    else if (!access.take(parts[i]))
      unsupported();
  }
  if (what == "pending_count") {
    expectOperands(2, 2);
    Value state = source(operand(1), 'd');
    auto result = target(operand(0), 'w');
    VirtualOp &op = emit(Opcode::MbarrierPendingCount, OpKind::Barrier, kMbarrier);
    write(op, Slot::Dst0, result);
    read(op, Slot::Src1, state);
    return;
  }
  bool isArrive = what == "arrive" || what == "arrive_drop";
  bool isWait = what == "test_wait" || what == "try_wait";
  Opcode opcode = isArrive              ? Opcode::MbarrierArrive
                  : what == "test_wait" ? Opcode::MbarrierTestWait
                  : what == "try_wait"  ? Opcode::MbarrierTryWait
                  : what == "init"      ? Opcode::MbarrierInit
                  : what == "inval"     ? Opcode::MbarrierInval
                  : what == "expect_tx" ? Opcode::MbarrierExpectTx
                                        : Opcode::Invalid;
  if (opcode == Opcode::Invalid)
    unsupported();
  bool hasResult = isWait || (isArrive && operandCount() > 0 &&
                              operand(0).kind != ptx::OperandKind::Address);
  size_t at = hasResult ? 1 : 0;
  expectOperands(at + 1, at + 3);
  Value base = addressBase(operand(at));
  std::optional<uint32_t> result;
  if (hasResult)
    result = target(operand(0), isWait ? 'p' : 'd');
  std::optional<Value> first, second;
  if (operandCount() > at + 1)
    first = source(operand(at + 1), isWait && !isParity ? 'd' : 'w');
  if (operandCount() > at + 2)
    second = source(operand(at + 2), 'w');
  bool needsValue = opcode == Opcode::MbarrierInit || opcode == Opcode::MbarrierExpectTx || isWait;
  if (needsValue && !first)
    malformed("an operand is missing");
  VirtualOp &op = emit(opcode, OpKind::Barrier, kMbarrier);
  access.store(op.op);
  setAddress(op, base, operand(at));
  op.op.sub = static_cast<uint8_t>(variant);
  if (isParity)
    op.op.flags |= kParity;
  write(op, Slot::Dst0, result);
  if (first)
    read(op, Slot::Src1, *first);
  if (second)
    read(op, Slot::Src2, *second);
}

// --- asynchronous copies ----------------------------------------------------------------------

void Lowering::asyncCopy() {
  Words parts = words();
  for (size_t i = 3; i < parts.size(); ++i)
    if (!spaceFromName(parts[i]) && !isCacheHint(parts[i]))
      unsupported();
  bool hasPolicy = contains(parts, "L2::cache_hint");
  expectOperands(3, 5);
  if (operand(2).kind != ptx::OperandKind::Immediate)
    malformed("the copy size is not a constant");
  uint64_t bytes = operand(2).bits;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    malformed("the copy size must be 4, 8 or 16");
  Value to = addressBase(operand(0)), from = addressBase(operand(1));
  std::optional<Value> size, ignore;
  bool isNegated = false;
  for (size_t i = 3; i < operandCount() - (hasPolicy ? 1 : 0); ++i) {
    const ptx::Operand &extra = operand(i);
    if (extra.kind == ptx::OperandKind::Register && registerType(extra.id) == Type::Pred) {
      Value value;
      value.reg = virtualRegister(extra.id);
      ignore = value;
      isNegated = extra.negated;
    } else {
      size = source(extra, 'w');
    }
  }
  VirtualOp &op = emit(Opcode::CpAsync, OpKind::Async, {Pipe::Async, LatencyClass::AsyncCopy});
  op.op.space = Space::Shared;
  op.op.width = static_cast<uint8_t>(bytes);
  op.op.sub = parts[2] == "cg" ? 1 : 0;
  setAddress(op, to, operand(0));
  op.op.ext = static_cast<uint32_t>(readAddress(op, Slot::Src1, from, operand(1)));
  if (from.rows == 1)
    op.op.flags |= kSource32;
  if (size)
    read(op, Slot::Src2, *size);
  if (ignore)
    read(op, Slot::Src3, *ignore);
  if (isNegated)
    op.op.flags |= kPredSrcNegated;
}

void Lowering::asyncGroup() {
  constexpr Timing timing{Pipe::Async, LatencyClass::AsyncGroup};
  if (current->mnemonic == "cp.async.commit_group") {
    expectOperands(0, 0);
    emit(Opcode::CpAsyncCommitGroup, OpKind::Async, timing);
  } else if (current->mnemonic == "cp.async.wait_all") {
    expectOperands(0, 0);
    emit(Opcode::CpAsyncWaitAll, OpKind::Async, timing);
  } else if (current->mnemonic == "cp.async.wait_group") {
    expectOperands(1, 1);
    if (operand(0).kind != ptx::OperandKind::Immediate || operand(0).bits > 0x7FFF'FFFF)
      malformed("the number of groups is not a constant");
    VirtualOp &op = emit(Opcode::CpAsyncWaitGroup, OpKind::Async, timing);
    op.op.imm = static_cast<int32_t>(operand(0).bits);
  } else {
    unsupported();
  }
}

void Lowering::asyncArrive() {
  Words parts = words();
  expectOperands(1, 1);
  Access access;
  bool noInc = false;
  for (size_t i = 4; i < parts.size(); ++i)
    if (parts[i] == "noinc")
      noInc = true;
    else if (!access.take(parts[i]))
      unsupported();
  Value base = addressBase(operand(0));
  VirtualOp &op = emit(Opcode::CpAsyncMbarrierArrive, OpKind::Async, kMbarrier);
  access.store(op.op);
  setAddress(op, base, operand(0));
  if (noInc)
    op.op.flags |= kNoInc;
}

// --- matrices --------------------------------------------------------------------------------------

/// ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16: number of matrices, or 0.
static unsigned matrixCount(const Words &words, bool &isTransposed) {
  unsigned count = 0;
  bool isKnown = words.size() > 4 && words[1] == "sync" && words[2] == "aligned" &&
                 words[3] == "m8n8" && words.back() == "b16";
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
    malformed("found " + std::to_string(targets.size()) + " destinations, expected " +
              std::to_string(count));
  VirtualOp &op = emit(Opcode::LdMatrix, OpKind::Matrix, {Pipe::Lsu, LatencyClass::LdMatrix});
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
  VirtualOp &op = emit(Opcode::StMatrix, OpKind::Matrix, {Pipe::Lsu, LatencyClass::StMatrix});
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
  VirtualOp &op = emit(Opcode::MovMatrix, OpKind::Matrix, {Pipe::Lsu, LatencyClass::Shuffle});
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
  shape.satfinite = contains(parts, "satfinite");
  std::erase(parts, "satfinite");
  if (parts.size() != 10 || parts[2] != "aligned" || !parseShape(parts[3], shape) ||
      parts[4] != "row" || parts[5] != "col")
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
  auto bits = [](unsigned rows, unsigned columns, Type type) { return rows * columns * typeBits(type); };
  auto check = [&](const char *name, size_t registers, unsigned needed, Type type) {
    unsigned perThread = needed / kWarpSize / (type == Type::F64 ? 64 : 32);
    if (registers != perThread)
      malformed("matrix " + std::string(name) + " has " + std::to_string(registers) +
                " registers, expected " + std::to_string(perThread));
  };
  // tf32 lies in 32-bit registers like f32; typeBits says so.
  check("D", results.size(), bits(shape.m, shape.n, shape.typeD), shape.typeD);
  check("A", a.size(), bits(shape.m, shape.k, shape.typeA), shape.typeA);
  check("B", b.size(), bits(shape.k, shape.n, shape.typeB), shape.typeB);
  check("C", c.size(), bits(shape.m, shape.n, shape.typeC), shape.typeC);

  VirtualOp &op = emit(Opcode::Mma, OpKind::Matrix, {Pipe::Tensor, LatencyClass::Mma});
  op.op.type = shape.typeD;
  op.op.imm = static_cast<int32_t>(program.mmas.size());
  auto same = std::find_if(program.mmas.begin(), program.mmas.end(), [&](const MmaShape &other) {
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

// --- system calls ----------------------------------------------------------------------------------

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
    uint32_t id = arguments[i].kind == ptx::OperandKind::Variable ? resolveVariable(arguments[i].id) : 0;
    auto stored = paramValues.find({id, 0});
    if (stored == paramValues.end() || stored->second.bits != bits)
      malformed("argument " + std::to_string(i) + " of '" + name + "' was not stored");
    Value value;
    value.reg = stored->second.reg;
    value.rows = bits == 64 ? 2 : 1;
    values.push_back(value);
  }
  std::optional<uint32_t> result;
  if (isPrint && !operand(0).elements.empty() &&
      operand(0).elements[0].kind == ptx::OperandKind::Variable) {
    result = temporary(1);
    paramValues[{resolveVariable(operand(0).elements[0].id), 0}] = {*result, 32};
  }
  VirtualOp &op = emit(isPrint ? Opcode::Printf : Opcode::AssertFail, OpKind::Syscall,
                       {Pipe::Lsu, LatencyClass::Syscall});
  write(op, Slot::Dst0, result);
  for (size_t i = 0; i < values.size(); ++i)
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + i), values[i]);
}

void Lowering::sleep() {
  if (current->mnemonic != "nanosleep.u32")
    unsupported();
  expectOperands(1, 1);
  Value time = source(operand(0), 'w');
  VirtualOp &op = emit(Opcode::NanoSleep, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
  read(op, Slot::Src0, time);
}

void Lowering::trap() {
  expectOperands(0, 0);
  emit(current->mnemonic == "trap" ? Opcode::Trap : Opcode::Brkpt, OpKind::Control,
       {Pipe::Branch, LatencyClass::Branch});
}

/// Hints to the hardware that change no result.
void Lowering::nothing() { emit(Opcode::Nop, OpKind::Control, kNothing); }

} // namespace kperfir::simt
