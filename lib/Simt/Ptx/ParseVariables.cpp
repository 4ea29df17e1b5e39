//===- ParseVariables.cpp - Variables and initial values ------------------===//
//
// State spaces, types, array sizes, initialisers with relocations.
//
//===----------------------------------------------------------------------===//

#include "Simt/Exec/Types.h"
#include "Simt/Ptx/ParserState.h"

#include <bit>

namespace kperfir::simt::ptx {

std::optional<VariableSpace> Parser::variableSpace(std::string_view word) {
  if (word == ".global")
    return VariableSpace::Global;
  if (word == ".const")
    return VariableSpace::Const;
  if (word == ".shared" || word == ".shared::cta")
    return VariableSpace::Shared;
  if (word == ".local")
    return VariableSpace::Local;
  if (word == ".param")
    return VariableSpace::Param;
  return std::nullopt;
}

Variable Parser::variableType(VariableSpace space) {
  Variable variable;
  variable.space = space;
  uint32_t lanes = 1, align = 0;
  bool pointee = false;
  while (peek().kind == TokenKind::Word && peek().text[0] == '.') {
    std::string_view word = take().text;
    if (word == ".align") {
      uint64_t value = expectInteger("an alignment");
      if (value == 0 || value > 4096 || !std::has_single_bit(value))
        fail("alignment must be a power of two up to 4096");
      if (!pointee)
        align = static_cast<uint32_t>(value);
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      lanes = static_cast<uint32_t>(word[2] - '0');
    } else if (word == ".ptr") {
      pointee = true;
    } else if (pointee && variableSpace(word)) {
      continue;
    } else if (word == ".attribute") {
      skipParentheses();
    } else if (auto type = typeFromName(word.substr(1))) {
      variable.type = *type;
    } else {
      fail("'" + std::string(word) + "' is not a type");
    }
  }
  uint32_t element = std::max(typeBits(variable.type) / 8, 1u) * lanes;
  variable.align = align ? align : element;
  variable.bytes = element;
  return variable;
}

void Parser::skipParentheses() {
  expect('(', "after .attribute");
  while (!accept(')'))
    if (take().kind == TokenKind::End)
      fail("attribute is not closed");
}

uint32_t Parser::declare(Variable variable) {
  std::string_view name = expectWord("a variable name");
  variable.name = std::string(name);
  uint32_t elementBytes = static_cast<uint32_t>(variable.bytes);
  while (accept('[')) {
    if (accept(']')) {
      variable.isUnsized = true;
      continue;
    }
    uint64_t count = expectInteger("an array size");
    if (count > (uint64_t(1) << 40) / std::max<uint64_t>(variable.bytes, 1))
      fail("array '" + variable.name + "' is too large");
    variable.bytes *= count;
    expect(']', "after the array size");
  }
  if (accept('=')) {
    initialiser(variable, elementBytes);
    if (variable.isUnsized)
      variable.bytes = variable.initialiser.size();
    variable.isUnsized = false;
    if (variable.initialiser.size() > variable.bytes)
      fail("'" + variable.name + "' has more initial values than elements");
  }
  if (variable.isUnsized)
    variable.bytes = 0;
  auto id = static_cast<uint32_t>(module.variables.size());
  module.variables.push_back(std::move(variable));
  // A definition replaces its earlier declaration for everything that
  // follows.
  scopes.back().variables[name] = id;
  return id;
}

void Parser::initialiser(Variable &variable, uint32_t elementBytes) {
  if (accept('{')) {
    while (!accept('}')) {
      initialiser(variable, elementBytes);
      if (!peek().is('}'))
        expect(',', "between initial values");
    }
    return;
  }
  uint64_t value = 0;
  if (peek().kind == TokenKind::Word) {
    relocation(variable, elementBytes);
  } else {
    Operand constant = immediate();
    value = constant.bits;
    if (constant.literal == Literal::Float64 && elementBytes == 4)
      value = std::bit_cast<uint32_t>(
          static_cast<float>(std::bit_cast<double>(value)));
  }
  for (uint32_t i = 0; i < elementBytes; ++i)
    variable.initialiser.push_back(i < 8 ? static_cast<uint8_t>(value >> 8 * i)
                                         : 0);
}

void Parser::relocation(Variable &variable, uint32_t elementBytes) {
  std::string_view name = expectWord("a value");
  bool isGeneric = name == "generic" && accept('(');
  if (isGeneric)
    name = expectWord("a variable");
  auto found = findVariable(name);
  if (!found)
    fail("initial value refers to '" + std::string(name) +
         "', which is not a variable");
  Variable::Relocation entry{variable.initialiser.size(), *found, 0,
                             elementBytes};
  if (isGeneric)
    expect(')', "after generic(");
  if (accept('+'))
    entry.addend = static_cast<int64_t>(expectInteger("an offset"));
  variable.relocations.push_back(entry);
}

void Parser::variables(VariableSpace space, bool local) {
  Variable prototype = variableType(space);
  prototype.isExternal = std::exchange(linkage, 0u) != 0;
  do {
    uint32_t id = declare(prototype);
    if (local && space != VariableSpace::Param)
      current->variables.push_back(id);
  } while (accept(','));
  expect(';', "after a variable");
}

} // namespace kperfir::simt::ptx
