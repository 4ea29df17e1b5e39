//===- ParseInstructions.cpp - Statements and operands --------------------===//
//
// Instructions by shape: guard, mnemonic, operands. Whether one exists is the
// decision of the lowering.
//
//===----------------------------------------------------------------------===//

#include "Simt/Ptx/ParserState.h"

namespace kperfir::simt::ptx {

void Parser::instruction() {
  Statement result;
  result.ptxLine = peek().line;
  result.location = location;
  const char *begin = peek().text.data();
  if (accept('@')) {
    result.guardNegated = accept('!');
    std::string_view name = expectWord("a predicate");
    auto guard = findRegister(name);
    if (!guard || current->registers[*guard].type != Type::Pred)
      fail("guard '" + std::string(name) + "' is not a predicate register");
    result.guard = *guard;
  }
  result.mnemonic = std::string(expectWord("an instruction"));
  if (result.mnemonic == "call" || result.mnemonic.starts_with("call."))
    callOperands(result);
  else if (!peek().is(';'))
    do
      result.operands.push_back(operand());
    while (accept(','));
  const char *end = peek().text.data();
  expect(';', "after an instruction");
  result.text = oneLine({begin, static_cast<size_t>(end - begin)});
  current->body.push_back(std::move(result));
}

void Parser::callOperands(Statement &result) {
  if (peek().is('(')) {
    result.operands.push_back(list());
    expect(',', "after the results of a call");
  } else {
    result.operands.emplace_back();
    result.operands.back().kind = OperandKind::List;
  }
  Operand callee;
  callee.kind = OperandKind::Function;
  callee.text = std::string(expectWord("a function"));
  result.operands.push_back(std::move(callee));
  if (accept(',')) {
    result.operands.push_back(list());
    if (accept(','))
      fail("indirect calls are not supported");
  } else {
    result.operands.emplace_back();
    result.operands.back().kind = OperandKind::List;
  }
}

Operand Parser::list() {
  Operand result;
  result.kind = OperandKind::List;
  expect('(', "before call arguments");
  while (!accept(')')) {
    result.elements.push_back(operand());
    if (!peek().is(')'))
      expect(',', "between call arguments");
  }
  return result;
}

Operand Parser::operand() {
  Operand first = simpleOperand();
  if (!accept('|'))
    return first;
  Operand pair;
  pair.kind = OperandKind::Pair;
  pair.elements.push_back(std::move(first));
  pair.elements.push_back(simpleOperand());
  return pair;
}

Operand Parser::simpleOperand() {
  if (peek().is('{'))
    return vector();
  if (peek().is('['))
    return address();
  if (accept('!')) {
    Operand result = name();
    result.negated = true;
    return result;
  }
  if (peek().kind == TokenKind::Word)
    return name();
  return immediate();
}

Operand Parser::vector() {
  Operand result;
  result.kind = OperandKind::Vector;
  expect('{', "before a vector");
  while (!accept('}')) {
    result.elements.push_back(simpleOperand());
    if (!peek().is('}'))
      expect(',', "between vector elements");
  }
  return result;
}

Operand Parser::address() {
  Operand result;
  result.kind = OperandKind::Address;
  expect('[', "before an address");
  Operand base = simpleOperand();
  if (base.kind == OperandKind::Variable)
    result.offset = std::exchange(base.offset, 0);
  result.elements.push_back(std::move(base));
  result.offset += offset();
  while (accept(','))
    result.elements.push_back(simpleOperand());
  expect(']', "after an address");
  return result;
}

int64_t Parser::offset() {
  int64_t total = 0;
  while (peek().is('+') || peek().is('-')) {
    bool minus = take().is('-');
    if (accept('-'))
      minus = !minus;
    auto value = static_cast<int64_t>(expectInteger("an offset"));
    total += minus ? -value : value;
  }
  return total;
}

Operand Parser::immediate() {
  Operand result;
  result.kind = OperandKind::Immediate;
  bool minus = false, invert = false;
  for (;; minus ^= true) {
    if (accept('~'))
      invert = true;
    if (!accept('-'))
      break;
  }
  const Token &token = peek();
  switch (token.kind) {
  case TokenKind::Integer:
    result.bits = minus ? 0 - token.bits : token.bits;
    result.bits = invert ? ~result.bits : result.bits;
    break;
  case TokenKind::Float32:
    result.literal = Literal::Float32;
    result.bits = token.bits ^ (minus ? 0x8000'0000u : 0u);
    break;
  case TokenKind::Float64:
    result.literal = Literal::Float64;
    result.bits = token.bits ^ (minus ? uint64_t(1) << 63 : 0u);
    break;
  default:
    fail("expected an operand, found " + spell(token));
  }
  take();
  return result;
}

Operand Parser::name() {
  std::string_view text = expectWord("an operand");
  Operand result;
  if (text == "_") {
    result.kind = OperandKind::Sink;
  } else if (auto id = findRegister(text)) {
    result.kind = OperandKind::Register;
    result.id = *id;
  } else if (auto variable = findVariable(text)) {
    result.kind = OperandKind::Variable;
    result.id = *variable;
    result.offset = offset();
  } else if (text[0] == '%') {
    result.kind = OperandKind::Special;
    result.text = std::string(text);
  } else {
    result.kind = OperandKind::Label;
    result.id = labelId(text);
    result.text = std::string(text);
  }
  return result;
}

std::string Parser::oneLine(std::string_view text) {
  std::string result;
  bool blank = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '/' && i + 1 < text.size() &&
        (text[i + 1] == '/' || text[i + 1] == '*')) {
      bool isLine = text[i + 1] == '/';
      size_t end = text.find(isLine ? "\n" : "*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + (isLine ? 0 : 1);
      blank = true;
      continue;
    }
    if (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' ||
        text[i] == '\r') {
      blank = true;
      continue;
    }
    if (blank && !result.empty())
      result += ' ';
    blank = false;
    result += text[i];
  }
  return result;
}

} // namespace kperfir::simt::ptx
