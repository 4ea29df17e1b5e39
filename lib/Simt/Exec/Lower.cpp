//===- Lower.cpp - Statements to virtual ops: tables, moves, control flow -===//

#include "Simt/Exec/Lowering.h"
#include "Simt/Exec/Types.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

namespace kperfir::simt {
namespace {

constexpr Timing kFree{Pipe::None, LatencyClass::Nop};

uint8_t rowsOf(Type type) {
  unsigned bits = typeBits(type);
  return static_cast<uint8_t>(type == Type::Pred ? 0 : bits <= 32 ? 1 : bits / 32);
}

/// The form under which the instruction table lists a mnemonic: to-nearest, the
/// default of the basic arithmetic, is not spelled out; min and max of three
/// operands are min3 and max3.
std::string normaliseMnemonic(std::string_view mnemonic, size_t operands) {
  std::string result(mnemonic);
  if (operands == 4 && (mnemonic.starts_with("min.") || mnemonic.starts_with("max.")))
    return result.insert(3, "3");
  static constexpr std::string_view kBasic[] = {"add.rn.", "sub.rn.", "mul.rn.", "fma.rn.",
                                                "mad.rn."};
  for (std::string_view prefix : kBasic)
    if (result.starts_with(prefix))
      return result.erase(3, 3);
  return result;
}

/// Width of `%clock64` and the like.
struct SpecialName {
  std::string_view name;
  SpecialRegister which;
  unsigned bits;
};
using S = SpecialRegister;
constexpr SpecialName kSpecials[] = {
    {"%tid.x", S::TidX, 32}, {"%tid.y", S::TidY, 32}, {"%tid.z", S::TidZ, 32},
    {"%ntid.x", S::NtidX, 32}, {"%ntid.y", S::NtidY, 32}, {"%ntid.z", S::NtidZ, 32},
    {"%ctaid.x", S::CtaidX, 32}, {"%ctaid.y", S::CtaidY, 32}, {"%ctaid.z", S::CtaidZ, 32},
    {"%nctaid.x", S::NctaidX, 32}, {"%nctaid.y", S::NctaidY, 32}, {"%nctaid.z", S::NctaidZ, 32},
    {"%laneid", S::LaneId, 32}, {"%warpid", S::WarpId, 32}, {"%nwarpid", S::NWarpId, 32},
    {"%smid", S::SmId, 32}, {"%nsmid", S::NSmId, 32}, {"%gridid", S::GridId, 64},
    {"%lanemask_eq", S::LaneMaskEq, 32}, {"%lanemask_lt", S::LaneMaskLt, 32},
    {"%lanemask_le", S::LaneMaskLe, 32}, {"%lanemask_gt", S::LaneMaskGt, 32},
    {"%lanemask_ge", S::LaneMaskGe, 32},
    {"%clusterid.x", S::ClusterIdX, 32}, {"%clusterid.y", S::ClusterIdY, 32},
    {"%clusterid.z", S::ClusterIdZ, 32}, {"%nclusterid.x", S::NClusterIdX, 32},
    {"%nclusterid.y", S::NClusterIdY, 32}, {"%nclusterid.z", S::NClusterIdZ, 32},
    {"%cluster_ctaid.x", S::ClusterCtaidX, 32}, {"%cluster_ctaid.y", S::ClusterCtaidY, 32},
    {"%cluster_ctaid.z", S::ClusterCtaidZ, 32}, {"%cluster_nctaid.x", S::ClusterNctaidX, 32},
    {"%cluster_nctaid.y", S::ClusterNctaidY, 32}, {"%cluster_nctaid.z", S::ClusterNctaidZ, 32},
    {"%cluster_ctarank", S::ClusterCtaRank, 32}, {"%cluster_nctarank", S::ClusterNctaRank, 32},
    {"%is_explicit_cluster", S::IsExplicitCluster, 32},
    {"%dynamic_smem_size", S::DynamicSmemSize, 32}, {"%total_smem_size", S::TotalSmemSize, 32},
    {"%clock", S::Clock, 32}, {"%clock_hi", S::ClockHi, 32}, {"%clock64", S::Clock64, 64},
    {"%globaltimer", S::GlobalTimer, 64}, {"%globaltimer_lo", S::GlobalTimerLo, 32},
    {"%globaltimer_hi", S::GlobalTimerHi, 32},
};

bool hasCarry(const Semantics &row) {
  switch (row.opcode) {
  case Opcode::Add: case Opcode::Sub: case Opcode::Mad:
  case Opcode::AddC: case Opcode::SubC: case Opcode::MadC:
    return std::strchr(row.form.signature, 'p') != nullptr;
  default:
    return false;
  }
}

} // namespace

unsigned letterBits(char letter) {
  switch (letter) {
  case 'b': return 8;
  case 'h': return 16;
  case 'w': return 32;
  case 'd': return 64;
  case 'q': return 128;
  default: return 0;
  }
}

char typeLetter(Type type) {
  switch (typeBits(type)) {
  case 8: return 'b';
  case 16: return 'h';
  case 32: return 'w';
  case 64: return 'd';
  case 128: return 'q';
  default: return 'p';
  }
}

// --- constants -----------------------------------------------------------------

RowIndex ConstantPool::intern(uint64_t bits, unsigned rows) {
  auto [entry, isNew] = index.try_emplace({rows, bits}, RowIndex(0));
  if (!isNew)
    return entry->second;
  if (widths.size() + rows >= kNoRow - kConstantBase)
    throw Error(ErrorKind::Limit, "the kernel has more than " + std::to_string(widths.size()) +
                                      " different constants");
  entry->second = static_cast<RowIndex>(kConstantBase + widths.size());
  for (unsigned i = 0; i < rows; ++i) {
    widths.push_back(static_cast<uint8_t>(rows));
    words.push_back(static_cast<uint32_t>(bits >> 32 * i));
  }
  return entry->second;
}

std::shared_ptr<void> ConstantPool::materialise(Program &program) const {
  size_t bytes = std::max<size_t>(widths.size(), 1) * kWarpSize * sizeof(uint32_t);
  auto *memory = static_cast<uint32_t *>(std::aligned_alloc(64, bytes));
  if (!memory)
    throw std::bad_alloc();
  std::shared_ptr<void> owner(memory, [](void *p) { std::free(p); });
  for (size_t row = 0; row < widths.size();) {
    unsigned rows = widths[row];
    for (unsigned lane = 0; lane < kWarpSize; ++lane)
      for (unsigned i = 0; i < rows; ++i)
        memory[row * kWarpSize + lane * rows + i] = words[row + i];
    row += rows;
  }
  program.constants = memory;
  program.numConstantRows = static_cast<uint32_t>(widths.size());
  return owner;
}

// --- driver ------------------------------------------------------------------------

Lowering::Lowering(const FlatKernel &kernel, const ControlFlow &flow, const MemoryLayout &layout,
                   Program &program, HostIsa isa)
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
    {"mov", &Lowering::move},        {"setp", &Lowering::setp},
    {"set", &Lowering::set},         {"bra", &Lowering::branch},
    {"brx.idx", &Lowering::branchTable}, {"ret", &Lowering::ret},
    {"exit", &Lowering::ret},        {"ld.param", &Lowering::paramLoad},
    {"ld.param::entry", &Lowering::paramLoad}, {"ld.param::func", &Lowering::paramLoad},
    {"st.param", &Lowering::paramStore}, {"st.param::func", &Lowering::paramStore},
};

