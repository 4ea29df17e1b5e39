//===- LowerOperands.cpp - From operands of PTX to values of ops ----------===//

#include "Simt/Exec/Lowering.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {
namespace {

/// Width of `%clock64` and the like.
struct SpecialName {
  std::string_view name;
  SpecialRegister which;
  unsigned bits;
};
using S = SpecialRegister;
constexpr SpecialName kSpecials[] = {
    {"%tid.x", S::TidX, 32},
    {"%tid.y", S::TidY, 32},
    {"%tid.z", S::TidZ, 32},
    {"%ntid.x", S::NtidX, 32},
    {"%ntid.y", S::NtidY, 32},
    {"%ntid.z", S::NtidZ, 32},
    {"%ctaid.x", S::CtaidX, 32},
    {"%ctaid.y", S::CtaidY, 32},
    {"%ctaid.z", S::CtaidZ, 32},
    {"%nctaid.x", S::NctaidX, 32},
    {"%nctaid.y", S::NctaidY, 32},
    {"%nctaid.z", S::NctaidZ, 32},
    {"%laneid", S::LaneId, 32},
    {"%warpid", S::WarpId, 32},
    {"%nwarpid", S::NWarpId, 32},
    {"%smid", S::SmId, 32},
    {"%nsmid", S::NSmId, 32},
    {"%gridid", S::GridId, 64},
    {"%lanemask_eq", S::LaneMaskEq, 32},
    {"%lanemask_lt", S::LaneMaskLt, 32},
    {"%lanemask_le", S::LaneMaskLe, 32},
    {"%lanemask_gt", S::LaneMaskGt, 32},
    {"%lanemask_ge", S::LaneMaskGe, 32},
    {"%clusterid.x", S::ClusterIdX, 32},
    {"%clusterid.y", S::ClusterIdY, 32},
    {"%clusterid.z", S::ClusterIdZ, 32},
    {"%nclusterid.x", S::NClusterIdX, 32},
    {"%nclusterid.y", S::NClusterIdY, 32},
    {"%nclusterid.z", S::NClusterIdZ, 32},
    {"%cluster_ctaid.x", S::ClusterCtaidX, 32},
    {"%cluster_ctaid.y", S::ClusterCtaidY, 32},
    {"%cluster_ctaid.z", S::ClusterCtaidZ, 32},
    {"%cluster_nctaid.x", S::ClusterNctaidX, 32},
    {"%cluster_nctaid.y", S::ClusterNctaidY, 32},
    {"%cluster_nctaid.z", S::ClusterNctaidZ, 32},
    {"%cluster_ctarank", S::ClusterCtaRank, 32},
    {"%cluster_nctarank", S::ClusterNctaRank, 32},
    {"%is_explicit_cluster", S::IsExplicitCluster, 32},
    {"%dynamic_smem_size", S::DynamicSmemSize, 32},
    {"%total_smem_size", S::TotalSmemSize, 32},
    {"%clock", S::Clock, 32},
    {"%clock_hi", S::ClockHi, 32},
    {"%clock64", S::Clock64, 64},
    {"%globaltimer", S::GlobalTimer, 64},
    {"%globaltimer_lo", S::GlobalTimerLo, 32},
    {"%globaltimer_hi", S::GlobalTimerHi, 32},
};

} // namespace

std::optional<uint32_t> smallConstant(const ptx::Operand &operand) {
  if (operand.kind != ptx::OperandKind::Immediate || operand.bits > 0x7FFFFFFF)
    return std::nullopt;
  return static_cast<uint32_t>(operand.bits);
}

// --- operands ----------------------------------------------------------------

void Lowering::expectOperands(size_t least, size_t most) const {
  if (operandCount() < least || operandCount() > most)
    malformed("found " + std::to_string(operandCount()) +
              " operands, expected " + std::to_string(least) +
              (most > least ? " to " + std::to_string(most) : ""));
}

Value Lowering::constant(uint64_t bits, char letter) {
  unsigned width = letterBits(letter);
  if (width < 64)
    bits &= (uint64_t(1) << width) - 1;
  unsigned rows = width <= 32 ? 1 : width / 32;
  Value value;
  value.isConstant = true;
  value.rows = static_cast<uint8_t>(rows);
  value.row = constants.intern(bits, rows);
  return value;
}

