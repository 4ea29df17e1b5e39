//===- LowerMemory.cpp - ld, st, atom, fence, cp.async --------------------===//
//
// Modifiers become fields of the MicroOp, as Program.h documents them per
// opcode. One that is not known makes the instruction unsupported; cache hints
// are known and dropped.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Atomic.h"
#include "Simt/Exec/Lowering.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr Timing kLoad{Pipe::Lsu, LatencyClass::Load};
constexpr Timing kStore{Pipe::Lsu, LatencyClass::Store};
constexpr Timing kAtomic{Pipe::Lsu, LatencyClass::Atomic};
constexpr Timing kMbarrier{Pipe::Lsu, LatencyClass::Mbarrier};

} // namespace

// --- addresses ---------------------------------------------------------------

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
    bool isWide = space == ptx::VariableSpace::Global ||
                  space == ptx::VariableSpace::Const;
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

void Lowering::setAddress(VirtualOp &op, const Value &base,
                          const ptx::Operand &address) {
  op.op.imm = static_cast<int32_t>(readAddress(op, Slot::Src0, base, address));
  if (base.rows == 2)
    op.op.flags |= kAddress64;
}

// --- ld, st, atom ------------------------------------------------------------

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
    malformed("found " + std::to_string(targets.size()) +
              " destinations, expected " + std::to_string(access.width));

  // The machine extends a value to its register: 8 and 16 bits to 16 or 32.
  unsigned bits = typeBits(access.type), have = 0;
  std::vector<WideTarget> wide;
  for (const ptx::Operand *element : targets) {
    unsigned registerBits = element->kind == ptx::OperandKind::Register
                                ? typeBits(registerType(element->id))
                                : bits;
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
  expectOperands(first + 1 + values,
                 first + 1 + values + (access.hasPolicy ? 1 : 0));
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
  VirtualOp &op =
      emit(returns ? Opcode::Atom : Opcode::Red, OpKind::Memory, kAtomic);
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

void Lowering::accessAsync() {
  // st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32
  //   [address], {a, b}, [mbarrier]
  // red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes
  //   .add.u32 [address], value, [mbarrier]
  Words parts = words();
  bool reduces = parts[0] == "red", completes = false;
  Access access;
  access.space = Space::SharedCluster;
  for (size_t i = 2; i < parts.size(); ++i) {
    if (parts[i] == "mbarrier::complete_tx::bytes")
      completes = true;
    else if (auto operation = atomicFromName(parts[i]); operation && reduces)
      access.atomic = operation;
    else if (!access.take(parts[i]))
      unsupported();
  }
  unsigned bits = typeBits(access.type);
  bool isKnown = completes && access.space == Space::SharedCluster &&
                 (bits == 32 || bits == 64) && reduces == !!access.atomic;
  if (isKnown && reduces)
    isKnown = access.width == 1 && *access.atomic != AtomicOp::Exch &&
              *access.atomic != AtomicOp::Cas &&
              isAtomicSupported(*access.atomic, access.type);
  if (!isKnown)
    unsupported();
  expectOperands(3, 3);
  if (operand(2).offset)
    unsupported("with an offset of the mbarrier");
  Value base = addressBase(operand(0)), mbarrier = addressBase(operand(2));
  std::vector<Value> values = sources(operand(1), typeLetter(access.type));
  if (values.size() != access.width)
    malformed("found " + std::to_string(values.size()) + " values, expected " +
              std::to_string(access.width));
  VirtualOp &op = emit(reduces ? Opcode::Red : Opcode::St, OpKind::Memory,
                       {Pipe::Lsu, LatencyClass::Cluster});
  access.store(op.op);
  setAddress(op, base, operand(0));
  if (reduces)
    op.op.sub = static_cast<uint8_t>(*access.atomic);
  if (access.width > 1)
    for (const Value &value : values)
      readPool(op, value);
  else
    read(op, Slot::Src1, values[0]);
  read(op, Slot::Src2, mbarrier);
  if (mbarrier.rows == 1)
    op.op.flags |= kSource32;
}

void Lowering::fence() {
  Words parts = words();
  Access access;
  access.sem = MemSem::AcqRel;
  bool isOther = false;
  for (size_t i = 1; i < parts.size(); ++i)
    if (!access.take(parts[i]))
      isOther = true; // proxy, mbarrier_init, async, tensormap::generic, ...
  if (access.space == Space::Shared)
    access.scope = MemScope::Cta; // Global memory is not its concern.
  VirtualOp &op =
      emit(Opcode::Fence, OpKind::Memory, {Pipe::Lsu, LatencyClass::Fence});
  access.store(op.op);
  bool isProxy = parts.size() > 2 && parts[1] == "proxy" && parts[2] == "async";
  op.op.sub = isProxy ? kProxyFence : isOther ? 1 : 0;
}

void Lowering::prefetch() {
  Access access;
  Words parts = words();
  for (size_t i = 1; i < parts.size(); ++i)
    if (!access.take(parts[i]) && parts[i] != "L1" && parts[i] != "L2" &&
        parts[i] != "tensormap")
      unsupported();
  expectOperands(1, 2);
  Value base = addressBase(operand(0));
  VirtualOp &op = emit(Opcode::Prefetch, OpKind::Memory, kLoad);
  access.store(op.op);
  setAddress(op, base, operand(0));
}

// --- asynchronous copies -----------------------------------------------------

void Lowering::asyncCopy() {
  Words parts = words();
  for (size_t i = 3; i < parts.size(); ++i)
    if (!spaceFromName(parts[i]) && !isCacheHint(parts[i]))
      unsupported();
  bool hasPolicy =
      std::find(parts.begin(), parts.end(), "L2::cache_hint") != parts.end();
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
    if (extra.kind == ptx::OperandKind::Register &&
        registerType(extra.id) == Type::Pred) {
      Value value;
      value.reg = virtualRegister(extra.id);
      ignore = value;
      isNegated = extra.negated;
    } else {
      size = source(extra, 'w');
    }
  }
  VirtualOp &op = emit(Opcode::CpAsync, OpKind::Async,
                       {Pipe::Async, LatencyClass::AsyncCopy});
  op.op.space = Space::Shared;
  op.op.width = static_cast<uint8_t>(bytes);
  op.op.sub = parts[2] == "cg" ? 1 : 0;
  setAddress(op, to, operand(0));
  op.op.ext =
      static_cast<uint32_t>(readAddress(op, Slot::Src1, from, operand(1)));
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
    if (operand(0).kind != ptx::OperandKind::Immediate ||
        operand(0).bits > 0x7FFF'FFFF)
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

} // namespace kperfir::simt