/// Whether `prefix` is whole leading words of `mnemonic`.
static bool startsWithWords(std::string_view mnemonic, std::string_view prefix) {
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
  std::string message = "the SIMT device does not support '" + current->mnemonic + "'";
  if (!detail.empty())
    message += " " + detail;
  throw Error(ErrorKind::Unsupported, message, site());
}

void Lowering::malformed(const std::string &message) const {
  throw Error(ErrorKind::Parse, message + " in '" + current->text + "'", site());
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

// --- emission --------------------------------------------------------------------------

VirtualOp &Lowering::emit(Opcode opcode, OpKind kind, Timing timing) {
  VirtualOp &result = ops.emplace_back();
  result.statement = currentIndex;
  result.op.opcode = opcode;
  result.op.kind = kind;
  result.op.pipe = timing.pipe;
  result.op.latency = timing.latency;
  if (current->guard != ptx::kNoRegister) {
    result.op.guard = 0; // the allocator fills it in
    result.references.push_back({virtualRegister(current->guard), Slot::Guard, false, 0});
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
  unsigned field = static_cast<unsigned>(slot) - static_cast<unsigned>(Slot::Src0);
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
    op.references.push_back({value.reg, Slot::Pool, false, static_cast<uint8_t>(op.pool.size())});
  op.pool.push_back(value.isConstant ? value.row : kNoRow);
}

void Lowering::writePool(VirtualOp &op, std::optional<uint32_t> reg) {
  if (reg)
    op.references.push_back({*reg, Slot::Pool, true, static_cast<uint8_t>(op.pool.size())});
  op.pool.push_back(kNoRow);
}

uint32_t Lowering::temporary(uint8_t rows) {
  registers.push_back({rows});
  return static_cast<uint32_t>(registers.size() - 1);
}

// --- operands ------------------------------------------------------------------------------

void Lowering::expectOperands(size_t least, size_t most) const {
  if (operandCount() < least || operandCount() > most)
    malformed("found " + std::to_string(operandCount()) + " operands, expected " +
              std::to_string(least) + (most > least ? " to " + std::to_string(most) : ""));
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
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  if (operand.literal == ptx::Literal::Float32 && letter == 'd')
    bits = std::bit_cast<uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  return constant(bits, letter);
}

Value Lowering::special(const std::string &name, char letter) {
  const SpecialName *found = std::find_if(std::begin(kSpecials), std::end(kSpecials),
                                          [&](const SpecialName &s) { return s.name == name; });
  if (found == std::end(kSpecials)) {
    for (std::string_view prefix : {"%pm", "%envreg", "%reserved_smem", "%current_graph", "%aggr_smem"})
      if (std::string_view(name).starts_with(prefix))
        unsupported("(register " + name + ")");
    malformed("'" + name + "' is not declared");
  }
  Value value;
  value.rows = letter == 'd' ? 2 : 1;
  value.reg = temporary(value.rows);
  VirtualOp &helper = emitHelper(letter == 'd' ? "mov.special.d" : "mov.special.w");
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
    malformed("operand '" + kernel.registers[value.reg].name + "' is ." + typeName(type) +
              ", expected " +
              (letter == 'p' ? "a predicate" : std::to_string(letterBits(letter)) + " bits"));
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

std::optional<uint32_t> Lowering::target(const ptx::Operand &operand, char letter) {
  if (operand.kind == ptx::OperandKind::Sink)
    return std::nullopt;
  if (operand.kind != ptx::OperandKind::Register)
    malformed("a destination is not a register");
  Type type = registerType(operand.id);
  uint8_t rows = rowsOf(type);
  unsigned bits = letterBits(letter);
  uint8_t expected = static_cast<uint8_t>(letter == 'p' ? 0 : bits <= 32 ? 1 : bits / 32);
  if (rows != expected || (letter != 'p' && typeBits(type) < bits))
    malformed("destination '" + kernel.registers[virtualRegister(operand.id)].name + "' is ." +
              typeName(type) + ", expected " +
              (letter == 'p' ? "a predicate" : std::to_string(bits) + " bits"));
  return virtualRegister(operand.id);
}

Lowering::WideTarget Lowering::wideTarget(const ptx::Operand &operand, unsigned bits) {
  WideTarget result;
  if (operand.kind == ptx::OperandKind::Sink)
    return result;
  if (operand.kind != ptx::OperandKind::Register)
    malformed("a destination is not a register");
  unsigned have = typeBits(registerType(operand.id));
  if (have < bits)
    malformed("destination '" + kernel.registers[virtualRegister(operand.id)].name + "' has " +
              std::to_string(have) + " bits, the value " + std::to_string(bits));
  // An 8-bit value in a 16-bit register is the register's usual content.
  bool fits = have == bits || (bits == 8 && have == 16);
  result.written = virtualRegister(operand.id);
  if (!fits) {
    result.final = result.written;
    result.finalBits = have;
    result.written = temporary(static_cast<uint8_t>(bits <= 32 ? 1 : bits / 32));
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
  VirtualOp &tail = emitTail("cvt." + prefix + std::to_string(resultBits) + "." + prefix +
                             std::to_string(bits));
  Value value;
  value.reg = *target.written;
  write(tail, Slot::Dst0, result);
  read(tail, Slot::Src0, value);
}

// --- instructions of the table -------------------------------------------------------------

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
  bool carryOut = usesCarry && to.size() > 1, carryIn = usesCarry && from.back() == 'p';
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
    op.op.type = typeFromName(std::string_view(current->mnemonic).substr(dot + 1)).value_or(Type::None);
  write(op, Slot::Dst0, result.written);
  write(op, Slot::Dst1, extra);
  for (size_t i = 0; i < values.size(); ++i)
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + i), values[i]);
  if (carryIn) {
    Value value;
    value.reg = *carry;
    read(op, static_cast<Slot>(static_cast<size_t>(Slot::Src0) + values.size()), value);
  }
  if (!result.written && !second && to[0] != 'p' && semantics.opcode != Opcode::Shfl &&
      semantics.opcode != Opcode::Elect) {
    // A sink where the handler wants a row: give it one that nobody reads.
    unsigned bits = letterBits(to[0]);
    write(op, Slot::Dst0, temporary(static_cast<uint8_t>(bits <= 32 ? 1 : bits / 32)));
  }
  if (mayWiden) {
    auto parts = words();
    widen(result, typeFromName(parts[parts.size() - 2]).value_or(Type::None));
  }
}

// --- mov --------------------------------------------------------------------------------------

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
    const Semantics &semantics = row(letter == 'd' ? "mov.special.d" : "mov.special.w");
    auto result = target(to, letter);
    VirtualOp &op = emit(semantics);
    op.op.sub = helper.op.sub;
    op.op.type = *type;
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
  case 8: return 'b';
  case 16: return 'h';
  case 32: return 'w';
  case 64: return 'd';
  default: return '?';
  }
}