Value Lowering::immediate(const ptx::Operand &operand, char letter) {
  if (letter == 'p') {
    uint32_t result = temporary(0);
    Value bits = constant(operand.bits, 'w'), zero = constant(0, 'w');
    VirtualOp &helper = emitHelper("setp.ne.b32");
    write(helper, Slot::Dst0, result);
    helper.op.dst[1] = kNoPredicate;
    read(helper, Slot::Src0, bits);
    read(helper, Slot::Src1, zero);
    Value value;
    value.reg = result;
    value.rows = 0;
    return value;
  }
  if (letter == 'q')
    malformed("a 128-bit immediate is not possible");
  uint64_t bits = operand.bits;
  if (operand.literal == ptx::Literal::Float64 && letter == 'w')
    bits = std::bit_cast<uint32_t>(
        static_cast<float>(std::bit_cast<double>(bits)));
  if (operand.literal == ptx::Literal::Float32 && letter == 'd')
    bits = std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  return constant(bits, letter);
}

/// Sizes of the launch lie in constant memory, as its parameters do: ptxas
/// reads them there.
static bool isLaunchSize(S which) {
  return which >= S::NtidX && which <= S::NtidZ ||
         which >= S::NctaidX && which <= S::NctaidZ;
}

Value Lowering::special(const std::string &name, char letter) {
  const SpecialName *found =
      std::find_if(std::begin(kSpecials), std::end(kSpecials),
                   [&](const SpecialName &s) { return s.name == name; });
  if (found == std::end(kSpecials)) {
    for (std::string_view prefix :
         {"%pm", "%envreg", "%reserved_smem", "%current_graph", "%aggr_smem"})
      if (std::string_view(name).starts_with(prefix))
        unsupported("(register " + name + ")");
    malformed("'" + name + "' is not declared");
  }
  Value value;
  value.rows = letter == 'd' ? 2 : 1;
  value.reg = temporary(value.rows);
  VirtualOp &helper =
      emitHelper(letter == 'd' ? "mov.special.d" : "mov.special.w");
  helper.op.sub = static_cast<uint8_t>(found->which);
  if (found->which >= S::Clock)
    helper.op.flags |= kReadsClock;
  if (isLaunchSize(found->which)) {
    helper.op.pipe = timing::kLoadParam.pipe;
    helper.op.latency = timing::kLoadParam.latency;
  }
  write(helper, Slot::Dst0, value.reg);
  return value;
}

Value Lowering::source(const ptx::Operand &operand, char letter) {
  Value value;
  switch (operand.kind) {
  case ptx::OperandKind::Immediate:
    return immediate(operand, letter);
  case ptx::OperandKind::Special:
    return special(operand.text, letter);
  case ptx::OperandKind::Variable:
    return variableAddress(operand.id, operand.offset, letter);
  case ptx::OperandKind::Register:
    break;
  default:
    malformed("an operand is not a register or constant");
  }
  value.reg = virtualRegister(operand.id);
  Type type = registerType(operand.id);
  value.rows = rowsOf(type);
  bool isPredicate = type == Type::Pred;
  if (isPredicate != (letter == 'p') || typeBits(type) < letterBits(letter))
    malformed("operand '" + kernel.registers[value.reg].name + "' is ." +
              typeName(type) + ", expected " +
              (letter == 'p' ? "a predicate"
                             : std::to_string(letterBits(letter)) + " bits"));
  if (isPredicate && operand.negated) {
    uint32_t result = temporary(0);
    VirtualOp &helper = emitHelper("not.pred");
    write(helper, Slot::Dst0, result);
    read(helper, Slot::Src0, value);
    value.reg = result;
  } else if (value.rows > 1 && letterBits(letter) <= 32) {
    if (value.rows != 2)
      malformed("a 128-bit operand does not fit");
    uint32_t result = temporary(1);
    VirtualOp &helper = emitHelper("cvt.u32.u64");
    write(helper, Slot::Dst0, result);
    read(helper, Slot::Src0, value);
    value.reg = result;
    value.rows = 1;
  }
  return value;
}

