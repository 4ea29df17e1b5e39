//===- ParserState.h - What the parts of the parser share -----------------===//
//
// Recursive descent over the token list; one class, whose methods are spread
// over the files named below. Registers and labels live in scopes:
// `{ .reg .pred complete; loop: ... bra loop; }` may occur many times in one
// function. A label may be used before it is defined, so a use creates it and
// the end of its scope hands it to the enclosing one if it is still open.
//
//===----------------------------------------------------------------------===//

#ifndef KPERFIR_SIMT_PTX_PARSERSTATE_H
#define KPERFIR_SIMT_PTX_PARSERSTATE_H

#include "Simt/Ptx/Ast.h"
#include "Simt/Ptx/Lexer.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kperfir::simt::ptx {

constexpr uint32_t kUndefined = 0xFFFFFFFFu;

struct RegisterRange {
  uint32_t first = 0;
  uint64_t count = 0;
};

struct Scope {
  std::unordered_map<std::string_view, uint32_t> registers;
  std::unordered_map<std::string_view, RegisterRange> ranges; // `%r<10>`
  std::unordered_map<std::string_view, uint32_t> variables;
  /// Ordered: ids move in name order.
  std::map<std::string_view, uint32_t> labels;
};

class Parser {
public:
  /// `source` must outlive the parser.
  explicit Parser(std::string_view source) : tokens(tokenize(source)) {}

  Module run();

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

  [[noreturn]] void fail(const std::string &message) const;
  [[noreturn]] void failAt(uint32_t line, const std::string &message) const;

  // --- module, in Parser.cpp ------------------------------------------------

  void topLevel();
  static bool isLinkage(std::string_view word);
  std::string versionText();
  void target();
  void file();
  void skipSection();
  void skipStatement();

  // --- functions, in Parser.cpp ---------------------------------------------

  std::vector<uint32_t> parameterList();
  void function(bool isEntry);
  void attributes();
  std::array<uint32_t, 3> dimensions();
  /// Up to the brace that closes the function.
  void body();
  void statement();
  void directive();
  /// `.loc file line column [, function_name label, inlined_at file line
  /// column]`
  void loc(bool ignore);
  void registers();

  // --- variables, in ParseVariables.cpp -------------------------------------

  static std::optional<VariableSpace> variableSpace(std::string_view word);
  /// `.align 8 .v2 .f32` and pointer annotations; fills type, align and bytes
  /// of one element.
  Variable variableType(VariableSpace space);
  void skipParentheses();
  /// Name, dimensions and initialiser of one variable.
  uint32_t declare(Variable variable);
  void initialiser(Variable &variable, uint32_t elementBytes);
  void relocation(Variable &variable, uint32_t elementBytes);
  void variables(VariableSpace space, bool local);

  // --- names, in ParseScopes.cpp --------------------------------------------

  std::optional<uint32_t> findVariable(std::string_view name) const;
  std::optional<uint32_t> findRegister(std::string_view name) const;
  uint32_t labelId(std::string_view name);
  void defineLabel();
  void branchTargets();
  /// Labels of the innermost scope that are still open belong to the next one.
  void closeScope();
  void resolveAliases();
  void checkLabels(Function &function);

  // --- instructions, in ParseInstructions.cpp -------------------------------

  void instruction();
  /// `call.uni (ret), name, (args), prototype`: [List], Function, [List].
  void callOperands(Statement &result);
  Operand list();
  Operand operand();
  Operand simpleOperand();
  Operand vector();
  Operand address();
  int64_t offset();
  Operand immediate();
  Operand name();
  /// Comments dropped, blanks collapsed.
  static std::string oneLine(std::string_view text);

  // --- state -----------------------------------------------------------------

  std::vector<Token> tokens;
  size_t index = 0;
  Module module;
  std::vector<Scope> scopes;
  Function *current = nullptr;
  SourceLocation location;
  /// Label id, and its id in an outer scope.
  std::vector<std::pair<uint32_t, uint32_t>> aliases;
  std::vector<uint32_t> labelLines;
  uint32_t lastLabel = kUndefined;
  unsigned linkage = 0; // .extern seen
};

} // namespace kperfir::simt::ptx

#endif // KPERFIR_SIMT_PTX_PARSERSTATE_H