void Lowering::unpackVector() {
  const ptx::Operand &vector = operand(0);
  unsigned bits = typeBits(typeFromName(words().back()).value_or(Type::None));
  char letter = vector.elements.empty() ? '?' : partLetter(bits, vector.elements.size());
  if (letter == '?')
    unsupported("with " + std::to_string(vector.elements.size()) + " elements");
  char whole = partLetter(bits, 1);
  Value value = source(operand(1), bits == 128 ? 'q' : whole);
  std::vector<std::optional<uint32_t>> targets;
  for (const ptx::Operand &element : vector.elements)
    targets.push_back(target(element, letter));
  VirtualOp &op = emit(row("unpack." + std::string(vector.elements.size(), letter)));
  op.op.width = static_cast<uint8_t>(targets.size());
  for (const auto &reg : targets)
    writePool(op, reg);
  read(op, Slot::Src0, value);
}

void Lowering::packVector() {
  const ptx::Operand &vector = operand(1);
  unsigned bits = typeBits(typeFromName(words().back()).value_or(Type::None));
  char letter = vector.elements.empty() ? '?' : partLetter(bits, vector.elements.size());
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

// --- parameters --------------------------------------------------------------------------------

/// "u32" for any 32-bit type but the signed integer.
static std::string integerName(Type type) {
  bool isSigned = type == Type::S8 || type == Type::S16 || type == Type::S32 || type == Type::S64;
  return (isSigned ? "s" : "u") + std::to_string(typeBits(type));
}

void Lowering::paramLoad() {
  expectOperands(2, 2);
  const ptx::Operand &from = operand(1);
  if (from.kind != ptx::OperandKind::Address || from.elements.empty())
    malformed("the source is not an address");
  if (from.elements[0].kind != ptx::OperandKind::Variable)
    return load();
  Type type = typeFromName(words().back()).value_or(Type::None);
  unsigned bytes = typeBits(type) / 8;
  if (bytes == 0 || bytes > 8)
    unsupported();
  uint32_t id = resolveVariable(from.elements[0].id);
  std::vector<const ptx::Operand *> targets;
  if (operand(0).kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand(0).elements)
      targets.push_back(&element);
  else
    targets.push_back(&operand(0));
  auto block = layout.params.find(id);
  for (size_t i = 0; i < targets.size(); ++i) {
    int64_t offset = from.offset + static_cast<int64_t>(i * bytes);
    if (targets[i]->kind == ptx::OperandKind::Sink)
      continue;
    if (targets[i]->kind != ptx::OperandKind::Register)
      malformed("a destination is not a register");
    unsigned have = typeBits(registerType(targets[i]->id));
    if (have < typeBits(type))
      malformed("a destination is narrower than the value");
    if (block != layout.params.end()) {
      if (offset < 0 || static_cast<uint64_t>(offset) + bytes > variable(id).bytes)
        malformed("the access is outside parameter '" + variable(id).name + "'");
      VirtualOp &op = emit(row("ld.param." + integerName(type) + "." + (have == 64 ? "d" : have == 32 ? "w" : "h")));
      op.op.type = type;
      op.op.imm = static_cast<int32_t>(block->second + offset);
      if (i > 0)
        op.op.flags |= kSynthetic;
      write(op, Slot::Dst0, virtualRegister(targets[i]->id));
      continue;
    }
    auto stored = paramValues.find({id, offset});
    if (stored == paramValues.end() || stored->second.bits != typeBits(type))
      unsupported("on parameter '" + variable(id).name + "': it was not stored in this width");
    Value value;
    value.reg = stored->second.reg;
    std::string name = integerName(type);
    VirtualOp &op = emit(row("cvt." + name.substr(0, 1) + std::to_string(have) + "." + name));
    op.op.type = type;
    write(op, Slot::Dst0, virtualRegister(targets[i]->id));
    read(op, Slot::Src0, value);
  }
}

void Lowering::paramStore() {
  expectOperands(2, 2);
  const ptx::Operand &to = operand(0);
  if (to.kind != ptx::OperandKind::Address || to.elements.empty() ||
      to.elements[0].kind != ptx::OperandKind::Variable)
    malformed("the destination is not a parameter");
  Type type = typeFromName(words().back()).value_or(Type::None);
  unsigned bits = typeBits(type);
  if (bits == 0 || bits > 64)
    unsupported();
  uint32_t id = resolveVariable(to.elements[0].id);
  std::vector<Value> values = sources(operand(1), typeLetter(type));
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t offset = to.offset + static_cast<int64_t>(i * bits / 8);
    auto [entry, isNew] = paramValues.try_emplace({id, offset});
    if (isNew || entry->second.bits != bits)
      entry->second = {temporary(bits <= 32 ? 1 : 2), bits};
    VirtualOp &op = emit(row(bits <= 16 ? "mov.b16" : bits == 32 ? "mov.b32" : "mov.b64"));
    op.op.type = type;
    write(op, Slot::Dst0, entry->second.reg);
    read(op, Slot::Src0, values[i]);
  }
}