std::vector<Value> Lowering::sources(const ptx::Operand &operand, char letter) {
  std::vector<Value> result;
  if (operand.kind != ptx::OperandKind::Vector)
    return {source(operand, letter)};
  for (const ptx::Operand &element : operand.elements)
    result.push_back(source(element, letter));
  return result;
}

uint32_t Lowering::resolveVariable(uint32_t id) const {
  auto bound = frame->bindings.find(id);
  return bound == frame->bindings.end() ? id : bound->second;
}

Value Lowering::variableAddress(uint32_t id, int64_t offset, char letter) {
  const ptx::Variable &named = variable(id);
  if (letterBits(letter) < 32)
    malformed("the address of '" + named.name + "' does not fit its operand");
  uint32_t resolved = resolveVariable(id);
  if (named.space == ptx::VariableSpace::Param) {
    auto param = layout.params.find(resolved);
    if (param == layout.params.end())
      unsupported("on the address of parameter '" + named.name + "' of a call");
    return constant(param->second + static_cast<uint64_t>(offset), letter);
  }
  auto found = layout.addresses.find(resolved);
  if (found == layout.addresses.end())
    unsupported("on variable '" + named.name + "', which has no definition");
  if (letter != 'd' && found->second >> 32)
    malformed("the address of '" + named.name + "' has 64 bits");
  return constant(found->second + static_cast<uint64_t>(offset), letter);
}

std::optional<uint32_t> Lowering::target(const ptx::Operand &operand,
                                         char letter) {
  if (operand.kind == ptx::OperandKind::Sink)
    return std::nullopt;
  if (operand.kind != ptx::OperandKind::Register)
    malformed("a destination is not a register");
  Type type = registerType(operand.id);
  uint8_t rows = rowsOf(type);
  unsigned bits = letterBits(letter);
  uint8_t expected = static_cast<uint8_t>(letter == 'p' ? 0
                                          : bits <= 32  ? 1
                                                        : bits / 32);
  if (rows != expected || (letter != 'p' && typeBits(type) < bits))
    malformed("destination '" +
              kernel.registers[virtualRegister(operand.id)].name + "' is ." +
              typeName(type) + ", expected " +
              (letter == 'p' ? "a predicate" : std::to_string(bits) + " bits"));
  return virtualRegister(operand.id);
}

Lowering::WideTarget Lowering::wideTarget(const ptx::Operand &operand,
                                          unsigned bits) {
  WideTarget result;
  if (operand.kind == ptx::OperandKind::Sink)
    return result;
  if (operand.kind != ptx::OperandKind::Register)
    malformed("a destination is not a register");
  unsigned have = typeBits(registerType(operand.id));
  if (have < bits)
    malformed("destination '" +
              kernel.registers[virtualRegister(operand.id)].name + "' has " +
              std::to_string(have) + " bits, the value " +
              std::to_string(bits));
  // An 8-bit value in a 16-bit register is the register's usual content.
  bool fits = have == bits || (bits == 8 && have == 16);
  result.written = virtualRegister(operand.id);
  if (!fits) {
    result.final = result.written;
    result.finalBits = have;
    result.written =
        temporary(static_cast<uint8_t>(bits <= 32 ? 1 : bits / 32));
  } else if (have == 16) {
    result.finalBits = have;
  }
  return result;
}

void Lowering::widen(const WideTarget &target, Type type) {
  bool isSigned = type == Type::S8 || type == Type::S16 || type == Type::S32;
  std::string prefix = isSigned ? "s" : "u";
  unsigned bits = typeBits(type);
  std::optional<uint32_t> result = target.final;
  unsigned resultBits = target.finalBits;
  if (!result && bits == 8 && isSigned && target.finalBits == 16)
    result = target.written; // sign-extend in place
  if (!result)
    return;
  VirtualOp &tail = emitTail("cvt." + prefix + std::to_string(resultBits) +
                             "." + prefix + std::to_string(bits));
  Value value;
  value.reg = *target.written;
  write(tail, Slot::Dst0, result);
  read(tail, Slot::Src0, value);
}

} // namespace kperfir::simt
