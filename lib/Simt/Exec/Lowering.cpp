//===- Lowering.cpp - Choose a rule per statement; emission, operands -----===//

#include "Simt/Exec/Lowering.h"

#include "Simt/Exec/Forms.h"

#include <algorithm>
#include <bit>

namespace kperfir::simt {
namespace {

constexpr Timing kFree{Pipe::None, LatencyClass::Nop};

uint8_t rowsOf(Type type) {
  unsigned bits = typeBits(type);
  return static_cast<uint8_t>(type == Type::Pred ? 0
                              : bits <= 32       ? 1
                                                 : bits / 32);
}

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

unsigned letterBits(char letter) {
  switch (letter) {
  case 'b':
    return 8;
  case 'h':
    return 16;
  case 'w':
    return 32;
  case 'd':
    return 64;
  case 'q':
    return 128;
  default:
    return 0;
  }
}

char typeLetter(Type type) {
  switch (typeBits(type)) {
  case 8:
    return 'b';
  case 16:
    return 'h';
  case 32:
    return 'w';
  case 64:
    return 'd';
  case 128:
    return 'q';
  default:
    return 'p';
  }
}

// --- driver ------------------------------------------------------------------

Lowering::Lowering(const FlatKernel &kernel, const ControlFlow &flow,
                   const MemoryLayout &layout, Program &program, HostIsa isa)
    : kernel(kernel), flow(flow), layout(layout), program(program), isa(isa) {
  for (const ptx::Register &reg : kernel.registers)
    registers.push_back({rowsOf(reg.type)});
}

void Lowering::run() {
  for (const FlowBlock &source : flow.blocks) {
    VirtualBlock block;
    block.begin = static_cast<uint32_t>(ops.size());
    if (source.isReachable)
      for (uint32_t i = source.begin; i < source.end; ++i)
        statement(i);
    block.end = static_cast<uint32_t>(ops.size());
    block.successors = source.successors;
    blocks.push_back(std::move(block));
  }
}

const Lowering::Rule Lowering::kRules[] = {
    {"mov", &Lowering::move},
    {"setp", &Lowering::setp},
    {"set", &Lowering::set},
    {"bra", &Lowering::branch},
    {"brx.idx", &Lowering::branchTable},
    {"ret", &Lowering::ret},
    {"exit", &Lowering::ret},
    {"ld.param", &Lowering::paramLoad},
    {"ld.param::entry", &Lowering::paramLoad},
    {"ld.param::func", &Lowering::paramLoad},
    {"st.param", &Lowering::paramStore},
    {"st.param::func", &Lowering::paramStore},
};

/// Whether `prefix` is whole leading words of `mnemonic`.
static bool startsWithWords(std::string_view mnemonic,
                            std::string_view prefix) {
  return mnemonic.starts_with(prefix) &&
         (mnemonic.size() == prefix.size() || mnemonic[prefix.size()] == '.');
}

/// The longest prefix wins: `cp.async.wait_group` before `cp.async`.
const Lowering::Rule *Lowering::findRule() const {
  const Rule *best = nullptr;
  auto consider = [&](const Rule &rule) {
    if (startsWithWords(current->mnemonic, rule.prefix) &&
        (!best || rule.prefix.size() > best->prefix.size()))
      best = &rule;
  };
  for (const Rule &rule : kRules)
    consider(rule);
  for (unsigned i = 0; i < kEngineRuleCount; ++i)
    consider(kEngineRules[i]);
  return best;
}

std::vector<std::string_view> loweredPrefixes() {
  std::vector<std::string_view> prefixes;
  for (const Lowering::Rule &rule : Lowering::kRules)
    prefixes.push_back(rule.prefix);
  for (unsigned i = 0; i < Lowering::kEngineRuleCount; ++i)
    prefixes.push_back(Lowering::kEngineRules[i].prefix);
  return prefixes;
}

void Lowering::statement(uint32_t index) {
  const FlatStatement &flat = kernel.statements[index];
  current = flat.statement;
  frame = &kernel.frames[flat.frame];
  currentIndex = index;
  if (const Rule *rule = findRule())
    (this->*rule->method)();
  else
    tableInstruction();
}

ErrorSite Lowering::site() const {
  ErrorSite result;
  result.kernel = program.kernel;
  if (!current)
    return result;
  result.opcode = current->mnemonic;
  result.ptxLine = current->ptxLine;
  if (current->location.line && current->location.file < program.files.size()) {
    result.file = program.files[current->location.file];
    result.line = current->location.line;
  }
  return result;
}

void Lowering::unsupported(const std::string &detail) const {
  std::string message =
      "the SIMT device does not support '" + current->mnemonic + "'";
  if (!detail.empty())
    message += " " + detail;
  throw Error(ErrorKind::Unsupported, message, site());
}

void Lowering::malformed(const std::string &message) const {
  throw Error(ErrorKind::Parse, message + " in '" + current->text + "'",
              site());
}

std::vector<std::string_view> Lowering::words() const {
  std::vector<std::string_view> result;
  std::string_view rest = current->mnemonic;
  for (;;) {
    size_t dot = rest.find('.');
    result.push_back(rest.substr(0, dot));
    if (dot == std::string_view::npos)
      return result;
    rest.remove_prefix(dot + 1);
  }
}

// --- emission ----------------------------------------------------------------

VirtualOp &Lowering::emit(Opcode opcode, OpKind kind, Timing timing) {
  VirtualOp &result = ops.emplace_back();
  result.statement = currentIndex;
  result.op.opcode = opcode;
  result.op.kind = kind;
  result.op.pipe = timing.pipe;
  result.op.latency = timing.latency;
  if (current->guard != ptx::kNoRegister) {
    result.op.guard = 0; // the allocator fills it in
    result.references.push_back(
        {virtualRegister(current->guard), Slot::Guard, false, 0});
    if (current->guardNegated)
      result.op.flags |= kGuardNegated;
  }
  return result;
}

VirtualOp &Lowering::emit(const Semantics &row) {
  VirtualOp &result = emit(row.opcode, OpKind::Register, row.timing);
  result.op.handler = row.form.handler;
  return result;
}

const Semantics &Lowering::row(const std::string &mnemonic) const {
  const Semantics *found = findSemantics(isa, mnemonic);
  if (!found)
    unsupported("(no '" + mnemonic + "')");
  return *found;
}

VirtualOp &Lowering::emitHelper(const char *mnemonic) {
  const Semantics &semantics = row(mnemonic);
  VirtualOp &result = ops.emplace_back();
  result.statement = currentIndex;
  result.op.opcode = semantics.opcode;
  result.op.kind = OpKind::Register;
  result.op.handler = semantics.form.handler;
  result.op.flags |= kSynthetic;
  result.op.pipe = kFree.pipe;
  result.op.latency = kFree.latency;
  return result;
}

VirtualOp &Lowering::emitTail(const std::string &mnemonic) {
  VirtualOp &result = emit(row(mnemonic));
  result.op.flags |= kSynthetic;
  result.op.pipe = kFree.pipe;
  result.op.latency = kFree.latency;
  return result;
}

void Lowering::read(VirtualOp &op, Slot slot, const Value &value) {
  unsigned field =
      static_cast<unsigned>(slot) - static_cast<unsigned>(Slot::Src0);
  if (value.isConstant)
    op.op.src[field] = value.row;
  else
    op.references.push_back({value.reg, slot, false, 0});
}

void Lowering::write(VirtualOp &op, Slot slot, std::optional<uint32_t> reg) {
  if (reg)
    op.references.push_back({*reg, slot, true, 0});
}

void Lowering::readPool(VirtualOp &op, const Value &value) {
  if (!value.isConstant)
    op.references.push_back(
        {value.reg, Slot::Pool, false, static_cast<uint8_t>(op.pool.size())});
  op.pool.push_back(value.isConstant ? value.row : kNoRow);
}

void Lowering::writePool(VirtualOp &op, std::optional<uint32_t> reg) {
  if (reg)
    op.references.push_back(
        {*reg, Slot::Pool, true, static_cast<uint8_t>(op.pool.size())});
  op.pool.push_back(kNoRow);
}

uint32_t Lowering::temporary(uint8_t rows) {
  registers.push_back({rows});
  return static_cast<uint32_t>(registers.size() - 1);
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