// --- comparisons ----------------------------------------------------------------------------------

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
    compare(join(parts), combine, target(to.elements[0], 'p'), target(to.elements[1], 'p'));
  else
    compare(join(parts), combine, target(to, 'p'), std::nullopt);
}

void Lowering::compare(const std::string &mnemonic, Combine combine,
                       std::optional<uint32_t> result, std::optional<uint32_t> complement) {
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
  if (other.kind != ptx::OperandKind::Register || registerType(other.id) != Type::Pred)
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

// --- control flow -----------------------------------------------------------------------------------

// Targets are block indices until all pcs are known.

void Lowering::branch() {
  expectOperands(1, 1);
  if (operand(0).kind != ptx::OperandKind::Label)
    malformed("the target is not a label");
  VirtualOp &op = emit(Opcode::Bra, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
  op.op.imm = static_cast<int32_t>(flow.blockOfLabel[frame->labelBase + operand(0).id]);
  if (current->mnemonic == "bra.uni" || current->guard == ptx::kNoRegister)
    op.op.flags |= kUniform;
}

void Lowering::branchTable() {
  expectOperands(2, 2);
  if (operand(1).kind != ptx::OperandKind::Label ||
      !frame->function->labels[operand(1).id].isTable)
    malformed("the target list is not a .branchtargets label");
  Value index = source(operand(0), 'w');
  const auto &labels = frame->function->labels[operand(1).id].branchTargets;
  if (labels.size() > 255)
    unsupported("with more than 255 targets");
  VirtualOp &op = emit(Opcode::BrxIdx, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
  read(op, Slot::Src0, index);
  op.op.imm = static_cast<int32_t>(program.branchTargets.size());
  op.op.width = static_cast<uint8_t>(labels.size());
  if (current->mnemonic == "brx.idx.uni")
    op.op.flags |= kUniform;
  for (uint32_t label : labels)
    program.branchTargets.push_back(flow.blockOfLabel[frame->labelBase + label]);
}

void Lowering::ret() {
  expectOperands(0, 0);
  bool isInlined = frame != &kernel.frames[0] && current->mnemonic != "exit";
  if (!isInlined) {
    emit(Opcode::Ret, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
    return;
  }
  // The body follows its call, so the last `ret` of a function falls through.
  if (kernel.labels[frame->endLabel] == currentIndex + 1)
    return;
  VirtualOp &op = emit(Opcode::Bra, OpKind::Control, {Pipe::Branch, LatencyClass::Branch});
  op.op.imm = static_cast<int32_t>(flow.blockOfLabel[frame->endLabel]);
  if (current->guard == ptx::kNoRegister)
    op.op.flags |= kUniform;
}

} // namespace kperfir::simt
