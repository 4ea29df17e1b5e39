//===- LowerMbarrier.cpp - The forms of mbarrier --------------------------===//
//
// Each operation has its modifiers; what PTX does not have is refused by name.
// Operands are placed as Program.h documents per opcode.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Access.h"
#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Mbarrier.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr Timing kMbarrier{Pipe::Lsu, LatencyClass::Mbarrier};

/// An operation: what its words may say besides `.shared` and `.shared::cta`.
struct Operation {
  std::string_view name;
  Opcode opcode;
  MemSem sem = MemSem::Weak; // or .relaxed; Weak: no order, and no scope
  bool isRemote = false;     // .shared::cluster
};
constexpr Operation kOperations[] = {
    {"init", Opcode::MbarrierInit},
    {"inval", Opcode::MbarrierInval},
    {"expect_tx", Opcode::MbarrierExpectTx, MemSem::Relaxed, true},
    {"complete_tx", Opcode::MbarrierCompleteTx, MemSem::Relaxed, true},
    {"arrive", Opcode::MbarrierArrive, MemSem::Release, true},
    {"arrive_drop", Opcode::MbarrierArrive, MemSem::Release, true},
    {"test_wait", Opcode::MbarrierTestWait, MemSem::Acquire},
    {"try_wait", Opcode::MbarrierTryWait, MemSem::Acquire},
    {"pending_count", Opcode::MbarrierPendingCount},
};

/// What the words after the operation say.
struct Modifiers {
  Access access;
  bool isParity = false, noComplete = false, expectsBytes = false;
  bool hasSem = false, hasScope = false;

  /// False if one of the words is none of the operation's.
  bool take(const Operation &operation, const Words &words) {
    bool isArrival = operation.opcode == Opcode::MbarrierArrive;
    bool isWait = operation.opcode == Opcode::MbarrierTestWait ||
                  operation.opcode == Opcode::MbarrierTryWait;
    for (size_t i = 2; i + 1 < words.size(); ++i) {
      std::string_view word = words[i];
      if (word == "parity" && isWait)
        isParity = true;
      else if (word == "noComplete" && isArrival)
        noComplete = true;
      else if (word == "expect_tx" && isArrival)
        expectsBytes = true;
      else if (!takeAccess(operation, word))
        return false;
    }
    // Which only its own CTA may do, and in one order.
    if (noComplete &&
        (expectsBytes || access.space == Space::SharedCluster ||
         access.scope != MemScope::Cta || access.sem == MemSem::Relaxed))
      return false;
    return hasSem == hasScope;
  }

private:
  bool takeAccess(const Operation &operation, std::string_view word) {
    bool hasOrder = operation.sem != MemSem::Weak;
    if (word == "shared" || word == "shared::cta" ||
        (word == "shared::cluster" && operation.isRemote))
      return operation.opcode != Opcode::MbarrierPendingCount &&
             access.take(word);
    if (word == "cta" || word == "cluster") {
      hasScope = true;
      return hasOrder && access.take(word);
    }
    hasSem = true;
    return hasOrder && access.take(word) &&
           (access.sem == operation.sem || word == "relaxed");
  }
};

MbarrierArrival arrivalOf(const Modifiers &modifiers, bool isDrop) {
  if (modifiers.noComplete)
    return isDrop ? MbarrierArrival::DropNoComplete
                  : MbarrierArrival::NoComplete;
  if (modifiers.expectsBytes)
    return isDrop ? MbarrierArrival::DropExpectTx : MbarrierArrival::ExpectTx;
  return isDrop ? MbarrierArrival::Drop : MbarrierArrival::Plain;
}

} // namespace

void Lowering::mbarrier() {
  // mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 state, [addr], bytes
  Words parts = words();
  const Operation *operation =
      std::ranges::find_if(kOperations, [&](const Operation &candidate) {
        return parts.size() > 2 && candidate.name == parts[1];
      });
  Modifiers modifiers;
  modifiers.access.scope = MemScope::Cta;
  if (operation == std::end(kOperations) || parts.back() != "b64")
    unsupported();
  modifiers.access.sem = operation->sem;
  if (!modifiers.take(*operation, parts))
    unsupported();
  switch (operation->opcode) {
  case Opcode::MbarrierPendingCount:
    return mbarrierPendingCount();
  case Opcode::MbarrierArrive: {
    // The state of a mbarrier of another CTA does not come back.
    if (modifiers.access.space == Space::SharedCluster && operandCount() > 0 &&
        operand(0).kind != ptx::OperandKind::Sink)
      unsupported("with a state as its result");
    bool needsCount = modifiers.noComplete || modifiers.expectsBytes;
    expectOperands(needsCount ? 3 : 2, 3);
    break;
  }
  case Opcode::MbarrierTestWait:
    expectOperands(3, 3);
    break;
  case Opcode::MbarrierTryWait: // Perhaps with a hint how long to wait.
    expectOperands(3, 4);
    break;
  case Opcode::MbarrierInval:
    expectOperands(1, 1);
    break;
  default:
    expectOperands(2, 2);
  }
  mbarrierAccess(operation->opcode, modifiers.access,
                 static_cast<uint8_t>(
                     arrivalOf(modifiers, operation->name == "arrive_drop")),
                 modifiers.isParity);
}

void Lowering::mbarrierPendingCount() {
  expectOperands(2, 2);
  Value state = source(operand(1), 'd');
  auto result = target(operand(0), 'w');
  VirtualOp &op =
      emit(Opcode::MbarrierPendingCount, OpKind::Barrier, kMbarrier);
  write(op, Slot::Dst0, result);
  read(op, Slot::Src1, state);
}

void Lowering::mbarrierAccess(Opcode opcode, const Access &access, uint8_t sub,
                              bool isParity) {
  bool isWait =
      opcode == Opcode::MbarrierTestWait || opcode == Opcode::MbarrierTryWait;
  bool hasResult = isWait || opcode == Opcode::MbarrierArrive;
  std::optional<uint32_t> result;
  if (hasResult)
    result = target(operand(0), isWait ? 'p' : 'd');
  if (isWait && !result)
    malformed("the result of a wait is no predicate");
  size_t at = hasResult ? 1 : 0;
  Value base = addressBase(operand(at));
  std::optional<Value> value;
  if (operandCount() > at + 1)
    value = source(operand(at + 1), isWait && !isParity ? 'd' : 'w');
  if (operandCount() > at + 2) // How long to wait: until the phase ends.
    source(operand(at + 2), 'w');
  VirtualOp &op = emit(opcode, OpKind::Barrier, kMbarrier);
  access.store(op.op);
  setAddress(op, base, operand(at));
  op.op.sub = sub;
  if (isParity)
    op.op.flags |= kParity;
  write(op, Slot::Dst0, result);
  if (value)
    read(op, Slot::Src1, *value);
}

} // namespace kperfir::simt
