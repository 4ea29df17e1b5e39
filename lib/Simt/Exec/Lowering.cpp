//===- Lowering.cpp - Choose a rule per statement; emission ---------------===//

#include "Simt/Exec/Lowering.h"

#include "Simt/Exec/Forms.h"

#include <algorithm>

namespace kperfir::simt {
namespace {

constexpr Timing kFree{Pipe::None, LatencyClass::Nop};
} // namespace

uint8_t rowsOf(Type type) {
  unsigned bits = typeBits(type);
  return static_cast<uint8_t>(type == Type::Pred ? 0
                              : bits <= 32       ? 1
                                                 : bits / 32);
}

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

} // namespace kperfir::simt
