//===- Parser.cpp - PTX text to a module ----------------------------------===//
//
// Recursive descent over the token list. Registers and labels live in scopes:
// `{ .reg .pred complete; loop: ... bra loop; }` may occur many times in one
// function. A label may be used before it is defined, so a use creates it and
// the end of its scope hands it to the enclosing one if it is still open.
//
//===----------------------------------------------------------------------===//

#include "Simt/Ptx/Parser.h"

#include "Simt/Error.h"
#include "Simt/Exec/Types.h"
#include "Simt/Ptx/Lexer.h"

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace kperfir::simt::ptx {
namespace {

constexpr uint32_t kUndefined = 0xFFFFFFFFu;
constexpr uint64_t kMaxRegisters = 1u << 20;

struct RegisterRange {
  uint32_t first = 0;
  uint64_t count = 0;
};

struct Scope {
  std::unordered_map<std::string_view, uint32_t> registers;
  std::unordered_map<std::string_view, RegisterRange> ranges; // `%r<10>`
  std::unordered_map<std::string_view, uint32_t> variables;
  std::map<std::string_view, uint32_t>
      labels; // ordered: ids move in name order
};

class Parser {
public:
  explicit Parser(std::string_view source)
      : source(source), tokens(tokenize(source)) {}

  Module run() {
    scopes.emplace_back();
    while (peek().kind != TokenKind::End)
      topLevel();
    for (Function &function : module.functions)
      checkLabels(function);
    return std::move(module);
  }

private:
  // --- tokens ----------------------------------------------------------------

  const Token &peek(size_t ahead = 0) const {
    return tokens[std::min(index + ahead, tokens.size() - 1)];
  }
  const Token &take() {
    const Token &token = peek();
    if (token.kind != TokenKind::End)
      ++index;
    return token;
  }
  bool accept(char punct) {
    if (!peek().is(punct))
      return false;
    take();
    return true;
  }
  bool acceptWord(std::string_view word) {
    if (!peek().isWord(word))
      return false;
    take();
    return true;
  }
  void expect(char punct, const char *context) {
    if (!accept(punct))
      fail(std::string("expected '") + punct + "' " + context + ", found " +
           spell(peek()));
  }
  std::string_view expectWord(const char *what) {
    if (peek().kind != TokenKind::Word)
      fail(std::string("expected ") + what + ", found " + spell(peek()));
    return take().text;
  }
  uint64_t expectInteger(const char *what) {
    if (peek().kind != TokenKind::Integer)
      fail(std::string("expected ") + what + ", found " + spell(peek()));
    return take().bits;
  }

  static std::string spell(const Token &token) {
    if (token.kind == TokenKind::End)
      return "the end of the text";
    return "'" + std::string(token.text) + "'";
  }

  [[noreturn]] void fail(const std::string &message) const {
    failAt(peek().line, message);
  }
  [[noreturn]] void failAt(uint32_t line, const std::string &message) const {
    ErrorSite site;
    site.ptxLine = line;
    if (current)
      site.kernel = current->name;
    throw Error(ErrorKind::Parse, message, site);
  }

  // --- module ----------------------------------------------------------------

  void topLevel() {
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

  static bool isLinkage(std::string_view word) {
    return word == ".visible" || word == ".extern" || word == ".weak" ||
           word == ".common";
  }

  std::string versionText() {
    const Token &token = take(); // 8.8 lexes as a decimal float
    return std::string(token.text);
  }

  void target() {
    module.target = std::string(expectWord("a target"));
    while (accept(','))
      expectWord("a target option");
  }

  void file() {
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

  void skipSection() {
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

  void skipStatement() {
    while (!accept(';')) {
      if (peek().kind == TokenKind::End)
        fail("statement is not closed by ';'");
      take();
    }
  }

  // --- variables -------------------------------------------------------------

  static std::optional<VariableSpace> variableSpace(std::string_view word) {
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

  /// `.align 8 .v2 .f32` and pointer annotations; fills type, align and bytes
  /// of one element.
  Variable variableType(VariableSpace space) {
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

  void skipParentheses() {
    expect('(', "after .attribute");
    while (!accept(')'))
      if (take().kind == TokenKind::End)
        fail("attribute is not closed");
  }

  /// Name, dimensions and initialiser of one variable.
  uint32_t declare(Variable variable) {
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

  void initialiser(Variable &variable, uint32_t elementBytes) {
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
      variable.initialiser.push_back(
          i < 8 ? static_cast<uint8_t>(value >> 8 * i) : 0);
  }

  void relocation(Variable &variable, uint32_t elementBytes) {
    std::string_view name = expectWord("a value");
    bool isGeneric = name == "generic" && accept('(');
    if (isGeneric)
      name = expectWord("a variable");
    auto found = lookup(&Scope::variables, name);
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

  void variables(VariableSpace space, bool local) {
    Variable prototype = variableType(space);
    prototype.isExternal = std::exchange(linkage, 0u) != 0;
    do {
      uint32_t id = declare(prototype);
      if (local && space != VariableSpace::Param)
        current->variables.push_back(id);
    } while (accept(','));
    expect(';', "after a variable");
  }

  // --- functions -------------------------------------------------------------

  std::vector<uint32_t> parameterList() {
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

  void function(bool isEntry) {
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

  void attributes() {
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
      else if (word == ".maxnreg" || word == ".maxclusterrank")
        expectInteger("a number");
      else if (word == ".pragma")
        skipStatement();
      else if (word != ".explicitcluster" && word != ".blocksareclusters")
        fail("'" + std::string(word) + "' is not a function attribute");
    }
  }

  std::array<uint32_t, 3> dimensions() {
    std::array<uint32_t, 3> result = {1, 1, 1};
    for (size_t i = 0; i < 3; ++i) {
      result[i] = static_cast<uint32_t>(expectInteger("a dimension"));
      if (!accept(','))
        break;
    }
    return result;
  }

  /// Up to the brace that closes the function.
  void body() {
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

  void statement() {
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

  void directive() {
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

  /// `.loc file line column [, function_name label, inlined_at file line
  /// column]`
  void loc(bool ignore) {
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

  void registers() {
    std::string_view word = expectWord("a register type");
    unsigned lanes = 1;
    if (word == ".v2" || word == ".v4")
      fail("vector registers are not supported");
    auto type = typeFromName(word.substr(1));
    if (!type || lanes != 1)
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

  // --- names -----------------------------------------------------------------

  template <class Map>
  std::optional<uint32_t> lookup(Map Scope::*member,
                                 std::string_view name) const {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (auto found = ((*scope).*member).find(name);
          found != ((*scope).*member).end())
        return found->second;
    return std::nullopt;
  }

  std::optional<uint32_t> findRegister(std::string_view name) const {
    size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9')
      --digits;
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      if (auto found = scope->registers.find(name);
          found != scope->registers.end())
        return found->second;
      // `%r<20>` declares %r0..%r19; `a1<20>` declares a10..a119: the digits
      // that belong to the prefix are not known, so try every split.
      for (size_t split = digits; split < name.size(); ++split) {
        auto range = scope->ranges.find(name.substr(0, split));
        if (range == scope->ranges.end() || name.size() - split > 9)
          continue;
        uint64_t number = 0;
        for (char c : name.substr(split))
          number = number * 10 + static_cast<unsigned>(c - '0');
        if (number < range->second.count &&
            (name[split] != '0' || name.size() - split == 1))
          return range->second.first + static_cast<uint32_t>(number);
      }
    }
    return std::nullopt;
  }

  uint32_t labelId(std::string_view name) {
    auto [entry, isNew] = scopes.back().labels.try_emplace(name, 0);
    if (isNew) {
      entry->second = static_cast<uint32_t>(current->labels.size());
      current->labels.push_back({std::string(name), kUndefined, {}, false});
      labelLines.push_back(peek().line);
    }
    return entry->second;
  }

  void defineLabel() {
    uint32_t id = labelId(peek().text);
    Label &label = current->labels[id];
    if (label.statement != kUndefined)
      fail("label '" + label.name + "' is defined twice in one scope");
    label.statement = static_cast<uint32_t>(current->body.size());
    take();
    expect(':', "after a label");
    lastLabel = id;
  }

  void branchTargets() {
    if (lastLabel == kUndefined)
      fail(".branchtargets needs a label");
    uint32_t table = lastLabel;
    current->labels[table].isTable = true;
    do {
      uint32_t id = labelId(expectWord("a label"));
      current->labels[table].branchTargets.push_back(id);
    } while (accept(','));
    expect(';', "after .branchtargets");
  }

  /// Labels of the innermost scope that are still open belong to the next one.
  void closeScope() {
    Scope inner = std::move(scopes.back());
    scopes.pop_back();
    if (!current)
      return;
    bool isFunctionScope = scopes.size() == 1;
    for (auto [name, id] : inner.labels) {
      if (current->labels[id].statement != kUndefined || isFunctionScope)
        continue;
      auto [outer, isNew] = scopes.back().labels.try_emplace(name, id);
      if (!isNew)
        aliases.emplace_back(id, outer->second);
    }
    if (isFunctionScope)
      resolveAliases();
  }

  void resolveAliases() {
    // Innermost scopes close first, so a chain is resolved from its end.
    for (auto alias = aliases.rbegin(); alias != aliases.rend(); ++alias) {
      const Label &target = current->labels[alias->second];
      Label &label = current->labels[alias->first];
      label.statement = target.statement;
      label.isTable = target.isTable;
      label.branchTargets = target.branchTargets;
    }
    for (size_t i = 0; i < current->labels.size(); ++i)
      if (current->labels[i].statement == kUndefined)
        failAt(labelLines[labelLines.size() - current->labels.size() + i],
               "'" + current->labels[i].name + "' is not declared");
  }

  void checkLabels(Function &function) {
    for (Label &label : function.labels)
      label.statement = std::min(label.statement,
                                 static_cast<uint32_t>(function.body.size()));
  }

  // --- instructions ----------------------------------------------------------

  void instruction() {
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

  /// `call.uni (ret), name, (args), prototype`: [List], Function, [List].
  void callOperands(Statement &result) {
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

  Operand list() {
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

  Operand operand() {
    Operand first = simpleOperand();
    if (!accept('|'))
      return first;
    Operand pair;
    pair.kind = OperandKind::Pair;
    pair.elements.push_back(std::move(first));
    pair.elements.push_back(simpleOperand());
    return pair;
  }

  Operand simpleOperand() {
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

  Operand vector() {
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

  Operand address() {
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

  int64_t offset() {
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

  Operand immediate() {
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

  Operand name() {
    std::string_view text = expectWord("an operand");
    Operand result;
    if (text == "_") {
      result.kind = OperandKind::Sink;
    } else if (auto id = findRegister(text)) {
      result.kind = OperandKind::Register;
      result.id = *id;
    } else if (auto variable = lookup(&Scope::variables, text)) {
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

  /// Comments dropped, blanks collapsed.
  static std::string oneLine(std::string_view text) {
    std::string result;
    bool blank = false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '/' && i + 1 < text.size() &&
          (text[i + 1] == '/' || text[i + 1] == '*')) {
        bool isLine = text[i + 1] == '/';
        size_t end = text.find(isLine ? "\n" : "*/", i + 2);
        i = end == std::string_view::npos ? text.size()
                                          : end + (isLine ? 0 : 1);
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

  std::string_view source;
  std::vector<Token> tokens;
  size_t index = 0;
  Module module;
  std::vector<Scope> scopes;
  Function *current = nullptr;
  SourceLocation location;
  std::vector<std::pair<uint32_t, uint32_t>>
      aliases; // label id -> id in an outer scope
  std::vector<uint32_t> labelLines;
  uint32_t lastLabel = kUndefined;
  unsigned linkage = 0; // .extern seen
};

} // namespace

Module parse(std::string_view source) { return Parser(source).run(); }

} // namespace kperfir::simt::ptx
