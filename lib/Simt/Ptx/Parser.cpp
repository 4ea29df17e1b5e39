//===- Parser.cpp - PTX text to a module ----------------------------------===//
//
// Modules, functions and the directives in them. ParserState.h says how the
// rest is divided.
//
//===----------------------------------------------------------------------===//

#include "Simt/Ptx/Parser.h"

#include "Simt/Error.h"
#include "Simt/Exec/Types.h"
#include "Simt/Ptx/ParserState.h"

namespace kperfir::simt::ptx {

static constexpr uint64_t kMaxRegisters = 1u << 20;

Module Parser::run() {
  scopes.emplace_back();
  while (peek().kind != TokenKind::End)
    topLevel();
  for (Function &function : module.functions)
    checkLabels(function);
  return std::move(module);
}

void Parser::fail(const std::string &message) const {
  failAt(peek().line, message);
}

void Parser::failAt(uint32_t line, const std::string &message) const {
  ErrorSite site;
  site.ptxLine = line;
  if (current)
    site.kernel = current->name;
  throw Error(ErrorKind::Parse, message, site);
}

void Parser::topLevel() {
  std::string_view word = expectWord("a directive");
  if (word == ".version")
    module.version = versionText();
  else if (word == ".target")
    target();
  else if (word == ".address_size")
    module.addressSize =
        static_cast<uint32_t>(expectInteger("an address size"));
  else if (word == ".file")
    file();
  else if (word == ".section")
    skipSection();
  else if (word == ".loc")
    loc(/*ignore=*/true);
  else if (word == ".pragma" || word == ".alias")
    skipStatement();
  else if (isLinkage(word))
    linkage |= word == ".extern" ? 1u : 0u;
  else if (word == ".entry" || word == ".func")
    function(word == ".entry");
  else if (auto space = variableSpace(word))
    variables(*space, /*local=*/false);
  else
    failAt(peek().line, "directive '" + std::string(word) +
                            "' is not known at module scope");
}

bool Parser::isLinkage(std::string_view word) {
  return word == ".visible" || word == ".extern" || word == ".weak" ||
         word == ".common";
}

std::string Parser::versionText() {
  const Token &token = take(); // 8.8 lexes as a decimal float
  return std::string(token.text);
}

void Parser::target() {
  module.target = std::string(expectWord("a target"));
  while (accept(','))
    expectWord("a target option");
}

void Parser::file() {
  uint64_t number = expectInteger("a file number");
  if (number > 1u << 16)
    fail("file number " + std::to_string(number) + " is too large");
  if (peek().kind != TokenKind::String)
    fail("expected a file name, found " + spell(peek()));
  if (module.files.size() <= number)
    module.files.resize(number + 1);
  module.files[number] = std::string(take().text);
  while (accept(',')) // timestamp, size
    take();
}

void Parser::skipSection() {
  while (!peek().is('{')) {
    if (peek().kind == TokenKind::End)
      fail("section has no body");
    take();
  }
  unsigned depth = 0;
  do {
    if (peek().kind == TokenKind::End)
      fail("section is not closed");
    depth += peek().is('{');
    depth -= peek().is('}');
    take();
  } while (depth);
}

void Parser::skipStatement() {
  while (!accept(';')) {
    if (peek().kind == TokenKind::End)
      fail("statement is not closed by ';'");
    take();
  }
}

std::vector<uint32_t> Parser::parameterList() {
  std::vector<uint32_t> ids;
  expect('(', "before parameters");
  while (!accept(')')) {
    std::string_view word = expectWord(".param");
    if (word != ".param")
      fail("parameters in '" + std::string(word) +
           "' are not supported, only .param");
    ids.push_back(declare(variableType(VariableSpace::Param)));
    if (!peek().is(')'))
      expect(',', "between parameters");
  }
  return ids;
}

void Parser::function(bool isEntry) {
  module.functions.emplace_back();
  current = &module.functions.back();
  current->isEntry = isEntry;
  current->ptxLine = peek().line;
  linkage = 0;
  scopes.emplace_back();
  while (peek().kind == TokenKind::Word && peek().text == ".attribute")
    take(), skipParentheses();
  if (!isEntry && peek().is('('))
    current->returns = parameterList();
  current->name = std::string(expectWord("a function name"));
  if (peek().is('('))
    current->params = parameterList();
  attributes();
  if (!accept(';')) {
    expect('{', "or ';' after a function header");
    current->isDefined = true;
    location = {};
    body();
  }
  closeScope();
  aliases.clear();
  current = nullptr;
}

void Parser::attributes() {
  while (peek().kind == TokenKind::Word) {
    std::string_view word = take().text;
    if (word == ".reqntid")
      current->reqntid = dimensions();
    else if (word == ".maxntid")
      current->maxntid = dimensions();
    else if (word == ".reqnctapercluster")
      current->clusterDim = dimensions();
    else if (word == ".minnctapersm")
      current->minNctaPerSm =
          static_cast<uint32_t>(expectInteger("a CTA count"));
    else if (word == ".noreturn")
      current->isNoReturn = true;
    else if (word == ".maxnreg")
      current->maxRegisters =
          static_cast<uint32_t>(expectInteger("a number of registers"));
    else if (word == ".maxclusterrank")
      expectInteger("a number");
    else if (word == ".pragma")
      skipStatement();
    else if (word != ".explicitcluster" && word != ".blocksareclusters")
      fail("'" + std::string(word) + "' is not a function attribute");
  }
}

std::array<uint32_t, 3> Parser::dimensions() {
  std::array<uint32_t, 3> result = {1, 1, 1};
  for (size_t i = 0; i < 3; ++i) {
    result[i] = static_cast<uint32_t>(expectInteger("a dimension"));
    if (!accept(','))
      break;
  }
  return result;
}

void Parser::body() {
  size_t depth = 1;
  while (depth) {
    if (accept('{')) {
      scopes.emplace_back();
      ++depth;
    } else if (accept('}')) {
      if (--depth)
        closeScope();
    } else if (peek().kind == TokenKind::End) {
      fail("function '" + current->name + "' is not closed");
    } else {
      statement();
    }
  }
}

void Parser::statement() {
  if (accept(';'))
    return;
  if (peek().kind == TokenKind::Word && peek(1).is(':')) {
    defineLabel();
    return;
  }
  if (peek().kind == TokenKind::Word && peek().text[0] == '.') {
    directive();
    return;
  }
  instruction();
}

void Parser::directive() {
  bool inlineAsm = peek().inlineAsm;
  std::string_view word = take().text;
  if (word == ".loc")
    // LLVM numbers the lines of an inline-asm string as if they were source.
    loc(/*ignore=*/inlineAsm);
  else if (word == ".reg")
    registers();
  else if (auto space = variableSpace(word))
    variables(*space, /*local=*/true);
  else if (word == ".pragma" || word == ".callprototype" ||
           word == ".calltargets")
    skipStatement();
  else if (word == ".branchtargets")
    branchTargets();
  else
    fail("directive '" + std::string(word) + "' is not known in a function");
}

void Parser::loc(bool ignore) {
  SourceLocation parsed;
  parsed.file = static_cast<uint32_t>(expectInteger("a file number"));
  parsed.line = static_cast<uint32_t>(expectInteger("a line"));
  if (peek().kind == TokenKind::Integer)
    parsed.column = static_cast<uint32_t>(take().bits);
  while (accept(',')) {
    std::string_view word = expectWord("a .loc attribute");
    if (word == "function_name") {
      expectWord("a label");
      if (accept('+'))
        expectInteger("an offset");
    } else if (word == "inlined_at") {
      for (int i = 0; i < 3; ++i)
        expectInteger("a location");
    } else {
      fail("'" + std::string(word) + "' is not a .loc attribute");
    }
  }
  // Line 0 means "no line": the place before it is the better answer.
  if (!ignore && parsed.line)
    location = parsed;
}

void Parser::registers() {
  std::string_view word = expectWord("a register type");
  if (word == ".v2" || word == ".v4")
    fail("vector registers are not supported");
  auto type = typeFromName(word.substr(1));
  if (!type)
    fail("'" + std::string(word) + "' is not a register type");
  do {
    std::string_view name = expectWord("a register name");
    auto first = static_cast<uint32_t>(current->registers.size());
    if (!accept('<')) {
      scopes.back().registers[name] = first;
      current->registers.push_back({std::string(name), *type});
      continue;
    }
    uint64_t count = expectInteger("a register count");
    expect('>', "after the register count");
    if (count > kMaxRegisters - current->registers.size())
      fail("more than " + std::to_string(kMaxRegisters) +
           " registers in one function");
    scopes.back().ranges[name] = {first, count};
    for (uint64_t i = 0; i < count; ++i)
      current->registers.push_back(
          {std::string(name) + std::to_string(i), *type});
  } while (accept(','));
  expect(';', "after registers");
}

Module parse(std::string_view source) { return Parser(source).run(); }

} // namespace kperfir::simt::ptx
